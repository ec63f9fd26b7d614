/* SPDX-License-Identifier: MIT */
/* Networks that together contain every exportable layer, and their results: for the export test, and for
 * scripts/onnx-export-check.py, which compares with onnxruntime. */
#ifndef SDLF_TESTS_ONNX_EXPORT_CASES_H
#define SDLF_TESTS_ONNX_EXPORT_CASES_H

#include <sdlf/sdlf.h>

typedef struct export_case {
    const char *name;
    void (*build)(sdlf_model *model);
    int opset;        /* the lowest that can express it */
    bool fixed_batch; /* only for a batch of 1 */
} export_case;

extern const export_case export_cases[]; /* ends with an unnamed row */

/* Built-in networks that `reference` computes quickly; ends with NULL. */
extern const char *const export_builtin[];

/* The model of a case or, if that is NULL, the built-in network, with random parameters and statistics. NULL after a
 * failure, see sdlf_error_message. */
sdlf_model *export_case_model(const export_case *from, const char *builtin);

/* The network of an ONNX file for images of 28x28 in ten classes, trained further on digits for a short time. NULL: it
 * failed. */
sdlf_model *export_case_trained(const char *path);

/* A run of a model: its inputs and outputs in host memory, by name; the model owns the names. An unused input is
 * absent; a sparse one is a dense matrix here. */
enum { EXPORT_CASE_MOST = 128 };
typedef struct export_run_values {
    sdlf_tensor input[EXPORT_CASE_MOST], output[EXPORT_CASE_MOST];
    const char *input_name[EXPORT_CASE_MOST], *output_name[EXPORT_CASE_MOST];
    int input_count, output_count;
} export_run_values;

/* Run the model on the reference calculator with reproducible inputs, or with those of `like`, which has a dense matrix
 * for a sparse input. Release with export_run_release, also after a failure. */
sdlf_status export_case_run(export_run_values *values, sdlf_model *model, int64_t batch, const export_run_values *like);
void export_run_release(export_run_values *values);
/* The tensor of that name, or NULL. */
const sdlf_tensor *export_run_input(const export_run_values *values, const char *name);
const sdlf_tensor *export_run_output(const export_run_values *values, const char *name);

#endif
