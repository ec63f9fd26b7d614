/* SPDX-License-Identifier: MIT */
/* cifar10 and cifar100: folders of the binary version of CIFAR (A. Krizhevsky, Learning multiple layers of features
 * from tiny images, 2009), plain or gzip (.gz). A record is one label (cifar100: the coarse label, which is skipped,
 * then the fine one), then 1,024 bytes each of red, green and blue, row by row.
 *
 *     cifar10     data_batch_1.bin to data_batch_5.bin; test_batch.bin; batches.meta.txt
 *     cifar100    train.bin; test.bin; fine_label_names.txt
 *
 * Class names are read if their file exists. Each channel is normalised by its mean and deviation over the split.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/datasets_internal.h"
#include "framework/formats/budget.h"
#include "framework/formats/byte_stream.h"
#include "framework/formats/read_file.h"

enum { SIDE = 32, CHANNELS = 3, PIXELS = CHANNELS * SIDE * SIDE, MOST_FILES = 5, PATH_SIZE = 4096 };

typedef struct cifar {
    const char *kind, *fallback;      /* fallback: the default folder */
    int classes, label_bytes;         /* the last byte is the label */
    const char *files[2][MOST_FILES]; /* by split */
    const char *names;
} cifar;

static const cifar cifar10 = {
    .kind = "cifar10",
    .fallback = "data/cifar-10-batches-bin",
    .classes = 10,
    .label_bytes = 1,
    .files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
              {"test_batch.bin"}},
    .names = "batches.meta.txt",
};
static const cifar cifar100 = {
    .kind = "cifar100",
    .fallback = "data/cifar-100-binary",
    .classes = 100,
    .label_bytes = 2,
    .files = {{"train.bin"}, {"test.bin"}},
    .names = "fine_label_names.txt",
};

static const char *folder_of(const cifar *of, const char *argument)
{
    return argument != NULL && *argument != '\0' ? argument : of->fallback;
}

static bool is_there(char path[PATH_SIZE], const char *folder, const char *file, const char *gz)
{
    struct stat about;
    int length = snprintf(path, PATH_SIZE, "%s/%s%s", folder, file, gz);
    return length < PATH_SIZE && stat(path, &about) == 0;
}

static sdlf_status find_file(char path[PATH_SIZE], const cifar *of, const char *folder, const char *file)
{
    if (is_there(path, folder, file, "") || is_there(path, folder, file, ".gz")) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO,
                     "%s: '%s' lacks a file: looked for %s, with and without .gz (CIFAR's binary version)", of->kind,
                     folder, file);
}

/* Append the records of an open file to the images and labels, which have capacity for `most`. */
static sdlf_status read_records(sdlf_byte_stream *stream, const cifar *of, sdlf_dataset *dataset, int64_t most,
                                int64_t *count)
{
    uint8_t *samples = dataset->samples.data, label[2];
    int32_t *labels = dataset->labels.data;
    for (;; ++*count) {
        size_t found = 0, size = (size_t)of->label_bytes;
        int64_t at = stream->offset;
        sdlf_status status = sdlf_byte_stream_read(stream, label, size, &found);
        if (status != SDLF_OK || found == 0) return status;
        if (*count == most)
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: byte %" PRId64 ": expected the end of the file, found more records", stream->name,
                             at);
        if (found == size) status = sdlf_byte_stream_read(stream, samples + *count * PIXELS, PIXELS, &found);
        if (status != SDLF_OK) return status;
        if (found != PIXELS)
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: byte %" PRId64 ": expected a record of %d bytes from byte %" PRId64
                             ", found the end of the file",
                             stream->name, stream->offset, of->label_bytes + PIXELS, at);
        if (label[size - 1] >= of->classes)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %" PRId64 ": expected a label of 0 to %d, found %d",
                             stream->name, at + (int64_t)size - 1, of->classes - 1, label[size - 1]);
        labels[*count] = label[size - 1];
    }
}

/* The number of records in a file; for a gzip file the standard's number, since only reading the file can tell. */
static sdlf_status count_records(const sdlf_byte_stream *stream, const cifar *of, int64_t *count)
{
    enum { USUAL = 10000, LARGEST = 50000 };
    int64_t record = of->label_bytes + PIXELS;
    if (stream->compressed) {
        *count += of->label_bytes == 1 ? USUAL : LARGEST;
        return SDLF_OK;
    }
    if (stream->size > 0 && stream->size % record == 0) {
        *count += stream->size / record;
        return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected records of %" PRId64 " bytes, found a file of %" PRId64 " bytes",
                     stream->name, record, stream->size);
}

