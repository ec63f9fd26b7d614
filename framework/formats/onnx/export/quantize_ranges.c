/* SPDX-License-Identifier: MIT */
/* Calibration: runs the graph with the values to quantise as outputs, and records their ranges. See quantize.h. */
#include "framework/formats/onnx/export/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/plan.h>

#include "framework/classifier.h"

enum { DEFAULT_SAMPLES = 128, BATCH = 8, LEVELS = 128, STEP = 8 };

typedef struct observation {
    quantizing *q;
    sdlf_model *model; /* the graph, whose outputs are the values */
    sdlf_dataset data; /* a view, normalised as the model specifies */
    sdlf_loader *loader;
    sdlf_plan *plan;
    const char *input;
    int64_t batch, batches;
    float *numbers; /* the elements of a value */
} observation;

/* ---- the graph as a model ---- */

static Onnx__ValueInfoProto *new_output(onnx_export *e, const char *name)
{
    Onnx__ValueInfoProto *value = onnx_arena_take(&e->arena, sizeof *value);
    if (value == NULL) return NULL;
    onnx__value_info_proto__init(value);
    value->name = (char *)name;
    return value;
}

static bool is_input(const observation *o, const char *value)
{
    return strcmp(value, o->input) == 0;
}

static sdlf_status make_model(observation *o)
{
    onnx_export *e = o->q->e;
    export_list outputs = {.item = NULL};
    for (int i = 0; i < o->q->value_count && export_ok(e); i++) {
        if (is_input(o, o->q->value[i].name)) continue;
        Onnx__ValueInfoProto *value = new_output(e, o->q->value[i].name);
        if (value == NULL || !export_list_add(&outputs, &e->arena, value)) export_no_memory(e);
    }
    if (!export_ok(e)) return e->status;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__ModelProto message = export_message(e, &opset, opsets);
    if (outputs.count > 0) { /* otherwise only the input is quantised, and the graph's own outputs suffice */
        e->graph.output = (Onnx__ValueInfoProto **)outputs.item;
        e->graph.n_output = outputs.count;
    }
    size_t size = protobuf_c_message_get_packed_size(&message.base);
    uint8_t *bytes = size <= INT32_MAX ? malloc(size) : NULL;
    if (bytes != NULL) protobuf_c_message_pack(&message.base, bytes);
    export_collect(e);
    if (bytes == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "network '%s': no memory to run it for its ranges: %zu bytes",
                         e->model->name, size);
    sdlf_status status = sdlf_model_from_memory(&o->model, bytes, size, e->model->name, NULL);
    free(bytes);
    return sdlf_fail_context(status, "running the network for its ranges");
}

/* ---- samples ---- */

static sdlf_status check_input(observation *o)
{
    const onnx_export *e = o->q->e;
    if (e->inputs.count != 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "network '%s' has %zu inputs: ranges come from samples for one (weights only need none)",
                         e->model->name, e->inputs.count);
    const Onnx__ValueInfoProto *input = e->inputs.item[0];
    const Onnx__TensorTypeProto *type = input->type->tensor_type;
    sdlf_shape sample = sdlf_shape_without(o->data.samples.shape, 0);
    bool number = type->elem_type == ONNX_FLOAT || type->elem_type == ONNX_INT32 || type->elem_type == ONNX_INT64;
    bool fits = number && (int)type->shape->n_dim == sample.rank + 1;
    for (int i = 0; i < sample.rank && fits; i++) {
        const Onnx__Dimension *dim = type->shape->dim[i + 1];
        fits = !dim->has_dim_value || dim->dim_value == sample.dim[i];
    }
    o->input = input->name;
    if (fits) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "input '%s' of network '%s' takes no samples of %s, which '%s' has", input->name,
                     e->model->name, sdlf_shape_print(sample).text, sdlf_dataset_title(&o->data));
}

