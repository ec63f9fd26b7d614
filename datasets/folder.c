/* SPDX-License-Identifier: MIT */
/* folder: images in one subfolder per class, of any size and in any format of <sdlf/image.h>.
 *
 *     DIR/roses/1.jpg, DIR/tulips/a.png, ...              about every fifth image is for testing
 *     DIR/train/roses/1.jpg, DIR/test/roses/9.jpg, ...    or val, valid, validation
 *
 * The subfolders' names, sorted, are the class names. Each image is cropped at its centre to the samples' aspect ratio and scaled to their
 * size; by default, that is the size of the images. Samples have three channels unless one is requested. Files that are not images are
 * skipped and counted, or, on request, refused. Each channel is normalised by its mean and deviation over the training images. If the
 * cache (sdlf_dataset_options.cache) is smaller than all samples, these are read once when the set is opened, for the checks and sums
 * above, and again whenever one is needed that is not cached. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/image.h>
#include <sdlf/machine.h>

#include "datasets/datasets_internal.h"
#include "datasets/folder_stream.h"
#include "datasets/unread.h"
#include "framework/formats/budget.h"
#include "framework/formats/text.h"
#include "framework/parallel.h"

enum { COLOURS = 3, LARGEST_SIDE = 65535, MESSAGE_SIZE = 512 };

/* ---- all images ---- */

/* The first failure, in the order of the images. */
typedef struct failure {
    int64_t picture, count; /* count: failures so far */
    sdlf_status status;
    char message[MESSAGE_SIZE];
} failure;

typedef struct decoding {
    const char *folder;
    const folder_files *files;
    const sdlf_dataset_options *options;
    sdlf_shape shape; /* of a sample */
    bool any_size;    /* images of other sizes are scaled */
    uint8_t *samples;
    folder_stream *stream; /* NULL: all samples are kept in `samples` */
    bool *is_read;
    unread_files unread;  /* images that are skipped */
    pthread_mutex_t lock; /* guards what follows */
    failure fatal;        /* fails the whole data set */
    int64_t done;
    dataset_sums sums; /* of a stream's samples */
} decoding;

static sdlf_status check_size(const decoding *d, const sdlf_image *picture, const folder_file *file)
{
    if (d->any_size || (picture->height == d->shape.dim[1] && picture->width == d->shape.dim[2])) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE,
                     "%s/%s: %dx%d pixels (height x width), others have %dx%d; pictures of several sizes need a common "
                     "size (--size)",
                     d->folder, file->path, picture->height, picture->width, (int)d->shape.dim[1],
                     (int)d->shape.dim[2]);
}

static void note(failure *f, int64_t picture, sdlf_status status)
{
    if (f->count++ > 0 && f->picture < picture) return;
    f->picture = picture;
    f->status = status;
    snprintf(f->message, sizeof f->message, "%s", sdlf_error_message());
}

/* Read an image as sample `i`; *fatal: a failure must not be skipped. */
static sdlf_status decode_sample(const decoding *d, int64_t i, uint8_t *sample, bool *fatal)
{
    const folder_file *file = &d->files->file[i];
    sdlf_image picture = {0};
    sdlf_status status = folder_read_picture(&picture, d->folder, file);
    *fatal = d->options->strict || status == SDLF_ERROR_MEMORY;
    if (status == SDLF_OK) {
        *fatal = true;
        status = check_size(d, &picture, file);
    }
    if (status == SDLF_OK) status = folder_fill_sample(sample, &picture, d->shape, NULL);
    sdlf_image_release(&picture);
    return status;
}

