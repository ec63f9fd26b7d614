/* SPDX-License-Identifier: MIT */
/* Samples and labels from NumPy arrays. See arrays.h. */
#include "datasets/arrays.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/budget.h"

enum { MOST_CHANNELS = 4, MOST_CLASSES = 1 << 20 };

bool arrays_split(char **first, char **second, const char *argument)
{
    *first = argument != NULL ? strdup(argument) : NULL;
    char *comma = *first != NULL ? strchr(*first, ',') : NULL;
    bool good = comma != NULL && comma != *first && comma[1] != '\0';
    if (good) {
        *comma = '\0';
        *second = comma + 1;
    }
    return good;
}

/* ---- samples ---- */

/* The array's shape as (N,C,H,W) or (N,F); rank 0: it is neither. */
static sdlf_shape usual_shape(sdlf_shape found, bool *channels_behind)
{
    const int64_t *dim = found.dim;
    *channels_behind = found.rank == 4 && dim[3] >= 1 && dim[3] <= MOST_CHANNELS;
    if (found.rank == 2) return found;
    if (found.rank == 3) return sdlf_shape(dim[0], 1, dim[1], dim[2]);
    if (*channels_behind) return sdlf_shape(dim[0], dim[3], dim[1], dim[2]);
    bool before = found.rank == 4 && dim[1] >= 1 && dim[1] <= MOST_CHANNELS;
    return before ? found : SDLF_SCALAR;
}

/* The shape without its leading ones. */
static sdlf_shape without_ones(sdlf_shape shape)
{
    while (shape.rank > 0 && shape.dim[0] == 1) shape = sdlf_shape_without(shape, 0);
    return shape;
}

/* The shape of the samples; rank 0: the array holds no samples. */
static sdlf_shape shape_of(sdlf_shape found, sdlf_shape wanted, bool *channels_behind)
{
    sdlf_shape usual = usual_shape(found, channels_behind);
    if (wanted.rank == 0 || found.rank == 0) return usual;
    if (usual.rank > 0 && sdlf_shape_equal(sdlf_shape_without(usual, 0), wanted)) return usual;
    sdlf_shape sample = sdlf_shape_without(found, 0);
    if (!sdlf_shape_equal(without_ones(sample), without_ones(wanted))) return usual;
    *channels_behind = false;
    sdlf_shape made = {.rank = wanted.rank + 1, .dim = {found.dim[0]}};
    memcpy(made.dim + 1, wanted.dim, (size_t)wanted.rank * sizeof *made.dim);
    return made;
}

/* If the array is a single sample of the wanted shape, not an array of such samples, view it as an array of one. */
static void take_single(sdlf_tensor *found, sdlf_shape wanted)
{
    bool behind;
    sdlf_shape one = {.rank = found->shape.rank + 1, .dim = {1}}, shape = shape_of(found->shape, wanted, &behind);
    if (wanted.rank == 0 || found->shape.rank < 1 || one.rank > SDLF_MAX_RANK) return;
    if (shape.rank > 0 && sdlf_shape_equal(sdlf_shape_without(shape, 0), wanted)) return;
    memcpy(one.dim + 1, found->shape.dim, (size_t)found->shape.rank * sizeof *one.dim);
    shape = shape_of(one, wanted, &behind);
    if (shape.rank > 0 && sdlf_shape_equal(sdlf_shape_without(shape, 0), wanted))
        *found = sdlf_tensor_view(found->dtype, one, found->data);
}

static void channels_to_planes(char *to, const char *from, sdlf_shape shape, size_t size)
{
    int64_t area = shape.dim[2] * shape.dim[3], channels = shape.dim[1];
    for (int64_t n = 0; n < shape.dim[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < area; i++)
                memcpy(to + (size_t)((n * channels + c) * area + i) * size,
                       from + (size_t)((n * area + i) * channels + c) * size, size);
}

static sdlf_status check_numbers(const sdlf_tensor *samples, const char *name)
{
    const float *x = samples->data;
    int64_t count = sdlf_tensor_count(samples), size = count / samples->shape.dim[0];
    for (int64_t i = 0; samples->dtype == SDLF_FLOAT32 && i < count; i++)
        if (!isfinite(x[i]))
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: sample %" PRId64 ", element %" PRId64 ": expected a finite float32 number, found %g",
                             name, i / size, i % size, (double)x[i]);
    return SDLF_OK;
}