static sdlf_status open_data(observation *o)
{
    const sdlf_quantization_options *options = o->q->options;
    o->data = *options->data;
    sdlf_status status = sdlf_dataset_check_parts(&o->data);
    sdlf_dataset_normalize_for(&o->data, o->q->e->model);
    if (status == SDLF_OK) status = check_input(o);
    if (status == SDLF_OK && o->data.samples.shape.dim[0] < 1)
        status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "ranges come from samples, and '%s' has none", sdlf_dataset_title(&o->data));
    if (status != SDLF_OK) return status;
    int64_t samples = options->samples > 0 ? options->samples : DEFAULT_SAMPLES, all = o->data.samples.shape.dim[0];
    if (samples > all) samples = all;
    o->batch = o->q->e->fixed_batch ? 1 : samples < BATCH ? samples : BATCH;
    o->batches = samples / o->batch;
    return sdlf_loader_create(&o->loader, &o->data,
                              &(sdlf_loader_options){.batch = o->batch, .shuffle = true, .seed = 1});
}

/* ---- observed ranges ---- */

static sdlf_status see(const observation *o, quantize_value *v, const float *x, int64_t count)
{
    double low = v->low, high = v->high;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i]))
            return sdlf_fail(SDLF_ERROR_NUMERIC, "network '%s': value '%s' is not finite on the samples",
                             o->q->e->model->name, v->name);
        low = fmin(low, (double)x[i]);
        high = fmax(high, (double)x[i]);
    }
    v->low = low, v->high = high;
    return SDLF_OK;
}

static void count_magnitudes(quantize_value *v, const float *x, int64_t count)
{
    double largest = fmax(-v->low, v->high), step = largest > 0 ? QUANTIZE_BINS / largest : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t bin = (int64_t)(fabs((double)x[i]) * step);
        v->bins[bin < QUANTIZE_BINS ? bin : QUANTIZE_BINS - 1]++;
    }
}

static sdlf_status see_batch(observation *o, const sdlf_batch *batch, bool magnitudes)
{
    sdlf_status status = sdlf_plan_write_converted(o->plan, o->input, batch->samples.data, SDLF_FLOAT32,
                                                   sdlf_tensor_count(&batch->samples));
    if (status == SDLF_OK) status = sdlf_plan_forward(o->plan);
    for (int i = 0; i < o->q->value_count && status == SDLF_OK; i++) {
        quantize_value *v = &o->q->value[i];
        const float *x = batch->samples.data;
        int64_t count = sdlf_tensor_count(&batch->samples);
        if (!is_input(o, v->name)) {
            sdlf_binding output;
            status = sdlf_plan_output(o->plan, v->name, &output);
            if (status != SDLF_OK) break;
            x = o->numbers;
            count = sdlf_tensor_count(&output.tensor);
            status = sdlf_plan_read(o->plan, v->name, o->numbers, SDLF_FLOAT32, count * (int64_t)sizeof *o->numbers);
        }
        if (status == SDLF_OK && magnitudes) count_magnitudes(v, x, count);
        if (status == SDLF_OK && !magnitudes) status = see(o, v, x, count);
    }
    return status;
}

static sdlf_status see_all(observation *o, bool magnitudes, int64_t passes)
{
    const sdlf_quantization_options *options = o->q->options;
    sdlf_status status = sdlf_loader_seek(o->loader, 0, 0);
    int64_t all = o->batches * o->batch, before = magnitudes ? all : 0;
    for (int64_t i = 0; i < o->batches && status == SDLF_OK; i++) {
        sdlf_batch batch;
        if (i > 0 && options->go_on != NULL && !options->go_on(options->user)) {
            if (!magnitudes) o->batches = i;
            break;
        }
        status = sdlf_loader_next(o->loader, &batch);
        if (status == SDLF_OK) status = see_batch(o, &batch, magnitudes);
        if (options->progress != NULL) options->progress(options->user, (before + (i + 1) * o->batch) / passes, all);
    }
    return status;
}

/* ---- histograms of magnitudes ---- */

static int64_t bins_total(const int64_t *bins)
{
    int64_t sum = 0;
    for (int i = 0; i < QUANTIZE_BINS; i++) sum += bins[i];
    return sum;
}

static int percentile_bins(const int64_t *bins, double percentile)
{
    double wanted = percentile / 100 * (double)bins_total(bins), sum = 0;
    for (int i = 0; i < QUANTIZE_BINS; i++) {
        sum += (double)bins[i];
        if (sum >= wanted) return i + 1;
    }
    return QUANTIZE_BINS;
}