/* Read the records of all files into `dataset`; if it is NULL, only count them. */
static sdlf_status go_through(const cifar *of, const char *folder, sdlf_split split, sdlf_dataset *dataset,
                              int64_t *count)
{
    int64_t most = dataset != NULL ? dataset->labels.shape.dim[0] : 0;
    sdlf_status status = SDLF_OK;
    *count = 0;
    for (int i = 0; i < MOST_FILES && of->files[split][i] != NULL && status == SDLF_OK; i++) {
        char path[PATH_SIZE];
        sdlf_byte_stream stream;
        status = find_file(path, of, folder, of->files[split][i]);
        if (status == SDLF_OK) status = sdlf_byte_stream_open(&stream, path);
        if (status != SDLF_OK) return status;
        status = dataset != NULL ? read_records(&stream, of, dataset, most, count) : count_records(&stream, of, count);
        sdlf_byte_stream_release(&stream);
    }
    return status;
}

/* One name a line; none if the file is missing or has another number of names. */
static sdlf_status read_names(sdlf_dataset *dataset, const cifar *of, const char *folder)
{
    char path[PATH_SIZE], *text = NULL, *rest = NULL;
    size_t size = 0;
    if (!is_there(path, folder, of->names, "")) return SDLF_OK;
    sdlf_status status = read_file(&text, &size, path, 1 << 16);
    if (status != SDLF_OK) return status;
    char **names = calloc((size_t)of->classes, sizeof *names);
    int count = 0;
    bool memory = names != NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); memory && line != NULL;
         line = strtok_r(NULL, "\r\n", &rest), count++)
        if (count < of->classes) memory = (names[count] = strdup(line)) != NULL;
    free(text);
    if (memory && count == of->classes) {
        dataset->class_names = names;
        return SDLF_OK;
    }
    for (int i = 0; names != NULL && i < of->classes; i++) free(names[i]);
    free(names);
    return memory ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
}

static sdlf_status load_cifar(const cifar *of, sdlf_dataset *dataset, const char *argument, sdlf_split split,
                              const sdlf_dataset_options *options)
{
    int64_t most, count;
    const char *folder = folder_of(of, argument);
    dataset->class_count = of->classes;
    sdlf_status status = sdlf_dataset_name(dataset, of->kind, folder);
    if (status == SDLF_OK) status = go_through(of, folder, split, NULL, &most);
    if (status == SDLF_OK) status = read_names(dataset, of, folder);
    if (status != SDLF_OK) return status;
    sdlf_shape shape = sdlf_shape(most, CHANNELS, SIDE, SIDE);
    dataset->samples = sdlf_tensor_view(SDLF_UINT8, shape, NULL);
    dataset->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(most), NULL);
    if (options->outline) return SDLF_OK;
    status = read_tensor_create(&dataset->samples, SDLF_UINT8, shape, of->kind);
    if (status == SDLF_OK) status = read_tensor_create(&dataset->labels, SDLF_INT32, sdlf_shape(most), of->kind);
    if (status == SDLF_OK) status = go_through(of, folder, split, dataset, &count);
    if (status == SDLF_OK && count == 0)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: '%s' has no records", of->kind, folder);
    if (status != SDLF_OK) return status;
    dataset->samples.shape.dim[0] = dataset->labels.shape.dim[0] = count;
    sdlf_dataset_measure(dataset);
    return SDLF_OK;
}

static sdlf_status check_cifar(const cifar *of, const char *argument, sdlf_split split)
{
    int64_t count;
    return go_through(of, folder_of(of, argument), split, NULL, &count);
}

static sdlf_status load10(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                          const sdlf_dataset_options *options)
{
    return load_cifar(&cifar10, dataset, argument, split, options);
}

static sdlf_status load100(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                           const sdlf_dataset_options *options)
{
    return load_cifar(&cifar100, dataset, argument, split, options);
}

static sdlf_status check10(const char *argument, sdlf_split split)
{
    return check_cifar(&cifar10, argument, split);
}

static sdlf_status check100(const char *argument, sdlf_split split)
{
    return check_cifar(&cifar100, argument, split);
}

const sdlf_dataset_class sdlf_cifar10_dataset_class = {
    .name = "cifar10",
    .summary = "cifar10:DIR, a folder of CIFAR-10's binary files",
    .load = load10,
    .check = check10,
};

const sdlf_dataset_class sdlf_cifar100_dataset_class = {
    .name = "cifar100",
    .summary = "cifar100:DIR, a folder of CIFAR-100's binary files",
    .load = load100,
    .check = check100,
};
