/* SPDX-License-Identifier: MIT */
/* One graph convolution over a whole graph: its input, its plan, its times and the check of its output. */
#include <math.h>
#include <stdlib.h>
#include <zlib.h>

#include <sdlf/formats.h>

#include "apps/gcn/infer.h"
#include "apps/system/interrupt.h"
#include "framework/clock.h"
#include "framework/sort.h"

enum { TOGETHER = 20 }; /* runs of a device between two clock readings */

/* ---- input ---- */

static sdlf_status convert_features(gcn_inference *s, const sdlf_tensor *from, const char *name)
{
    if (from->shape.rank != 2 || from->shape.dim[0] != s->graph->node_count || !sdlf_dtype_is_float(from->dtype) ||
        from->shape.dim[1] < 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected floating-point features of shape %lldxN, found %s %s", name,
                         (long long)s->graph->node_count, sdlf_dtype_name(from->dtype),
                         sdlf_shape_print(from->shape).text);
    sdlf_status status = sdlf_tensor_create(&s->features, NULL, s->dtype, from->shape);
    if (status != SDLF_OK) return status;
    sdlf_convert(s->dtype, s->features.data, from->dtype, from->data, sdlf_tensor_count(from));
    return SDLF_OK;
}

static sdlf_status make_features(gcn_inference *s)
{
    sdlf_tensor read;
    if (s->set.features_file != NULL) {
        sdlf_status status = sdlf_tensor_read_file(&read, s->set.features_file);
        if (status == SDLF_OK) status = convert_features(s, &read, s->set.features_file);
        sdlf_tensor_release(&read, NULL);
        return status;
    }
    if (sdlf_tensor_present(&s->graph->features) && s->features_given)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: the graph has its own %lld features a node, --features draws others",
                         s->graph->name, (long long)s->graph->features.shape.dim[1]);
    if (sdlf_tensor_present(&s->graph->features)) return convert_features(s, &s->graph->features, s->graph->name);
    sdlf_shape shape = sdlf_shape(s->graph->node_count, s->set.features);
    const sdlf_tensor wanted = sdlf_tensor_view(s->dtype, shape, NULL);
    int64_t bytes = sdlf_tensor_bytes(&wanted);
    sdlf_status status = machine_check_memory(&s->machine, bytes < 0 ? INT64_MAX : bytes, "a smaller --features");
    if (status == SDLF_OK) status = sdlf_tensor_create(&s->features, NULL, s->dtype, shape);
    sdlf_calculator *host = NULL; /* draws the same everywhere */
    if (status == SDLF_OK) status = sdlf_calculator_open(&host, "cpu", NULL);
    if (status != SDLF_OK) return status;
    const sdlf_operation draw = {
        .kind = SDLF_RANDOM_UNIFORM,
        .out = {s->features},
        .random = {.seed = (uint64_t)s->set.seed, .stream = SDLF_STREAM_DATASET, .a = -1, .b = 1}};
    status = sdlf_calculator_run(host, &draw);
    sdlf_calculator_close(host);
    return status;
}

static sdlf_status make_model(gcn_inference *s)
{
    s->model = sdlf_model_create("gcn");
    sdlf_node x = sdlf_input(s->model, "x", SDLF_FLOAT32, sdlf_shape(s->features.shape.dim[1]));
    sdlf_node matrix = sdlf_sparse_input(s->model, "matrix");
    x = sdlf_graph_conv(s->model, x, matrix, &(sdlf_graph_conv_options){.units = (int)s->set.hidden, .no_bias = true});
    sdlf_output(s->model, "y", sdlf_log_softmax(s->model, x));
    return sdlf_model_build(s->model, (uint64_t)s->set.seed);
}

sdlf_status gcn_infer_prepare(gcn_inference *s)
{
    sdlf_status status = make_features(s);
    return status == SDLF_OK ? make_model(s) : status;
}

/* ---- running ---- */

