/* SPDX-License-Identifier: MIT */
/* A data set's samples for the inputs of a plan. */
#include "apps/input/samples.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/random.h>

#include "apps/input/network.h"
#include "apps/output/number.h"
#include "apps/output/status_line.h"
#include "apps/output/terminal.h"
#include "apps/output/wrap.h"
#include "apps/system/memory.h"

static void show_progress(void *context, int64_t done, int64_t count)
{
    (void)context;
    if (done % 16 == 0) status_line_show("reading picture %s of %s", number_count(done).text, number_count(count).text);
}

static sdlf_dataset_options options_of(const samples_request *request)
{
    sdlf_dataset_options options = {.strict = request->strict,
                                    .targets = request->targets,
                                    .unlabelled = request->unlabelled && strncmp(request->set, "npy:", 4) == 0 &&
                                                  strchr(request->set, ',') == NULL,
                                    .whole = request->whole,
                                    .threads = (int)request->workers,
                                    .cache = request->cache * 1000000,
                                    .progress = request->command != NULL ? show_progress : NULL};
    if (request->model != NULL) options.sample = network_sample_shape(request->model);
    if (request->sample.rank == 3) {
        options.channels = (int)request->sample.dim[0];
        options.height = (int)request->sample.dim[1];
        options.width = (int)request->sample.dim[2];
    }
    return options;
}

sdlf_status samples_open(sdlf_dataset **data, const samples_request *request)
{
    sdlf_dataset_options options = options_of(request);
    sdlf_status status = sdlf_dataset_open_with(data, request->set, request->split, &options);
    if (request->command == NULL) return status;
    status_line_clear();
    if (status != SDLF_OK || (*data)->unread == 0) return status;
    terminal_warning(request->command, "%s: %s file%s cannot be read and %s left out; the first: %s%s", (*data)->name,
                     number_count((*data)->unread).text, (*data)->unread == 1 ? "" : "s",
                     (*data)->unread == 1 ? "is" : "are", (*data)->unread_why,
                     (*data)->unread == 1 || strcmp(request->command, "data") == 0 ? "" : "; sdlf data lists all");
    return status;
}

static bool is_option(const char *part)
{
    return strcmp(part, "all") == 0 || strncmp(part, "label=", 6) == 0 || strncmp(part, "shape=", 6) == 0;
}

/* Extracts the next part of "KIND:FILE,FILE,label=COLUMN,all" that names what is read, not how. */
static bool next_part(const char **at, char part[PATH_MAX])
{
    while (**at != '\0') {
        size_t length = strcspn(*at, ",");
        snprintf(part, PATH_MAX, "%.*s", (int)length, *at);
        *at += length + ((*at)[length] == ',');
        if (!is_option(part)) return true;
    }
    return false;
}

bool samples_same_set(const char *a, const char *b)
{
    char one[PATH_MAX], other[PATH_MAX];
    struct stat first, second;
    size_t kind = strcspn(a, ":");
    if (strcmp(a, b) == 0) return true;
    if (a[kind] != ':' || strncmp(a, b, kind + 1) != 0) return false;
    a += kind + 1;
    b += kind + 1;
    for (bool more = true; more;) {
        more = next_part(&a, one);
        if (next_part(&b, other) != more) return false;
        if (!more || strcmp(one, other) == 0) continue;
        if (stat(one, &first) != 0 || stat(other, &second) != 0) return false;
        if (first.st_dev != second.st_dev || first.st_ino != second.st_ino) return false;
    }
    return true;
}

sdlf_status samples_outline(sdlf_dataset **data, const samples_request *request)
{
    sdlf_dataset_options options = options_of(request);
    options.outline = true;
    return sdlf_dataset_open_with(data, request->set, request->split, &options);
}

