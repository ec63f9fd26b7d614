/* SPDX-License-Identifier: MIT */
/* npy: two NumPy arrays, npy:IMAGES,LABELS (arrays.h says which are accepted). The same two serve training and testing,
 * for which a fifth of the samples is held out (hold_out.c), unless npy:IMAGES,LABELS,all is given or another set is specified
 * for each. */
#include <stdlib.h>
#include <string.h>

#include "datasets/arrays.h"
#include "datasets/datasets_internal.h"
#include "framework/formats/budget.h"

typedef struct paths {
    char *images, *labels; /* in one block */
    bool all;
} paths;

static sdlf_status split_argument(paths *p, const char *argument, bool unlabelled)
{
    *p = (paths){.images = NULL};
    if (unlabelled) {
        p->images = argument != NULL ? strdup(argument) : NULL;
        return p->images != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_ARGUMENT, "npy: expected npy:FILE");
    }
    if (arrays_split(&p->images, &p->labels, argument)) {
        p->all = sdlf_dataset_takes_all(p->labels);
        return SDLF_OK;
    }
    bool memory = argument != NULL && p->images == NULL;
    free(p->images);
    if (memory) return sdlf_fail(SDLF_ERROR_MEMORY, "npy: out of memory");
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "npy: expected npy:IMAGES,LABELS[,all], found 'npy:%s'",
                     argument != NULL ? argument : "");
}

static sdlf_status no_labels(sdlf_dataset *dataset, const char *name)
{
    dataset->class_count = 1;
    return read_tensor_create(&dataset->labels, SDLF_INT32, sdlf_shape(dataset->samples.shape.dim[0]), name);
}

static sdlf_status take(sdlf_dataset *dataset, const paths *p, const sdlf_dataset_options *options)
{
    npy_file file;
    sdlf_status status = npy_open(&file, p->images);
    if (status != SDLF_OK) return status;
    status = arrays_take_samples(dataset, &file, options);
    npy_close(&file);
    if (status == SDLF_OK && options->unlabelled) return no_labels(dataset, p->images);
    if (status == SDLF_OK) status = npy_open(&file, p->labels);
    if (status != SDLF_OK) return status;
    status = options->targets ? arrays_take_targets(dataset, &file) : arrays_take_labels(dataset, &file);
    npy_close(&file);
    return status;
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    paths p;
    sdlf_status status = split_argument(&p, argument, options->unlabelled);
    if (status != SDLF_OK) return status;
    status = sdlf_dataset_name(dataset, "npy", p.images);
    if (status == SDLF_OK) status = take(dataset, &p, options);
    if (status == SDLF_OK && !p.all && !options->whole && !options->unlabelled)
        status = sdlf_dataset_hold_out(dataset, split);
    if (status == SDLF_OK && !options->outline && !options->unlabelled) sdlf_dataset_measure(dataset);
    free(p.images);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    paths p;
    npy_file file;
    (void)split;
    sdlf_status status = split_argument(&p, argument, false);
    if (status != SDLF_OK) return status;
    for (int which = 0; status == SDLF_OK && which < 2; which++) {
        status = npy_open(&file, which == 0 ? p.images : p.labels);
        if (status == SDLF_OK) npy_close(&file);
    }
    free(p.images);
    return status;
}

const sdlf_dataset_class sdlf_npy_dataset_class = {
    .name = "npy",
    .summary =
        "npy:IMAGES,LABELS, two NumPy arrays: images or rows of numbers, and whole numbers or float targets; a fifth "
        "of them is held out for testing unless ,all is appended",
    .load = load,
    .check = check,
};
