/* sdlf run: a model, what goes into it, and what comes out. */
#ifndef SDLF_APPS_RUN_RUN_H
#define SDLF_APPS_RUN_RUN_H

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/pictures/photo.h"
#include "apps/system/machine.h"

typedef struct run_settings {
    argument_list inputs, outputs;
    int64_t top;
    const char *labels, *calculator;
    int dtype;
    bool json;
    machine_choice choice;
    onnx_settings onnx;
    photo_settings photo;
} run_settings;

/* A file for an input or an output: NAME=FILE, or FILE alone. */
typedef struct run_file {
    const char *name; /* NULL: not named */
    const char *path;
    sdlf_tensor tensor; /* of an input that is no picture */
} run_file;

typedef struct run_session {
    run_settings set;
    const char *model_path;
    terminal out;
    machine machine;
    sdlf_model *model;
    sdlf_plan *plan;
    sdlf_onnx_report *report; /* NULL: no ONNX model */
    run_file input[ARGUMENT_LIST_MAX], output[ARGUMENT_LIST_MAX];
    char *text[2 * ARGUMENT_LIST_MAX];
    int text_count;
    int64_t batch; /* of the plan */
    char **label;
    int label_count;
} run_session;

/* Options of pictures are refused where every input is an array. */
sdlf_status run_check_pictures(const run_session *s, const arguments *given);
/* Read the tensors among the inputs, which say how large the batch is. */
sdlf_status run_read_inputs(run_session *s);
/* Everything into the plan's inputs. */
sdlf_status run_write_inputs(run_session *s);
/* What came out: files, and text or JSON. */
sdlf_status run_read_labels(run_session *s);
sdlf_status run_show_outputs(run_session *s);

#endif