void samples_print_list(const terminal *out)
{
    fprintf(out->file, "\n%sData sets%s\n", terminal_escape(out, TERMINAL_BOLD), terminal_escape(out, TERMINAL_PLAIN));
    const sdlf_dataset_class *type;
    for (int i = 0; (type = sdlf_dataset_class_at(i)); i++) {
        int at = fprintf(out->file, "  %-12s  ", type->name);
        wrap_print(out->file, type->summary, at, at, out->width);
    }
}

sdlf_shape samples_shape(const sdlf_model *model)
{
    sdlf_shape shape = network_sample_shape(model);
    return shape.rank == 3 && (shape.dim[0] == 1 || shape.dim[0] == 3) ? shape : SDLF_SCALAR;
}

/* The input from which the model's own loss reads its labels, or the one that the plan adds. */
static const char *labels_of(const sdlf_model *model)
{
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        if (!sdlf_model_layer(model, i)->type->is_loss || sdlf_model_layer_input_count(model, i) < 2) continue;
        return sdlf_model_layer(model, sdlf_model_layer_input(model, i, 1).layer)->name;
    }
    return "labels";
}

sdlf_feed samples_feed(sdlf_model *model, const sdlf_dataset *data)
{
    sdlf_dataset view = *data;
    sdlf_dataset_normalize_for(&view, model);
    sdlf_feed feed = {
        .labels = labels_of(model),
        .sample_data = view.samples,
        .label_data = view.labels,
        .mean = view.mean,
        .scale = view.scale,
        .channels = view.channels,
    };
    for (int i = 0; i < sdlf_model_input_count(model) && !feed.samples; i++) {
        const char *name = sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name;
        if (strcmp(name, feed.labels) != 0) feed.samples = name;
    }
    return feed;
}

/* Writes samples, which are float32, to a plan, which may use float64. */
static sdlf_status write_samples(sdlf_plan *plan, const char *input, const sdlf_batch *batch)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(plan, input, &binding);
    if (status != SDLF_OK) return status;
    const sdlf_tensor *wanted = &binding.tensor;
    if (!sdlf_shape_equal(wanted->shape, batch->samples.shape)) {
        return sdlf_fail(SDLF_ERROR_SHAPE, "input '%s' expects batches of shape %s, the data have shape %s", input,
                         sdlf_shape_print(wanted->shape).text, sdlf_shape_print(batch->samples.shape).text);
    }
    return sdlf_plan_write_converted(plan, input, batch->samples.data, SDLF_FLOAT32, sdlf_tensor_count(wanted));
}

/* The number of classes of the model; 0 if unknown. */
static int64_t classes_of(const sdlf_model *model)
{
    sdlf_node scores = {.layer = -1};
    if (sdlf_model_output_count(model) > 0) scores = sdlf_model_output(model, 0);
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        if (sdlf_model_layer(model, i)->type->is_loss) scores = sdlf_model_layer_input(model, i, 0);
    }
    if (scores.layer < 0) return 0;
    sdlf_shape shape = sdlf_model_node_shape(model, scores);
    return shape.rank == 2 || shape.rank == 3 ? shape.dim[shape.rank - 1] : 0; /* of sequences, at each position */
}

sdlf_status samples_open_network(sdlf_model **model, const char *net, const char *set)
{
    sdlf_dataset *data = NULL;
    sdlf_status status = network_open(model, net, 1, NULL);
    if (status != SDLF_OK || !network_is_builtin(net)) return status;
    status = samples_outline(&data, &(samples_request){.set = set, .sample = samples_shape(*model), .model = *model});
    sdlf_shape sample = status == SDLF_OK ? sdlf_shape_without(data->samples.shape, 0) : SDLF_SCALAR;
    int classes = status == SDLF_OK ? data->class_count : 0;
    sdlf_dataset_free(data);
    bool fits = sdlf_shape_equal(sample, network_sample_shape(*model)) && classes == classes_of(*model);
    if (status == SDLF_OK && (classes == 0 || fits)) return SDLF_OK;
    sdlf_model_free(*model);
    *model = NULL;
    if (status == SDLF_OK) status = sdlf_network_builtin_for(model, net, sample, classes);
    return status == SDLF_OK ? sdlf_model_build(*model, 1) : status;
}