/* The elements in file order, converted to the samples' type. */
static sdlf_status take_elements(sdlf_tensor *lying, npy_file *file, sdlf_dtype dtype)
{
    sdlf_tensor found = {0};
    sdlf_status status = read_tensor_create(lying, dtype, file->tensor.shape, file->name);
    if (status == SDLF_OK && file->tensor.dtype == dtype) return npy_take(file, lying->data);
    if (status == SDLF_OK) status = read_tensor_create(&found, file->tensor.dtype, file->tensor.shape, file->name);
    if (status == SDLF_OK) status = npy_take(file, found.data);
    if (status == SDLF_OK) sdlf_convert(dtype, lying->data, found.dtype, found.data, sdlf_tensor_count(&found));
    sdlf_tensor_release(&found, NULL);
    return status;
}

sdlf_status arrays_take_samples(sdlf_dataset *dataset, npy_file *file, const sdlf_dataset_options *options)
{
    bool behind;
    if (options->unlabelled) take_single(&file->tensor, options->sample);
    sdlf_shape shape = shape_of(file->tensor.shape, options->sample, &behind);
    sdlf_dtype dtype = file->tensor.dtype == SDLF_UINT8 ? SDLF_UINT8 : SDLF_FLOAT32;
    bool known = options->sample.rank > 0;
    if (shape.rank == 0 || sdlf_shape_count(shape) == 0 || shape.dim[0] > INT32_MAX)
        return sdlf_fail(
            SDLF_ERROR_FORMAT,
            "%s: expected images (N,H,W), (N,H,W,C) or (N,C,H,W) with 1 to %d channels, or rows (N,F), or (N,%s), the "
            "input of the network%s, found %s of (%s)",
            file->name, MOST_CHANNELS, known ? sdlf_shape_print(options->sample).text : "...", known ? "" : "'s file",
            sdlf_dtype_name(file->tensor.dtype), sdlf_shape_print(file->tensor.shape).text);
    dataset->samples = sdlf_tensor_view(dtype, shape, NULL);
    if (options->outline) return SDLF_OK;
    sdlf_tensor lying = {0};
    sdlf_status status = take_elements(&lying, file, dtype);
    if (status == SDLF_OK && behind && shape.dim[1] > 1) {
        status = read_tensor_create(&dataset->samples, dtype, shape, file->name);
        if (status == SDLF_OK) channels_to_planes(dataset->samples.data, lying.data, shape, sdlf_dtype_size(dtype));
        sdlf_tensor_release(&lying, NULL);
    } else if (status == SDLF_OK) {
        dataset->samples = sdlf_tensor_view(dtype, shape, lying.data); /* takes ownership of the data */
    } else {
        sdlf_tensor_release(&lying, NULL);
    }
    return status == SDLF_OK ? check_numbers(&dataset->samples, file->name) : status;
}

/* ---- labels ---- */

static sdlf_status no_labels(const npy_file *file, int64_t count)
{
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: expected %" PRId64
                     " labels, one for each image or each of its pixels, uint8, int32 or int64, found %s of (%s)%s",
                     file->name, count, sdlf_dtype_name(file->tensor.dtype), sdlf_shape_print(file->tensor.shape).text,
                     sdlf_dtype_is_float(file->tensor.dtype) ? "; float targets need a loss: --loss mse" : "");
}

/* Label i; -2: it is not an integer. */
static int64_t label_at(const sdlf_tensor *found, int64_t i)
{
    if (found->dtype == SDLF_INT64) return ((const int64_t *)found->data)[i];
    double label = ((const double *)found->data)[i];
    return label >= -1 && label <= MOST_CLASSES && label == floor(label) ? (int64_t)label : -2;
}

