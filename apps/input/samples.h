/* SPDX-License-Identifier: MIT */
/* A data set's samples for the inputs of a plan that is timed or compared: zeros would be quicker or slower than what a
 * network meets. */
#ifndef SDLF_APPS_INPUT_SAMPLES_H
#define SDLF_APPS_INPUT_SAMPLES_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/output/terminal.h"

/* Open a data set. Pictures are brought to `sample` (C,H,W) where the set has some of any size (folder); a scalar: they
 * stay as they are. Ones that cannot be read are left out with a warning of `command` (NULL: in silence), or, if
 * `strict`, are an error. What takes long is shown. */
typedef struct samples_request {
    const char *set; /* "folder:flowers" */
    sdlf_split split;
    sdlf_shape sample;
    const sdlf_model
        *model;           /* that arrays are for: they are read as its input's shape says; NULL: as pictures or rows */
    bool whole;           /* all samples of data that are not in two parts: another set is for the other half */
    bool strict, targets; /* targets: its labels are numbers, and not classes */
    int64_t workers,
        cache; /* threads that decode, 0: one for each processor; megabytes of decoded samples to keep, 0: all */
    const char *command;
} samples_request;
sdlf_status samples_open(sdlf_dataset **data, const samples_request *request);

/* The same for what is known without the pictures: shapes and classes. */
sdlf_status samples_outline(sdlf_dataset **data, const samples_request *request);

/* Which data sets there are, for --help. */
void samples_print_list(const terminal *out);

/* --net for that data set: a built-in network is made for its samples and classes, as sdlf train makes it. */
sdlf_status samples_open_network(sdlf_model **model, const char *net, const char *set);

/* The pictures that the model's first input takes, (C,H,W); a scalar: it takes none. */
sdlf_shape samples_shape(const sdlf_model *model);

/* What a training plan of this model needs to draw its batches from the data, which are borrowed, as are the names of
 * the model's inputs. Samples are normalised as the model says, or, where it does not, as the data set does. */
sdlf_feed samples_feed(sdlf_model *model, const sdlf_dataset *data);

/* Are there as many classes in the model's first output, or in the scores that its loss reads, as in the data, or more?
 * True too where nobody can tell. */
bool samples_fit(const sdlf_model *model, const sdlf_dataset *data);

/* The same as a status: SDLF_ERROR_SHAPE, with both numbers. Labels are indices, so a step must not run without. */
sdlf_status samples_check(const sdlf_model *model, const sdlf_dataset *data);

/* Write the first `batch` samples, and in a training plan their labels, into the plan's inputs. Errors:
 * SDLF_ERROR_ARGUMENT: the data set has fewer; SDLF_ERROR_SHAPE: they do not fit. */
sdlf_status samples_write(sdlf_plan *plan, sdlf_model *model, const sdlf_dataset *data, int64_t batch, sdlf_mode mode);

/* The same with numbers in [-1, 1) that depend only on the seed, for every input of any shape; labels are the classes
 * in turn, of which there are as many as the first output has columns, and other integers 0 and 1, which index any table. */
sdlf_status samples_write_random(sdlf_plan *plan, sdlf_model *model, sdlf_mode mode, uint64_t seed);

#endif