/* The median time of a whole run, with `together` runs queued one after another before the host waits. */
static sdlf_status time_whole(gcn_inference *s, int together, double *median)
{
    double *seconds = malloc((size_t)s->set.repeats * sizeof *seconds);
    if (seconds == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %lld times", (long long)s->set.repeats);
    sdlf_status status = SDLF_OK;
    size_t count = 0;
    for (int64_t i = -3; i < s->set.repeats && status == SDLF_OK; i++) { /* three to warm up, and to record */
        if (interrupt_signal() != 0) break;
        double start = sdlf_clock();
        for (int run = 0; run < together && status == SDLF_OK; run++) status = sdlf_plan_forward(s->plan);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(s->plan);
        if (i >= 0) seconds[count++] = (sdlf_clock() - start) / together;
    }
    sdlf_sort_doubles(seconds, count);
    if (count > 0) *median = seconds[count / 2];
    free(seconds);
    if (status == SDLF_OK && count == 0 && *median <= 0) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "no run was timed");
    return status;
}

static double output_at(const gcn_inference *s, int64_t i)
{
    return s->dtype == SDLF_FLOAT64 ? ((const double *)s->output.data)[i] : (double)((const float *)s->output.data)[i];
}

/* The study's check: the largest sum of a vertex's outputs, the first of equals. */
static sdlf_status check_output(gcn_inference *s)
{
    int64_t rows = s->graph->node_count, width = s->set.hidden;
    sdlf_status status = sdlf_tensor_create(&s->output, NULL, s->dtype, sdlf_shape(rows, width));
    if (status == SDLF_OK)
        status = sdlf_plan_read(s->plan, "y", s->output.data, s->dtype, sdlf_tensor_bytes(&s->output));
    if (status != SDLF_OK) return status;
    s->checksum = (uint32_t)crc32_z(crc32_z(0, NULL, 0), s->output.data, (z_size_t)sdlf_tensor_bytes(&s->output));
    s->largest = -(double)INFINITY;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += output_at(s, r * width + j);
        if (!(sum > s->largest)) continue;
        s->largest = sum;
        s->largest_at = r;
    }
    if (s->largest == -(double)INFINITY)
        return sdlf_fail(SDLF_ERROR_NUMERIC, "%s: no vertex has outputs that are numbers", s->graph->name);
    return SDLF_OK;
}

sdlf_status gcn_infer_compute(gcn_inference *s)
{
    const sdlf_plan_constant constants[] = {{"x", s->features}, {"matrix", s->matrix}};
    sdlf_plan_options options = {.batch = s->graph->node_count,
                                 .dtype = s->dtype,
                                 .forward = s->calculator,
                                 .no_fusion = s->set.no_fusion,
                                 .gemm_algorithm = s->set.dense_algorithm,
                                 .constants = constants,
                                 .constant_count = 2};
    sdlf_memory_info memory;
    sdlf_status status = sdlf_plan_measure(&memory, s->model, &options);
    if (status == SDLF_OK)
        status = machine_check_memory(&s->machine, memory.arena + memory.parameters, "a smaller --hidden");
    if (status == SDLF_OK) status = sdlf_plan_create(&s->plan, s->model, &options);
    bool waits = s->calculator->type->record_begin == NULL; /* the host computes, or waits for each operation */
    int together = waits ? 1 : TOGETHER;
    interrupt_waits();
    if (status == SDLF_OK) status = time_whole(s, 1, &s->whole);
    if (status == SDLF_OK) status = check_output(s);
    s->queued = s->whole;
    if (status == SDLF_OK && !waits) status = time_whole(s, together, &s->queued);
    s->steps = status == SDLF_OK && interrupt_signal() == 0;
    const sdlf_timing timing = {.repeats = (int)s->set.repeats, .together = together, .go_on = interrupt_goes_on};
    if (s->steps) status = sdlf_plan_time_with(s->plan, &timing);
    if (status != SDLF_ERROR_INTERRUPTED || s->whole <= 0) return status;
    s->steps = false;
    return SDLF_OK;
}
