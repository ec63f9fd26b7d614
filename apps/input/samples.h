/* SPDX-License-Identifier: MIT */
/* A data set's samples as inputs of a plan that is timed or compared: zeros would take less or more time than real
 * data. */
#ifndef SDLF_APPS_INPUT_SAMPLES_H
#define SDLF_APPS_INPUT_SAMPLES_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/output/terminal.h"

/* Open a data set. Images are resized to `sample` (C,H,W) if the set has images of any size (folder); a scalar keeps
 * their size. Unreadable images are left out with a warning of `command` (NULL: silently), or, if `strict`, are an
 * error. Progress is shown for long work. */
typedef struct samples_request {
    const char *set; /* "folder:flowers" */
    sdlf_split split;
    sdlf_shape sample;
    const sdlf_model
        *model;           /* that arrays are for: they are read with its input's shape; NULL: read as images or rows */
    bool whole;           /* all samples of unsplit data: another set takes the place of the other part */
    bool unlabelled;      /* npy:FILE may name samples without labels */
    bool strict, targets; /* targets: its labels are values, not classes */
    int64_t workers,
        cache; /* threads that decode, 0: one for each processor; megabytes of decoded samples to keep, 0: all */
    const char *command;
} samples_request;
sdlf_status samples_open(sdlf_dataset **data, const samples_request *request);

/* The same without reading the images: only shapes and classes are known. */
sdlf_status samples_outline(sdlf_dataset **data, const samples_request *request);

/* True if two names mean the same samples. Files are compared by identity, not by spelling of their paths; the columns
 * that are read make no difference. */
bool samples_same_set(const char *a, const char *b);

/* Print the available data sets, for --help. */
void samples_print_list(const terminal *out);

/* Open --net for that data set: a built-in network is created for its samples and classes, as sdlf train does. */
sdlf_status samples_open_network(sdlf_model **model, const char *net, const char *set);

/* The shape of the images that the model's first input takes, (C,H,W); a scalar: it takes none. */
sdlf_shape samples_shape(const sdlf_model *model);

/* The feed from which a training plan of this model draws its batches. The data are borrowed, as are the names of the
 * model's inputs. Samples are normalised as the model specifies, or, if it does not, as the data set does. */
sdlf_feed samples_feed(sdlf_model *model, const sdlf_dataset *data);

/* True if the model's first output, or the scores that its loss reads, have at least as many classes as the data, or if
 * that is unknown. */
bool samples_fit(const sdlf_model *model, const sdlf_dataset *data);

/* The same as a status: SDLF_ERROR_SHAPE, with both numbers. Labels are indices, so check this before any step. */
sdlf_status samples_check(const sdlf_model *model, const sdlf_dataset *data);

/* Write the first `batch` samples, and in a training plan their labels, into the plan's inputs. Errors:
 * SDLF_ERROR_ARGUMENT: the data set has fewer; SDLF_ERROR_SHAPE: they do not fit. */
sdlf_status samples_write(sdlf_plan *plan, sdlf_model *model, const sdlf_dataset *data, int64_t batch, sdlf_mode mode);

/* The same with values in [-1, 1) that depend only on the seed, for every input of any shape. Labels cycle through the
 * classes, as many as the first output has columns; other integers are 0 and 1, or 0 if they index a table of one
 * row. */
sdlf_status samples_write_random(sdlf_plan *plan, sdlf_model *model, sdlf_mode mode, uint64_t seed);

#endif
