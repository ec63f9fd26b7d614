/* SPDX-License-Identifier: MIT */
/* Data sets by name: "NAME" or "NAME:ARGUMENT". */
#include <sdlf/dataset.h>
#include <sdlf/suggest.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "framework/classifier.h"
#include "framework/model_internal.h"
#include "framework/require.h"

static const sdlf_dataset_class *find_class(const char *name, size_t length)
{
    const sdlf_dataset_class *type;
    for (int i = 0; (type = sdlf_dataset_class_at(i)) != NULL; i++) {
        if (strlen(type->name) == length && memcmp(type->name, name, length) == 0) return type;
    }
    return NULL;
}

/* The kind of data set that a file or folder without a kind probably is; NULL: none. */
static const char *kind_of(const char *path)
{
    static const char *const ends[][2] = {
        {".csv", "csv"}, {".tsv", "csv"}, {".npz", "npz"}, {".npy", "npy"}, {".txt", "text"}};
    struct stat at;
    const char *end = strrchr(path, '.');
    if (stat(path, &at) != 0) return NULL;
    if (S_ISDIR(at.st_mode)) return "folder";
    for (size_t i = 0; end != NULL && i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(end, ends[i][0]) == 0) return ends[i][1];
    return NULL;
}

static sdlf_status unknown_name(const char *name, size_t length)
{
    char known[512] = "", word[64], meant[128];
    const char *kind = kind_of(name);
    if (kind != NULL) snprintf(meant, sizeof meant, " (did you mean '%s:%.80s'?)", kind, name);
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, name);
    sdlf_suggestion near = {.word = word};
    size_t used = 0;
    const sdlf_dataset_class *type;
    for (int i = 0; (type = sdlf_dataset_class_at(i)) != NULL && used < sizeof known; i++) {
        int n = snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", type->name);
        used += n > 0 ? (size_t)n : 0;
        sdlf_suggest(&near, type->name);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set '%s' is unknown%s; known are: %s", word,
                     kind != NULL ? meant : sdlf_suggestion_print(&near).text, known);
}

const char *sdlf_dataset_title(const sdlf_dataset *dataset)
{
    return dataset->name != NULL ? dataset->name : "without a name";
}

static void normalize_as(sdlf_dataset *dataset, const sdlf_normalization *normalization)
{
    dataset->mean = normalization->mean;
    dataset->scale = normalization->scale;
    dataset->channels = normalization->channels;
}

void sdlf_dataset_normalize_for(sdlf_dataset *dataset, const sdlf_model *model)
{
    if (dataset == NULL || model == NULL) return;
    if (model->normalization.known)
        normalize_as(dataset, &model->normalization);
    else if (sdlf_model_takes_tokens(model))
        normalize_as(dataset, &(sdlf_normalization){.scale = 1});
}

bool sdlf_dataset_has_targets(const sdlf_dataset *dataset)
{
    return dataset->labels.dtype == SDLF_FLOAT32;
}

int64_t sdlf_dataset_positions(const sdlf_dataset *dataset)
{
    sdlf_shape shape = dataset->labels.shape;
    bool several = !sdlf_dataset_has_targets(dataset) && (shape.rank == 2 || shape.rank == 3);
    return several ? sdlf_shape_span(shape, 1, shape.rank) : 0;
}

bool sdlf_dataset_has_pixel_labels(const sdlf_dataset *dataset)
{
    return dataset->labels.dtype == SDLF_INT32 && dataset->labels.shape.rank == 3;
}

/* Checks that the targets of a sample are finite. */
static sdlf_status check_finite(const sdlf_dataset *dataset, int64_t index, const float *target, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(target[i]))
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "data set %s: sample %lld, target %lld: expected a finite number, found %g",
                             sdlf_dataset_title(dataset), (long long)index, (long long)i, (double)target[i]);
    return SDLF_OK;
}