static void decode(void *context, int64_t i)
{
    decoding *d = context;
    int64_t size = sdlf_shape_count(d->shape);
    bool fatal = true;
    dataset_sums sums = {.count = 0};
    uint8_t *sample = d->stream != NULL ? malloc((size_t)size) : d->samples + i * size;
    sdlf_status status = sample != NULL ? decode_sample(d, i, sample, &fatal)
                                        : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for a picture", d->folder);
    if (status == SDLF_OK && d->stream != NULL) {
        sdlf_dataset_add_sums(&sums, sample, (int)d->shape.dim[0], size / d->shape.dim[0]);
        sample_cache_keep(&d->stream->cache, i, sample);
    }
    if (d->stream != NULL) free(sample);
    d->is_read[i] = status == SDLF_OK;
    if (status != SDLF_OK && !fatal && !unread_note(&d->unread, i)) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", d->folder);
        fatal = true;
    }
    pthread_mutex_lock(&d->lock);
    if (fatal && status != SDLF_OK) note(&d->fatal, i, status);
    sdlf_dataset_join_sums(&d->sums, &sums);
    d->done++;
    if (d->options->progress != NULL) d->options->progress(d->options->progress_context, d->done, d->files->count);
    pthread_mutex_unlock(&d->lock);
}

static sdlf_status none_can_be_read(const folder_files *files, const char *why)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "none of %" PRId64 " pictures can be read; %s", files->count, why);
}

/* Close the gaps left by unread images, and check that every class still has some. */
static sdlf_status close_gaps(sdlf_dataset *dataset, const decoding *d, bool training)
{
    int64_t size = sdlf_shape_count(d->shape), kept = 0;
    int32_t *labels = dataset->labels.data;
    int64_t *of_class = calloc((size_t)dataset->class_count, sizeof *of_class);
    if (of_class == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", d->folder);
    for (int64_t i = 0; i < d->files->count; i++) {
        if (!d->is_read[i]) continue;
        labels[kept] = d->files->file[i].class_index;
        of_class[labels[kept]]++;
        if (d->stream == NULL && kept != i) memcpy(d->samples + kept * size, d->samples + i * size, (size_t)size);
        kept++;
    }
    dataset->samples.shape.dim[0] = dataset->labels.shape.dim[0] = kept;
    int empty = dataset->class_count;
    const char *why = unread_first(&d->unread);
    for (int i = dataset->class_count - 1; training && why != NULL && i >= 0; i--)
        if (of_class[i] == 0) empty = i;
    free(of_class);
    if (kept > 0 && empty == dataset->class_count) {
        if (d->stream != NULL) folder_stream_close_gaps(d->stream, d->is_read);
        return SDLF_OK;
    }
    if (kept == 0) return none_can_be_read(d->files, why);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: no picture of the class '%s' can be read; %s", d->folder,
                     text_show(dataset->class_names[empty]).text, why);
}

static sdlf_status decode_all(sdlf_dataset *dataset, decoding *d, bool training)
{
    sdlf_status status = SDLF_OK;
    if (d->stream == NULL)
        status = read_tensor_create(&dataset->samples, SDLF_UINT8, dataset->samples.shape, d->folder);
    if (status == SDLF_OK) status = read_tensor_create(&dataset->labels, SDLF_INT32, dataset->labels.shape, d->folder);
    if (status != SDLF_OK) return status;
    d->samples = dataset->samples.data;
    d->is_read = calloc((size_t)d->files->count, sizeof *d->is_read);
    if (d->is_read == NULL || !unread_begin(&d->unread, d->files->count) || pthread_mutex_init(&d->lock, NULL) != 0) {
        unread_release(&d->unread);
        free(d->is_read);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", d->folder);
    }
    parallel_for(d->files->count, d->options->threads, decode, d);
    pthread_mutex_destroy(&d->lock);
    if (d->fatal.count > 0)
        status = sdlf_fail(d->fatal.status, "%s", d->fatal.message);
    else
        status = close_gaps(dataset, d, training);
    free(d->is_read);
    unread_give(&d->unread, dataset);
    unread_release(&d->unread);
    return status;
}

/* ---- the class ---- */

/* The size of the first image that can be read. */
static sdlf_status find_size(sdlf_shape *shape, const char *folder, const folder_files *files)
{
    char first[MESSAGE_SIZE];
    for (int64_t i = 0; i < files->count; i++) {
        sdlf_image picture = {0};
        sdlf_status status = folder_read_picture(&picture, folder, &files->file[i]);
        shape->dim[1] = picture.height;
        shape->dim[2] = picture.width;
        sdlf_image_release(&picture);
        if (status == SDLF_OK || status == SDLF_ERROR_MEMORY) return status;
        if (i == 0) snprintf(first, sizeof first, "%s", sdlf_error_message());
    }
    return none_can_be_read(files, first);
}

