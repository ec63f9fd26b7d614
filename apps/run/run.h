/* SPDX-License-Identifier: MIT */
/* sdlf run: a model, its inputs and its outputs. */
#ifndef SDLF_APPS_RUN_RUN_H
#define SDLF_APPS_RUN_RUN_H

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/arguments/ranks.h"
#include "apps/input/labels.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/machine.h"

typedef struct run_settings {
    argument_list inputs, outputs, states, growing;
    int64_t top, steps, capacity;
    const char *label_file, *calculator;
    int dtype;
    bool json;
    machine_choice choice;
    rank_settings ranks; /* only --devices */
    onnx_settings onnx;
    preprocess_settings preprocess;
} run_settings;

/* A file for an input or an output: NAME=FILE, or just FILE. */
typedef struct run_file {
    const char *name; /* NULL: not named */
    const char *path;
    bool is_array;           /* of an input: else it is an image */
    sdlf_tensor_file *array; /* open, of such an input */
    sdlf_tensor tensor;      /* dtype and shape; elements only if the model is built from them or it was a pipe */
} run_file;

/* An input of an ONNX file, as it is listed there. */
typedef struct run_listed {
    char *name;
    sdlf_shape shape; /* -1 where it is open */
    bool must_be_known;
} run_listed;

/* The outputs of all steps. */
typedef struct run_collected {
    const char *name; /* the model's */
    sdlf_tensor tensor;
} run_collected;

typedef struct run_session {
    run_settings set;
    const char *model_path;
    terminal out;
    machine machine;
    sdlf_model *model;
    sdlf_plan *plan;
    run_listed *listed; /* inputs of an ONNX file; NULL: another file */
    int listed_count;
    run_file input[ARGUMENT_LIST_MAX], output[ARGUMENT_LIST_MAX];
    char *text[2 * ARGUMENT_LIST_MAX];
    int text_count;
    int64_t batch; /* of the plan */
    labels labels;
    sdlf_state *state; /* of --state */
    int state_count;
    run_collected *collected; /* of --steps; NULL: the plan holds the outputs */
    int collected_count;
    struct run_session *part; /* one for each of several devices; the model is then the first one's */
    int part_count;
    bool is_part;       /* it borrows all but its machine, model and plan */
    bool is_later_part; /* not the first, which warns for all */
    sdlf_status status;
    char *message;    /* of a part that failed */
    char *not_finite; /* the error in the scores; NULL: none */
} run_session;

/* Resolve "-", and find out which inputs are arrays. */
sdlf_status run_take_standard(run_session *s);
/* Reject image options if every input is an array. */
sdlf_status run_check_pictures(const run_session *s, const arguments *given);
/* Open the arrays among the inputs, which determine the batch size. */
sdlf_status run_open_inputs(run_session *s);
/* Read an array's elements before there is a plan. */
sdlf_status run_read_array(run_file *file);
void run_close_inputs(run_session *s);
/* Write everything into the plan's inputs. */
sdlf_status run_write_inputs(run_session *s);
/* Write the outputs: files, and text or JSON. SDLF_ERROR_NUMERIC, after all is written, if classes are wanted and
 * scores are not finite. */
sdlf_status run_show_outputs(run_session *s);

/* Create the model and its plan for the inputs, and compute the outputs. */
sdlf_status run_forward(run_session *s);
/* The same on several devices, each with a part of the batch. Errors: also SDLF_ERROR_SHAPE if an output has no batch
 * dimension. */
sdlf_status run_in_parts(run_session *s);
void run_release_parts(run_session *s);
/* Run steps that continue from one another, with --state. */
sdlf_status run_steps(run_session *s, const arguments *given);
void run_release_steps(run_session *s);
/* True if the output is a state, which is not shown. */
bool run_is_state(const run_session *s, const char *output);
/* Read an output, for all samples, into memory that the caller frees, whatever the result. */
sdlf_status run_read_output(const run_session *s, const char *name, sdlf_tensor *tensor);

/* True if an array goes to standard output, which then gets nothing else. */
bool run_prints_array(const run_session *s);
bool run_ends_with(const char *text, const char *end);

/* Check that the files of --output can be written as arrays, and are distinct. */
sdlf_status run_check_outputs(const run_session *s);

#endif
