/* SPDX-License-Identifier: MIT */
/* Networks that together have every layer that is exported, and what they compute: for the test of the export, and for
 * scripts/onnx-export-check.py, which compares with onnxruntime. */
#ifndef SDLF_TESTS_ONNX_EXPORT_CASES_H
#define SDLF_TESTS_ONNX_EXPORT_CASES_H

#include <sdlf/sdlf.h>

typedef struct export_case {
    const char *name;
    void (*build)(sdlf_model *model);
    int opset;        /* the lowest that it can be said in */
    bool fixed_batch; /* for a batch of 1 alone */
} export_case;

extern const export_case export_cases[]; /* ends with a row without name */

/* Built-in networks that `reference` computes in a moment; NULL ends them. */
extern const char *const export_builtin[];

/* The model of a case or, where that is NULL, the built-in network; its parameters are drawn, statistics too. NULL: it
 * failed, sdlf_error_message says why. */
sdlf_model *export_case_model(const export_case *from, const char *builtin);

/* The network of an ONNX file for pictures of 28x28 in ten classes, trained on for a little while on digits. NULL: it
 * failed. */
sdlf_model *export_case_trained(const char *path);

/* A run of a model: its inputs and outputs in host memory, by their names, which are the model's. An input that nobody
 * reads is absent; a sparse one is a dense matrix here. */
enum { EXPORT_CASE_MOST = 128 };
typedef struct export_run_values {
    sdlf_tensor input[EXPORT_CASE_MOST], output[EXPORT_CASE_MOST];
    const char *input_name[EXPORT_CASE_MOST], *output_name[EXPORT_CASE_MOST];
    int input_count, output_count;
} export_run_values;

/* Run the model on the reference calculator with inputs that are always the same, or with those of `like`, which has a
 * dense matrix where it is sparse. Release with export_run_release, also after a failure. */
sdlf_status export_case_run(export_run_values *values, sdlf_model *model, int64_t batch, const export_run_values *like);
void export_run_release(export_run_values *values);
/* The tensor of that name, or NULL. */
const sdlf_tensor *export_run_input(const export_run_values *values, const char *name);
const sdlf_tensor *export_run_output(const export_run_values *values, const char *name);

#endif
