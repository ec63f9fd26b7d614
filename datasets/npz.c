/* SPDX-License-Identifier: MIT */
/* npz: arrays of an archive written by NumPy's savez or savez_compressed.
 *
 *     npz:FILE                   x_train, y_train, x_test and y_test, or other names of `halves`; or one pair of
 *                                `pairs` for both halves
 *     npz:FILE,IMAGES,LABELS     the arrays of these names, for both halves
 *     npz:...,all                all samples of one pair in both halves; otherwise a fifth is held out (hold_out.c)
 *
 * arrays.h says which arrays are accepted. An archive is unpacked array by array, each within budget.h's budget. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/arrays.h"
#include "datasets/datasets_internal.h"
#include "datasets/npz.h"
#include "framework/formats/budget.h"
#include "framework/formats/text.h"

enum { KEY_SIZE = 256, LIST_SIZE = 400 };

typedef struct pair {
    const char *samples, *labels;
} pair;

static const struct {
    pair train, test;
} halves[] = {
    {{"x_train", "y_train"}, {"x_test", "y_test"}},
    {{"X_train", "y_train"}, {"X_test", "y_test"}},
    {{"train_images", "train_labels"}, {"test_images", "test_labels"}},
    {{"train_x", "train_y"}, {"test_x", "test_y"}},
};

static const pair pairs[] = {{"x", "y"},         {"X", "y"},        {"images", "labels"}, {"samples", "labels"},
                             {"data", "labels"}, {"data", "target"}};

static bool find_array(const zip_archive *archive, const char *name, zip_entry *entry)
{
    char key[KEY_SIZE];
    if (snprintf(key, sizeof key, "%s.npy", name) >= KEY_SIZE) return false;
    return zip_find(archive, key, entry) || zip_find(archive, name, entry);
}

static bool has(const zip_archive *archive, pair p)
{
    zip_entry entry;
    return find_array(archive, p.samples, &entry) && find_array(archive, p.labels, &entry);
}

/* List the arrays of the archive, for a message. */
static void list_arrays(const zip_archive *archive, char *list)
{
    size_t at = 0, used = 0;
    list[0] = '\0';
    for (zip_entry entry; zip_next(archive, &at, &entry) && used < LIST_SIZE - 80;) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(entry.name_length < 60 ? entry.name_length : 60), entry.name);
        used += (size_t)snprintf(list + used, LIST_SIZE - used, "%s%s", used > 0 ? ", " : "", text_show(name).text);
    }
}

/* ---- one array ---- */

typedef sdlf_status array_use(sdlf_dataset *dataset, npy_file *file, const void *context);

static sdlf_status use_array(sdlf_dataset *dataset, const zip_archive *archive, const char *name, array_use *use,
                             const void *context)
{
    zip_entry entry;
    zip_stream stream;
    npy_file file;
    read_budget budget;
    if (!find_array(archive, name, &entry)) {
        char list[LIST_SIZE];
        list_arrays(archive, list);
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: there is no array '%s'; there are: %s", archive->name,
                         text_show(name).text, list);
    }
    sdlf_status status = zip_stream_open(&stream, archive, &entry);
    if (status != SDLF_OK) return status;
    status = read_budget_make(&budget, archive->size, 0);
    if (status == SDLF_OK) status = read_budget_check(&budget, entry.size, stream.name);
    if (status == SDLF_OK) status = npy_open_from(&file, stream.name, (size_t)entry.size, zip_stream_read, &stream);
    if (status == SDLF_OK) status = use(dataset, &file, context);
    zip_stream_close(&stream);
    return status;
}

static sdlf_status use_samples(sdlf_dataset *dataset, npy_file *file, const void *options)
{
    return arrays_take_samples(dataset, file, options);
}

static sdlf_status use_labels(sdlf_dataset *dataset, npy_file *file, const void *unused)
{
    (void)unused;
    return arrays_take_labels(dataset, file);
}

static sdlf_status use_targets(sdlf_dataset *dataset, npy_file *file, const void *unused)
{
    (void)unused;
    return arrays_take_targets(dataset, file);
}

static sdlf_status count_labels(sdlf_dataset *dataset, npy_file *file, const void *unused)
{
    (void)unused;
    return arrays_count_classes(dataset, file);
}

/* ---- the data set ---- */