bool samples_fit(const sdlf_model *model, const sdlf_dataset *data)
{
    int64_t classes = classes_of(model);
    return classes == 0 || classes >= data->class_count;
}

sdlf_status samples_check(const sdlf_model *model, const sdlf_dataset *data)
{
    if (samples_fit(model, data)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has fewer classes, %lld, than the %d of %s",
                     sdlf_model_name(model), (long long)classes_of(model), data->class_count, data->name);
}

sdlf_status samples_write(sdlf_plan *plan, sdlf_model *model, const sdlf_dataset *data, int64_t count, sdlf_mode mode)
{
    sdlf_status status = mode == SDLF_TRAIN ? samples_check(model, data) : SDLF_OK;
    if (status != SDLF_OK) return status;
    sdlf_feed feed = samples_feed(model, data);
    sdlf_dataset normalized = *data; /* a view */
    sdlf_dataset_normalize_for(&normalized, model);
    sdlf_loader *loader = NULL;
    sdlf_batch batch = {.count = 0};
    status = sdlf_loader_create(&loader, &normalized, &(sdlf_loader_options){.batch = count, .no_prefetch = true});
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    if (status == SDLF_OK && batch.count < count) {
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch %lld: %s has %lld samples", (long long)count, data->name,
                           (long long)batch.count);
    }
    if (status == SDLF_OK && !feed.samples) {
        status = sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has no input for samples", sdlf_model_name(model));
    }
    if (status == SDLF_OK) status = write_samples(plan, feed.samples, &batch);
    if (status == SDLF_OK && mode == SDLF_TRAIN)
        status =
            sdlf_plan_write(plan, feed.labels, batch.labels.data, batch.labels.dtype, sdlf_tensor_bytes(&batch.labels));
    sdlf_loader_free(loader);
    return status;
}

/* Writes values in [-1, 1) to a floating-point input, and 0 to classes - 1 in turn to an integer one. */
static sdlf_status write_random(sdlf_plan *plan, const char *input, int64_t classes, uint64_t seed)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(plan, input, &binding);
    if (status != SDLF_OK) return status;
    int64_t count = sdlf_tensor_count(&binding.tensor);
    sdlf_dtype dtype = binding.tensor.dtype;
    double *drawn = memory_allocate((size_t)count * sizeof *drawn + 1);
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = sdlf_philox4x32(seed, (uint64_t)i / 4, 1, 0).word[i % 4];
        drawn[i] = sdlf_dtype_is_float(dtype) ? 2 * (double)sdlf_uniform_from_word(word) - 1 : (double)(i % classes);
    }
    status = sdlf_plan_write_converted(plan, input, drawn, SDLF_FLOAT64, count);
    if (status == SDLF_ERROR_ARGUMENT) { /* indices into a table of one row */
        memset(drawn, 0, (size_t)count * sizeof *drawn);
        status = sdlf_plan_write_converted(plan, input, drawn, SDLF_FLOAT64, count);
    }
    free(drawn);
    return status;
}

sdlf_status samples_write_random(sdlf_plan *plan, sdlf_model *model, sdlf_mode mode, uint64_t seed)
{
    const char *labels = labels_of(model);
    sdlf_node last = {.layer = sdlf_model_layer_count(model) - 1};
    if (sdlf_model_output_count(model) > 0) last = sdlf_model_output(model, 0);
    sdlf_shape output = sdlf_model_node_shape(model, last);
    int64_t classes = output.rank == 3 ? output.dim[2] : output.rank > 1 ? output.dim[1] : 1;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_input_count(model) && status == SDLF_OK; i++) {
        const char *name = sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name;
        if (strcmp(name, labels) != 0) status = write_random(plan, name, 2, seed + (uint64_t)i);
    }
    if (status == SDLF_OK && mode == SDLF_TRAIN) status = write_random(plan, labels, classes, seed);
    return status;
}
