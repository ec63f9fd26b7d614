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
    rank_settings ranks; /* of which --devices */
    onnx_settings onnx;
    preprocess_settings preprocess;
} run_settings;

/* A file for an input or an output: NAME=FILE, or just FILE. */
typedef struct run_file {
    const char *name; /* NULL: not named */
    const char *path;
    bool is_array;           /* of an input: else it is a picture */
    sdlf_tensor_file *array; /* open, of such an input */
    sdlf_tensor tensor;      /* what it is; with elements where the model is made from them, or a pipe had them */
} run_file;

/* An input of an ONNX file, as it is listed there. */
typedef struct run_listed {
    char *name;
    sdlf_shape shape; /* -1 where it is open */
    bool must_be_known;
} run_listed;

/* What came out of all steps. */
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
    run_collected *collected; /* of --steps; NULL: the plan has what came out */
    int collected_count;
    struct run_session *part; /* each device's, of several; the model is the first one's then */
    int part_count;
    bool is_part;       /* which borrows all but its machine, model and plan */
    bool is_later_part; /* than the first, which warns for all */
    sdlf_status status;
    char *message;    /* of a part that failed */
    char *not_finite; /* what is wrong with the scores; NULL: nothing is */
} run_session;

/* What stands in the place of "-", and which inputs are arrays. */
sdlf_status run_take_standard(run_session *s);
/* Options of pictures are refused where every input is an array. */
sdlf_status run_check_pictures(const run_session *s, const arguments *given);
/* Open the arrays among the inputs, which say how large the batch is. */
sdlf_status run_open_inputs(run_session *s);
/* Have an array's elements before the plan does. */
sdlf_status run_read_array(run_file *file);
void run_close_inputs(run_session *s);
/* Everything into the plan's inputs. */
sdlf_status run_write_inputs(run_session *s);
/* What came out: files, and text or JSON. SDLF_ERROR_NUMERIC, once all is there, where classes are wanted and scores
 * are not finite. */
sdlf_status run_show_outputs(run_session *s);

/* The model and its plan, made for the inputs, and their outputs. */
sdlf_status run_forward(run_session *s);
/* The same on several devices, each with a part of the batch. Errors: also SDLF_ERROR_SHAPE where an output is none of
 * samples. */
sdlf_status run_in_parts(run_session *s);
void run_release_parts(run_session *s);
/* Steps that go on from one another, with --state. */
sdlf_status run_steps(run_session *s, const arguments *given);
void run_release_steps(run_session *s);
/* Is the output one of them? Then nobody shows it. */
bool run_is_state(const run_session *s, const char *output);
/* An output, of all samples, in memory that the caller frees, whatever the result. */
sdlf_status run_read_output(const run_session *s, const char *name, sdlf_tensor *tensor);

/* Does an array go to standard output, which then takes nothing else? */
bool run_prints_array(const run_session *s);
bool run_ends_with(const char *text, const char *end);

/* Can the files of --output be written, one each, as arrays? */
sdlf_status run_check_outputs(const run_session *s);

#endif