/* The index of the first of `count` labels that is not a class; -1: none. */
static int64_t find_no_class(const sdlf_dataset *dataset, const int32_t *label, int64_t count)
{
    int32_t least = sdlf_dataset_has_pixel_labels(dataset) ? -1 : 0;
    for (int64_t i = 0; i < count; i++)
        if (label[i] < least || label[i] >= dataset->class_count) return i;
    return -1;
}

sdlf_status sdlf_dataset_read_labels(const sdlf_dataset *dataset, int64_t index, void *to)
{
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(to);
    int64_t samples = dataset->labels.shape.dim[0];
    if (index < 0 || index >= samples)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set %s: labels of sample %lld: expected 0 to %lld",
                         sdlf_dataset_title(dataset), (long long)index, (long long)samples - 1);
    int64_t count = sdlf_tensor_count(&dataset->labels) / samples;
    size_t bytes = (size_t)count * sdlf_dtype_size(dataset->labels.dtype);
    if (dataset->labels.data != NULL) {
        memcpy(to, (const char *)dataset->labels.data + (size_t)index * bytes, bytes);
        return SDLF_OK;
    }
    sdlf_status status = sdlf_dataset_check_parts(dataset);
    if (status == SDLF_OK) status = dataset->read_labels(dataset->read_context, index, to);
    if (status != SDLF_OK) return status;
    if (sdlf_dataset_has_targets(dataset)) return check_finite(dataset, index, to, count);
    int64_t bad = find_no_class(dataset, to, count);
    if (bad < 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "data set %s: sample %lld, label %lld: expected %s0 to %d, found %d",
                     sdlf_dataset_title(dataset), (long long)index, (long long)bad,
                     sdlf_dataset_has_pixel_labels(dataset) ? "-1 or " : "", dataset->class_count - 1,
                     (int)((const int32_t *)to)[bad]);
}

/* True if labels are one class per sample, per position of a sequence or per pixel; or a row of targets per sample. */
static bool are_labels(const sdlf_dataset *dataset)
{
    int64_t count = dataset->samples.shape.dim[0];
    sdlf_shape shape = dataset->labels.shape;
    if (sdlf_dataset_has_targets(dataset)) return sdlf_shape_equal(shape, sdlf_shape(count, dataset->class_count));
    bool sequences = sdlf_dataset_positions(dataset) > 0 && sdlf_shape_equal(shape, dataset->samples.shape);
    sdlf_shape samples = dataset->samples.shape;
    if (sdlf_dataset_has_pixel_labels(dataset))
        return samples.rank == 4 && sdlf_shape_equal(shape, sdlf_shape(count, samples.dim[2], samples.dim[3]));
    return dataset->labels.dtype == SDLF_INT32 && (sequences || sdlf_shape_equal(shape, sdlf_shape(count)));
}

sdlf_status sdlf_dataset_check_parts(const sdlf_dataset *dataset)
{
    int64_t count = dataset->samples.shape.dim[0];
    if (!are_labels(dataset))
        return sdlf_fail(
            SDLF_ERROR_SHAPE,
            "data set %s: expected int32 labels of shape %lld, or of each pixel, or float32 targets (%lld,%d), "
            "found %s %s",
            sdlf_dataset_title(dataset), (long long)count, (long long)count, dataset->class_count,
            sdlf_dtype_name(dataset->labels.dtype), sdlf_shape_print(dataset->labels.shape).text);
    bool samples = dataset->samples.data != NULL || dataset->read != NULL;
    if (samples && (dataset->labels.data != NULL || dataset->read_labels != NULL)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set %s: %s", sdlf_dataset_title(dataset),
                     samples ? "labels.data is NULL, and there is no read_labels"
                             : "samples.data is NULL, and there is no read");
}

/* True if the class has filled in everything that it must. All other code relies on it. */
static bool is_complete(const sdlf_dataset *dataset)
{
    const sdlf_tensor *samples = &dataset->samples;
    return dataset->name != NULL && dataset->class_count > 0 &&
           (samples->dtype == SDLF_UINT8 || samples->dtype == SDLF_FLOAT32) && samples->shape.rank >= 2 &&
           samples->shape.dim[0] > 0 && are_labels(dataset);
}

