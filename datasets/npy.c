/* npy: two arrays of NumPy's, npy:IMAGES,LABELS. Images are uint8: (N,H,W), (N,H,W,C) or (N,C,H,W) with 1 to 4 channels, of which the
 * last is taken where both could be meant. Labels are whole numbers (N), uint8, int32 or int64, from 0 without a gap. The same two arrays
 * are meant for training and for testing: another set is named for each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/datasets_internal.h"
#include "framework/formats/budget.h"
#include "framework/formats/npy.h"

enum { MOST_CHANNELS = 4, MOST_CLASSES = 1 << 20 };

typedef struct paths {
    char *images, *labels; /* in one block */
} paths;

static sdlf_status split_argument(paths *p, const char *argument)
{
    const char *comma = argument != NULL ? strchr(argument, ',') : NULL;
    *p = (paths){.images = NULL};
    if (comma == NULL || comma == argument || comma[1] == '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "npy: expected npy:IMAGES,LABELS, found 'npy:%s'",
                         argument != NULL ? argument : "");
    p->images = strdup(argument);
    if (p->images == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "npy: out of memory");
    p->labels = p->images + (comma - argument);
    *p->labels++ = '\0';
    return SDLF_OK;
}

/* (N,C,H,W) of the array's shape; rank 0: it holds no images. */
static sdlf_shape shape_of(sdlf_shape found, bool *channels_behind)
{
    const int64_t *dim = found.dim;
    *channels_behind = found.rank == 4 && dim[3] >= 1 && dim[3] <= MOST_CHANNELS;
    if (found.rank == 3) return sdlf_shape(dim[0], 1, dim[1], dim[2]);
    if (*channels_behind) return sdlf_shape(dim[0], dim[3], dim[1], dim[2]);
    bool before = found.rank == 4 && dim[1] >= 1 && dim[1] <= MOST_CHANNELS;
    return before ? found : SDLF_SCALAR;
}

static void channels_to_planes(uint8_t *to, const uint8_t *from, sdlf_shape shape)
{
    int64_t area = shape.dim[2] * shape.dim[3], channels = shape.dim[1];
    for (int64_t n = 0; n < shape.dim[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < area; i++) to[(n * channels + c) * area + i] = from[(n * area + i) * channels + c];
}

static sdlf_status take_images(sdlf_dataset *dataset, npy_file *file, const char *path, bool outline)
{
    bool behind;
    sdlf_shape shape = shape_of(file->tensor.shape, &behind);
    if (file->tensor.dtype != SDLF_UINT8 || shape.rank == 0 || sdlf_shape_count(shape) == 0 || shape.dim[0] > INT32_MAX)
        return sdlf_fail(
            SDLF_ERROR_FORMAT,
            "%s: expected images, uint8 of (N,H,W), (N,H,W,C) or (N,C,H,W) with 1 to %d channels, found %s "
            "of (%s)",
            path, MOST_CHANNELS, sdlf_dtype_name(file->tensor.dtype), sdlf_shape_print(file->tensor.shape).text);
    dataset->samples = sdlf_tensor_view(SDLF_UINT8, shape, NULL);
    if (outline) return SDLF_OK;
    sdlf_tensor lying = {0};
    sdlf_status status = read_tensor_create(&dataset->samples, SDLF_UINT8, shape, path);
    if (status == SDLF_OK && behind && shape.dim[1] > 1)
        status = read_tensor_create(&lying, SDLF_UINT8, file->tensor.shape, path);
    if (status == SDLF_OK) status = npy_take(file, lying.data != NULL ? lying.data : dataset->samples.data);
    if (status == SDLF_OK && lying.data != NULL) channels_to_planes(dataset->samples.data, lying.data, shape);
    sdlf_tensor_release(&lying, NULL);
    return status;
}

static sdlf_status load_images(sdlf_dataset *dataset, const char *path, bool outline)
{
    npy_file file;
    sdlf_status status = npy_open(&file, path);
    if (status != SDLF_OK) return status;
    status = take_images(dataset, &file, path, outline);
    npy_close(&file);
    return status;
}

static int64_t label_at(const sdlf_tensor *labels, int64_t i)
{
    if (labels->dtype == SDLF_UINT8) return ((const uint8_t *)labels->data)[i];
    return labels->dtype == SDLF_INT32 ? ((const int32_t *)labels->data)[i] : ((const int64_t *)labels->data)[i];
}

static sdlf_status convert_labels(sdlf_dataset *dataset, const sdlf_tensor *found, const char *path)
{
    int64_t count = dataset->samples.shape.dim[0];
    bool whole = found->dtype == SDLF_UINT8 || found->dtype == SDLF_INT32 || found->dtype == SDLF_INT64;
    if (!whole || !sdlf_shape_equal(found->shape, sdlf_shape(count)))
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: expected %" PRId64 " labels, one for each image, uint8, int32 or int64, found %s of (%s)",
                         path, count, sdlf_dtype_name(found->dtype), sdlf_shape_print(found->shape).text);
    sdlf_status status = read_tensor_create(&dataset->labels, SDLF_INT32, sdlf_shape(count), path);
    if (status != SDLF_OK) return status;
    int32_t *to = dataset->labels.data;
    for (int64_t i = 0; i < count; i++) {
        int64_t label = label_at(found, i);
        if (label < 0 || label >= MOST_CLASSES)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: label %" PRId64 ": expected 0 to %d, found %" PRId64, path, i,
                             MOST_CLASSES - 1, label);
        to[i] = (int32_t)label;
        if (label >= dataset->class_count) dataset->class_count = (int)label + 1;
    }
    return SDLF_OK;
}

static sdlf_status load_labels(sdlf_dataset *dataset, const char *path)
{
    sdlf_tensor found = {0};
    sdlf_status status = npy_read(&found, path);
    if (status != SDLF_OK) return status;
    status = convert_labels(dataset, &found, path);
    sdlf_tensor_release(&found, NULL);
    return status;
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    paths p;
    (void)split;
    sdlf_status status = split_argument(&p, argument);
    if (status != SDLF_OK) return status;
    status = sdlf_dataset_name(dataset, "npy", p.images);
    if (status == SDLF_OK) status = load_images(dataset, p.images, options->outline);
    if (status == SDLF_OK) status = load_labels(dataset, p.labels);
    if (status == SDLF_OK && !options->outline) sdlf_dataset_measure(dataset);
    free(p.images);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    paths p;
    npy_file file;
    (void)split;
    sdlf_status status = split_argument(&p, argument);
    for (int which = 0; status == SDLF_OK && which < 2; which++) {
        status = npy_open(&file, which == 0 ? p.images : p.labels);
        if (status == SDLF_OK) npy_close(&file);
    }
    free(p.images);
    return status;
}

const sdlf_dataset_class sdlf_npy_dataset_class = {
    .name = "npy",
    .summary = "npy:IMAGES,LABELS, two arrays of NumPy's: uint8 images and whole numbers",
    .load = load,
    .check = check,
};