/* Kullback-Leibler divergence between the first `count` bins, with the tail added to the last one, and their
 * quantisation to LEVELS levels. A level's count is distributed over its non-empty bins. */
static double divergence(const int64_t *bins, int count, int64_t total)
{
    int64_t inside = 0;
    double sum = 0;
    for (int i = 0; i < count; i++) inside += bins[i];
    for (int level = 0; level < LEVELS; level++) {
        int first = level * count / LEVELS, end = (level + 1) * count / LEVELS, filled = 0;
        int64_t all = 0;
        for (int i = first; i < end; i++) all += bins[i], filled += bins[i] > 0;
        for (int i = first; i < end; i++) {
            double p = (double)bins[i] + (i == count - 1 ? (double)(total - inside) : 0);
            double q = bins[i] > 0 ? (double)all / filled : 1e-4;
            if (p > 0) sum += p / (double)total * log(p / (double)total / (q / (double)(inside > 0 ? inside : 1)));
        }
    }
    return sum;
}

/* Zeros, which dominate activations, are clamped to the count of the next bin: they are exact in any range. */
static int entropy_bins(int64_t *bins)
{
    int best = QUANTIZE_BINS;
    if (bins[0] > bins[1]) bins[0] = bins[1];
    int64_t total = bins_total(bins);
    double least = INFINITY;
    for (int count = LEVELS; count <= QUANTIZE_BINS; count += STEP) {
        double now = divergence(bins, count, total);
        if (now >= least) continue;
        least = now;
        best = count;
    }
    return best;
}

static void cut(const quantizing *q, quantize_value *v)
{
    double percentile = q->options->percentile > 0 ? q->options->percentile : 99.99, largest = fmax(-v->low, v->high);
    int bins = q->options->calibration == SDLF_CALIBRATION_ENTROPY ? entropy_bins(v->bins)
                                                                   : percentile_bins(v->bins, percentile);
    double most = largest * bins / QUANTIZE_BINS;
    v->low = fmax(v->low, -most);
    v->high = fmin(v->high, most);
}

/* ---- all steps ---- */

static sdlf_status grow(observation *o)
{
    int64_t largest = 1;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < o->q->value_count && status == SDLF_OK; i++) {
        sdlf_binding output = {.calculator = NULL};
        if (!is_input(o, o->q->value[i].name)) status = sdlf_plan_output(o->plan, o->q->value[i].name, &output);
        if (output.calculator != NULL && sdlf_tensor_count(&output.tensor) > largest)
            largest = sdlf_tensor_count(&output.tensor);
        if (o->q->options->calibration == SDLF_CALIBRATION_MIN_MAX) continue;
        o->q->value[i].bins = onnx_arena_array(&o->q->e->arena, QUANTIZE_BINS, sizeof(int64_t));
        if (o->q->value[i].bins == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for histograms of values");
    }
    if (status != SDLF_OK) return status;
    o->numbers = malloc((size_t)largest * sizeof *o->numbers);
    return o->numbers != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory to look at values");
}

void quantize_observe(quantizing *q)
{
    observation o = {.q = q};
    bool histograms = q->options->calibration != SDLF_CALIBRATION_MIN_MAX;
    sdlf_status status = open_data(&o);
    if (status == SDLF_OK) status = make_model(&o);
    sdlf_plan_options options = {.batch = o.batch, .forward = q->options->calculator, .consume_parameters = true};
    if (status == SDLF_OK) status = sdlf_plan_create(&o.plan, o.model, &options);
    if (status == SDLF_OK) status = grow(&o);
    if (status == SDLF_OK) status = see_all(&o, false, histograms ? 2 : 1);
    if (status == SDLF_OK && histograms) status = see_all(&o, true, 2);
    for (int i = 0; i < q->value_count && status == SDLF_OK && histograms; i++) /* input images have few outliers */
        if (!is_input(&o, q->value[i].name)) cut(q, &q->value[i]);
    q->result->samples = o.batches * o.batch;
    free(o.numbers);
    sdlf_plan_free(o.plan);
    sdlf_model_free(o.model);
    sdlf_loader_free(o.loader);
    if (export_ok(q->e)) q->e->status = status;
}
