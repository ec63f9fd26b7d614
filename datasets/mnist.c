/* SPDX-License-Identifier: MIT */
/* mnist: a folder of the four files of MNIST, or of any set in the same format (Fashion-MNIST, KMNIST, EMNIST, custom
 * sets with images of any size and up to 256 classes).
 *
 * Files, plain or gzip: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte,
 * t10k-labels-idx1-ubyte, with or without .gz; "idx" may follow a "." instead of a "-", and "test" may replace "t10k".
 * Images of several channels (M,C,H,W) have "idx4" instead of "idx3". `mnist:DIR/PREFIX` finds files whose names begin
 * with "PREFIX-", such as EMNIST's emnist-letters-train-images-idx3-ubyte.gz. `mnist` means `mnist:data/mnist`.
 *
 * Classes are numbered from 0 without a gap: there are at least 10, and one more for each following label that the
 * training set has (EMNIST Balanced: 47; EMNIST Letters, labels 1 to 26: 27). The test set has the classes of its
 * training set, if that exists. Larger labels are out of range. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/datasets_internal.h"
#include "datasets/idx.h"

enum { PATH_SIZE = 4096, LABEL_VALUES = 256, LEAST_CLASSES = 10 };

typedef struct source {
    const char *argument; /* as given */
    const char *joint;    /* between the argument and a file's name: "/" after a folder, "-" after a prefix */
} source;

/* Find the file of a split's images or labels; the path is empty if there is none. */
static sdlf_status find_file(char path[PATH_SIZE], source from, sdlf_split split, const char *kind, int rank)
{
    static const char *const stems[][2] = {
        [SDLF_SPLIT_TRAIN] = {"train", "train"}, [SDLF_SPLIT_TEST] = {"t10k", "test"}};
    for (int form = 0; form < 8; form++) {
        const char *stem = stems[split][form >> 2], *dot = form & 1 ? "." : "-", *gz = form & 2 ? ".gz" : "";
        int length =
            snprintf(path, PATH_SIZE, "%s%s%s-%s%sidx%d-ubyte%s", from.argument, from.joint, stem, kind, dot, rank, gz);
        if (length < 0 || length >= PATH_SIZE) {
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "mnist: the folder's name is too long (%zu bytes)",
                             strlen(from.argument));
        }
        struct stat about;
        if (stat(path, &about) == 0) return SDLF_OK;
        if (errno != ENOENT && errno != ENOTDIR) {
            return sdlf_fail(SDLF_ERROR_IO, "%s: cannot open: %s", path, strerror(errno));
        }
    }
    path[0] = '\0';
    return SDLF_OK;
}

static sdlf_status not_found(source from, sdlf_split split, const char *kind, int rank)
{
    static const char help[] = "sdlf-get-mnist (scripts/get-mnist.sh of SDLF's sources) downloads MNIST into a folder";
    const char *stem = split == SDLF_SPLIT_TRAIN ? "train" : "t10k";
    if (from.joint[0] == '/')
        return sdlf_fail(SDLF_ERROR_IO,
                         "mnist: '%s' lacks a file: looked for %s-%s-idx%d-ubyte and %s-%s.idx%d-ubyte, with and "
                         "without .gz; %s",
                         from.argument, stem, kind, rank, stem, kind, rank, help);
    return sdlf_fail(SDLF_ERROR_IO, "mnist: there is no folder '%s', nor files that begin with '%s-%s-%s'; %s",
                     from.argument, from.argument, stem, kind, help);
}

/* Find and read a file, and check that it has the rank its name promises. A missing file is an error, or, if it is
 * optional, an absent tensor. An outline has a shape and no elements. */
static sdlf_status read_file(sdlf_tensor *tensor, char path[PATH_SIZE], source from, sdlf_split split, int rank,
                             bool optional, bool outline)
{
    const char *kind = rank == 1 ? "labels" : "images";
    *tensor = (sdlf_tensor){0};
    sdlf_status status = find_file(path, from, split, kind, rank);
    if (status != SDLF_OK) return status;
    if (path[0] == '\0') return optional ? SDLF_OK : not_found(from, split, kind, rank);
    status = outline ? sdlf_idx_read_outline(tensor, path) : sdlf_idx_read(tensor, path);
    if (status == SDLF_OK && tensor->shape.rank != rank) {
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte 3: expected a rank of %d (%s), found %d", path, rank, kind,
                           tensor->shape.rank);
        sdlf_tensor_release(tensor, NULL);
        *tensor = (sdlf_tensor){0};
    }
    return status;
}

static int count_classes(const sdlf_tensor *labels)
{
    bool seen[LABEL_VALUES] = {false};
    const unsigned char *label = labels->data;
    for (int64_t i = 0; i < labels->shape.dim[0]; i++) seen[label[i]] = true;
    int count = LEAST_CLASSES;
    while (count < LABEL_VALUES && seen[count]) count++;
    return count;
}