static sdlf_status read_labels(sdlf_dataset *dataset, npy_file *file, int64_t count, int32_t *to)
{
    sdlf_tensor found = {0};
    bool real = sdlf_dtype_is_float(file->tensor.dtype);
    sdlf_status status = take_elements(&found, file, real ? SDLF_FLOAT64 : SDLF_INT64);
    bool pixels = file->tensor.shape.rank == 3, bytes = file->tensor.dtype == SDLF_UINT8;
    for (int64_t i = 0; status == SDLF_OK && i < count; i++) {
        int64_t label = label_at(&found, i);
        if (pixels && label == (bytes ? 255 : -1)) {
            if (to != NULL) to[i] = -1;
            continue;
        }
        if (real && label == -2)
            status = no_labels(file, count);
        else if (label < 0 || label >= MOST_CLASSES)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: label %" PRId64 ": expected 0 to %d, found %" PRId64, file->name,
                               i, MOST_CLASSES - 1, label);
        else if (label >= dataset->class_count)
            dataset->class_count = (int)label + 1;
        if (status == SDLF_OK && to != NULL) to[i] = (int32_t)label;
    }
    sdlf_tensor_release(&found, NULL);
    return status;
}

/* True if the array has one label per sample (integers, or floats with integer values) or one per pixel. */
static bool are_labels(const sdlf_tensor *found, sdlf_shape samples)
{
    sdlf_dtype t = found->dtype;
    const int64_t *dim = found->shape.dim;
    bool whole = t == SDLF_UINT8 || t == SDLF_INT8 || t == SDLF_INT32 || t == SDLF_INT64;
    bool pixels = found->shape.rank == 3 && samples.rank == 4 && dim[1] == samples.dim[2] && dim[2] == samples.dim[3];
    bool one = found->shape.rank == 1 || (found->shape.rank == 2 && dim[1] == 1);
    return (whole && pixels) || (one && (whole || sdlf_dtype_is_float(t)));
}

sdlf_status arrays_take_labels(sdlf_dataset *dataset, npy_file *file)
{
    int64_t count = dataset->samples.shape.dim[0];
    sdlf_shape shape = file->tensor.shape;
    if (!are_labels(&file->tensor, dataset->samples.shape) || shape.dim[0] != count) return no_labels(file, count);
    if (shape.rank == 2) shape = sdlf_shape(count);
    sdlf_status status = read_tensor_create(&dataset->labels, SDLF_INT32, shape, file->name);
    if (status == SDLF_OK) status = read_labels(dataset, file, sdlf_shape_count(shape), dataset->labels.data);
    if (status == SDLF_OK && dataset->class_count == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: every label is the one of ignored pixels", file->name);
    return status;
}

sdlf_status arrays_take_targets(sdlf_dataset *dataset, npy_file *file)
{
    int64_t count = dataset->samples.shape.dim[0];
    sdlf_shape found = file->tensor.shape;
    int64_t each = found.rank > 0 ? sdlf_shape_span(found, 1, found.rank) : 0;
    if (found.rank == 0 || found.dim[0] != count || each < 1 || each > MOST_CLASSES)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: expected float targets (%" PRId64 ") or (%" PRId64
                         ",K), one row for each sample, found (%s)",
                         file->name, count, count, sdlf_shape_print(found).text);
    sdlf_status status = take_elements(&dataset->labels, file, SDLF_FLOAT32);
    if (status != SDLF_OK) return status;
    dataset->labels = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count, each), dataset->labels.data);
    dataset->class_count = (int)each;
    return SDLF_OK;
}

sdlf_status arrays_count_classes(sdlf_dataset *dataset, npy_file *file)
{
    const sdlf_tensor *found = &file->tensor;
    if (!are_labels(found, dataset->samples.shape))
        return no_labels(file, found->shape.rank > 0 ? found->shape.dim[0] : 1);
    return read_labels(dataset, file, sdlf_tensor_count(found), NULL);
}