/* Choose the arrays to read; `other` names the labels of the other half, NULL: there is none. */
static sdlf_status choose(const zip_archive *archive, sdlf_split split, pair *wanted, const char **other)
{
    *other = NULL;
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        if (!has(archive, halves[i].train) || !has(archive, halves[i].test)) continue;
        *wanted = split == SDLF_SPLIT_TRAIN ? halves[i].train : halves[i].test;
        *other = split == SDLF_SPLIT_TRAIN ? halves[i].test.labels : halves[i].train.labels;
        return SDLF_OK;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        *wanted = pairs[i];
        if (has(archive, pairs[i])) return SDLF_OK;
    }
    char list[LIST_SIZE];
    list_arrays(archive, list);
    return sdlf_fail(
        SDLF_ERROR_FORMAT,
        "%s: expected the arrays x_train, y_train, x_test and y_test, or x and y, or images and labels, found %s; "
        "npz:FILE,IMAGES,LABELS names others",
        archive->name, list);
}

sdlf_status npz_take(sdlf_dataset *dataset, const zip_archive *archive, const char *images, const char *labels,
                     sdlf_split split, const sdlf_dataset_options *options)
{
    pair wanted = {images, labels};
    const char *other = NULL;
    sdlf_status status = images == NULL ? choose(archive, split, &wanted, &other) : SDLF_OK;
    if (status == SDLF_OK) status = use_array(dataset, archive, wanted.samples, use_samples, options);
    if (status == SDLF_OK)
        status = use_array(dataset, archive, wanted.labels, options->targets ? use_targets : use_labels, NULL);
    if (status == SDLF_OK && other != NULL && !options->targets)
        status = use_array(dataset, archive, other, count_labels, NULL);
    if (status == SDLF_OK && other == NULL && !options->whole) status = sdlf_dataset_hold_out(dataset, split);
    return status;
}

/* FILE and the names of its arrays, in one block; NULL: not given. */
typedef struct parts {
    char *file, *images, *labels;
    bool all;
} parts;

static sdlf_status split_argument(parts *p, const char *argument)
{
    *p = (parts){.file = NULL};
    const char *wanted = "npz: expected npz:FILE or npz:FILE,IMAGES,LABELS, found 'npz:%s'";
    if (argument == NULL || *argument == '\0' || *argument == ',')
        return sdlf_fail(SDLF_ERROR_ARGUMENT, wanted, argument != NULL ? argument : "");
    p->file = strdup(argument);
    if (p->file == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "npz: out of memory");
    p->all = sdlf_dataset_takes_all(p->file);
    p->images = strchr(p->file, ',');
    if (p->images == NULL) return SDLF_OK;
    *p->images++ = '\0';
    p->labels = strchr(p->images, ',');
    if (p->labels != NULL && p->labels > p->images && p->labels[1] != '\0') {
        *p->labels++ = '\0';
        return SDLF_OK;
    }
    free(p->file);
    p->file = NULL;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, wanted, argument);
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    parts p;
    zip_archive archive;
    sdlf_status status = split_argument(&p, argument);
    if (status == SDLF_OK) status = sdlf_dataset_name(dataset, "npz", p.file);
    if (status == SDLF_OK) status = zip_open(&archive, p.file);
    if (status == SDLF_OK) {
        sdlf_dataset_options all = *options;
        all.whole = options->whole || p.all;
        status = npz_take(dataset, &archive, p.images, p.labels, split, &all);
        zip_close(&archive);
    }
    if (status == SDLF_OK && !options->outline) sdlf_dataset_measure(dataset);
    free(p.file);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    parts p;
    pair wanted;
    const char *other;
    zip_archive archive;
    sdlf_status status = split_argument(&p, argument);
    if (status == SDLF_OK) status = zip_open(&archive, p.file);
    if (status == SDLF_OK) {
        if (p.images == NULL) status = choose(&archive, split, &wanted, &other);
        zip_close(&archive);
    }
    free(p.file);
    return status;
}

const sdlf_dataset_class sdlf_npz_dataset_class = {
    .name = "npz",
    .summary =
        "npz:FILE, the arrays x_train, y_train, x_test and y_test of a NumPy archive, or x and y, or images and "
        "labels, of which a fifth is held out for testing unless ,all is appended; npz:FILE,IMAGES,LABELS names others",
    .load = load,
    .check = check,
};