/* The number of classes: that of the training labels, or, if there is only a test set, of its labels. */
static sdlf_status find_class_count(int *count, source from, sdlf_split split, const sdlf_tensor *labels)
{
    char path[PATH_SIZE];
    sdlf_tensor training = {0};
    *count = count_classes(labels);
    if (split == SDLF_SPLIT_TRAIN) return SDLF_OK;
    sdlf_status status = read_file(&training, path, from, SDLF_SPLIT_TRAIN, 1, true, false);
    if (status != SDLF_OK || !sdlf_tensor_present(&training)) return status;
    *count = count_classes(&training);
    sdlf_tensor_release(&training, NULL);
    return SDLF_OK;
}

/* Convert the labels to int32; each must be one of the classes. */
static sdlf_status convert_labels(sdlf_dataset *dataset, const sdlf_tensor *bytes, const char *path)
{
    int64_t count = bytes->shape.dim[0];
    const unsigned char *from = bytes->data;
    sdlf_status status = sdlf_tensor_create(&dataset->labels, NULL, SDLF_INT32, bytes->shape);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", path);
    int32_t *to = dataset->labels.data;
    for (int64_t i = 0; i < count; i++) {
        if (from[i] >= dataset->class_count) {
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: byte %" PRId64 ": expected a label of 0 to %d, found %d (label %" PRId64
                             " of the file)",
                             path, sdlf_idx_header_size(1) + i, dataset->class_count - 1, from[i], i);
        }
        to[i] = from[i];
    }
    return SDLF_OK;
}

static sdlf_status load_labels(sdlf_dataset *dataset, char path[PATH_SIZE], source from, sdlf_split split)
{
    sdlf_tensor bytes;
    sdlf_status status = read_file(&bytes, path, from, split, 1, false, false);
    if (status != SDLF_OK) return status;
    status = find_class_count(&dataset->class_count, from, split, &bytes);
    if (status == SDLF_OK) status = convert_labels(dataset, &bytes, path);
    sdlf_tensor_release(&bytes, NULL);
    return status;
}

/* Read grey images (M,H,W), or, if there are none, images of several channels (M,C,H,W). */
static sdlf_status read_images(sdlf_tensor *images, char path[PATH_SIZE], source from, sdlf_split split, bool outline)
{
    sdlf_status status = read_file(images, path, from, split, 3, true, outline);
    if (status == SDLF_OK && path[0] == '\0') status = read_file(images, path, from, split, 4, true, outline);
    return status == SDLF_OK && path[0] == '\0' ? not_found(from, split, "images", 3) : status;
}

static sdlf_status load_images(sdlf_dataset *dataset, const char *labels_path, source from, sdlf_split split,
                               bool outline)
{
    char path[PATH_SIZE];
    sdlf_status status = read_images(&dataset->samples, path, from, split, outline);
    if (status != SDLF_OK) return status;
    sdlf_shape shape = dataset->samples.shape;
    int64_t labels = dataset->labels.shape.dim[0];
    if (shape.dim[0] != labels) {
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: byte 4: expected %" PRId64 " images, one for each label of %s, found %" PRId64, path,
                         labels, labels_path, shape.dim[0]);
    }
    if (shape.dim[0] > INT32_MAX) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte 4: expected at most %d images, found %" PRId64, path, INT32_MAX,
                         shape.dim[0]);
    }
    if (shape.rank == 3)
        dataset->samples =
            sdlf_tensor_reshape(dataset->samples, sdlf_shape(shape.dim[0], 1, shape.dim[1], shape.dim[2]));
    return SDLF_OK;
}

static source source_of(const char *argument)
{
    source from = {.argument = argument != NULL && *argument != '\0' ? argument : "data/mnist"};
    struct stat about;
    from.joint = stat(from.argument, &about) == 0 && S_ISDIR(about.st_mode) ? "/" : "-";
    return from;
}

/* Check that both files exist. */
static sdlf_status check(const char *argument, sdlf_split split)
{
    char path[PATH_SIZE];
    source from = source_of(argument);
    sdlf_status status = find_file(path, from, split, "labels", 1);
    if (status == SDLF_OK && path[0] == '\0') return not_found(from, split, "labels", 1);
    if (status == SDLF_OK) status = find_file(path, from, split, "images", 3);
    if (status == SDLF_OK && path[0] == '\0') status = find_file(path, from, split, "images", 4);
    return status == SDLF_OK && path[0] == '\0' ? not_found(from, split, "images", 3) : status;
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    char labels_path[PATH_SIZE];
    source from = source_of(argument);

    dataset->mean = SDLF_HANDWRITING_MEAN;
    dataset->scale = SDLF_HANDWRITING_SCALE;
    sdlf_status status = sdlf_dataset_name(dataset, "mnist", from.argument);
    if (status == SDLF_OK) status = load_labels(dataset, labels_path, from, split);
    if (status == SDLF_OK) status = load_images(dataset, labels_path, from, split, options->outline);
    if (status == SDLF_OK && dataset->samples.shape.dim[1] > 1 && !options->outline) sdlf_dataset_measure(dataset);
    return status;
}

const sdlf_dataset_class sdlf_mnist_dataset_class = {
    .name = "mnist",
    .summary = "mnist:DIR, a folder of MNIST's four IDX files, or of another set in the same format",
    .load = load,
    .check = check,
};