static sdlf_status check_options(const sdlf_dataset_options *options)
{
    bool sized = options->height > 0;
    if (options->height < 0 || options->width < 0 || sized != (options->width > 0) || options->height > LARGEST_SIDE ||
        options->width > LARGEST_SIDE)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "folder: samples of %dx%d pixels: expected 1 to %d both ways",
                         options->height, options->width, LARGEST_SIDE);
    if (options->channels == 0 || options->channels == 1 || options->channels == COLOURS) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "folder: expected 1 channel or 3, found %d", options->channels);
}

/* Switch to reading samples on demand. */
static sdlf_status begin_stream(sdlf_dataset *dataset, decoding *d, folder_files *files)
{
    sdlf_status status = folder_stream_create(&d->stream, d->folder, files, d->shape, d->options->cache);
    dataset->read = folder_stream_read;
    dataset->read_part = folder_stream_read_part;
    dataset->read_context = d->stream;
    dataset->free_context = folder_stream_free;
    dataset->readers = d->options->threads > 0 ? d->options->threads : (int)sdlf_machine_processors();
    if (d->stream != NULL) d->files = &d->stream->files;
    return status;
}

static sdlf_status load_files(sdlf_dataset *dataset, const char *folder, folder_files *files, bool training,
                              const sdlf_dataset_options *options)
{
    decoding d = {.folder = folder, .files = files, .options = options, .any_size = options->height > 0};
    d.shape = sdlf_shape(options->channels > 0 ? options->channels : COLOURS, options->height, options->width);
    sdlf_status status = d.any_size ? SDLF_OK : find_size(&d.shape, folder, files);
    if (status != SDLF_OK) return status;
    dataset->samples =
        sdlf_tensor_view(SDLF_UINT8, sdlf_shape(files->count, d.shape.dim[0], d.shape.dim[1], d.shape.dim[2]), NULL);
    dataset->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(files->count), NULL);
    if (options->outline) return SDLF_OK;
    bool streams = options->cache > 0 && options->cache < sdlf_tensor_bytes(&dataset->samples);
    if (streams) status = begin_stream(dataset, &d, files);
    if (status == SDLF_OK) status = decode_all(dataset, &d, training);
    if (status == SDLF_OK && streams) sdlf_dataset_measure_sums(dataset, &d.sums);
    if (status == SDLF_OK && !streams) sdlf_dataset_measure(dataset);
    return status;
}

static sdlf_status check_argument(const char *argument)
{
    if (argument != NULL && *argument != '\0') return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "folder: expected folder:DIR, a folder with a subfolder of pictures for each class");
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    folder_files files = {.count = 0};
    sdlf_status status = check_argument(argument);
    if (status == SDLF_OK) status = check_options(options);
    if (status == SDLF_OK) status = sdlf_dataset_name(dataset, "folder", argument);
    if (status != SDLF_OK) return status;
    status = folder_list(&files, argument, split);
    if (status == SDLF_OK) {
        dataset->class_names = files.class_names;
        dataset->class_count = files.class_count;
        dataset->fit = SDLF_FIT_CROP;
        files.class_names = NULL;
        files.class_count = 0;
        status = load_files(dataset, argument, &files, split == SDLF_SPLIT_TRAIN, options);
    }
    folder_files_release(&files);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    folder_files files = {.count = 0};
    sdlf_status status = check_argument(argument);
    if (status == SDLF_OK) status = folder_list(&files, argument, split);
    folder_files_release(&files);
    return status;
}

const sdlf_dataset_class sdlf_folder_dataset_class = {
    .name = "folder",
    .summary =
        "folder:DIR, pictures in a subfolder for each class (DIR/roses/1.jpg), or in DIR/train/... and DIR/test/...",
    .load = load,
    .check = check,
};