/* Finds the class that a specification names, and its argument. */
static sdlf_status find(const sdlf_dataset_class **type, const char **argument, const char *specification,
                        sdlf_split split)
{
    if (split != SDLF_SPLIT_TRAIN && split != SDLF_SPLIT_TEST) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set '%s': expected the training or the test split, found %d",
                         specification, (int)split);
    }
    size_t length = strcspn(specification, ":");
    *argument = specification[length] == ':' ? specification + length + 1 : NULL;
    *type = find_class(specification, length);
    return *type != NULL ? SDLF_OK : unknown_name(specification, length);
}

sdlf_status sdlf_dataset_check(const char *specification, sdlf_split split)
{
    SDLF_REQUIRE(specification);
    const sdlf_dataset_class *type;
    const char *argument;
    sdlf_status status = find(&type, &argument, specification, split);
    return status == SDLF_OK && type->check != NULL ? type->check(argument, split) : status;
}

static sdlf_status open_dataset(sdlf_dataset **dataset, const char *specification, sdlf_split split,
                                const sdlf_dataset_options *options)
{
    const sdlf_dataset_class *type;
    const char *argument;
    sdlf_status status = find(&type, &argument, specification, split);
    if (status != SDLF_OK) return status;
    sdlf_dataset *made = calloc(1, sizeof *made);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "data set '%s': no memory", specification);
    made->type = type;
    status = type->load(made, argument, split, options);
    if (status == SDLF_OK && options->targets && !sdlf_dataset_has_targets(made))
        status = sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                           "data set '%s' has classes, not float targets: csv, npz and npy have", specification);
    if (status == SDLF_OK && !is_complete(made)) {
        status =
            sdlf_fail(SDLF_ERROR_SHAPE,
                      "data set '%s': expected samples (M,...) uint8 or float32 and labels (M) int32 or (M,K) float32, "
                      "M at least 1, found "
                      "%s %s and %s %s",
                      specification, sdlf_dtype_name(made->samples.dtype), sdlf_shape_print(made->samples.shape).text,
                      sdlf_dtype_name(made->labels.dtype), sdlf_shape_print(made->labels.shape).text);
    }
    if (status != SDLF_OK) {
        sdlf_dataset_free(made);
        return status;
    }
    *dataset = made;
    return SDLF_OK;
}

sdlf_status sdlf_dataset_open(sdlf_dataset **dataset, const char *specification, sdlf_split split)
{
    SDLF_REQUIRE(dataset);
    *dataset = NULL;
    SDLF_REQUIRE(specification);
    return open_dataset(dataset, specification, split, &(sdlf_dataset_options){0});
}

sdlf_status sdlf_dataset_open_with(sdlf_dataset **dataset, const char *specification, sdlf_split split,
                                   const sdlf_dataset_options *options)
{
    SDLF_REQUIRE(dataset);
    *dataset = NULL;
    SDLF_REQUIRE(specification);
    return open_dataset(dataset, specification, split, options != NULL ? options : &(sdlf_dataset_options){0});
}

void sdlf_dataset_free(sdlf_dataset *dataset)
{
    if (dataset == NULL) return;
    sdlf_tensor_release(&dataset->samples, NULL);
    sdlf_tensor_release(&dataset->labels, NULL);
    for (int i = 0; dataset->class_names != NULL && i < dataset->class_count; i++) free(dataset->class_names[i]);
    free(dataset->class_names);
    for (int64_t i = 0; dataset->unread_files != NULL && i < dataset->unread; i++) free(dataset->unread_files[i]);
    free(dataset->unread_files);
    free(dataset->name);
    if (dataset->free_context != NULL) dataset->free_context(dataset->read_context);
    free(dataset);
}
