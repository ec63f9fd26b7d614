/* SPDX-License-Identifier: MIT */
/* Export the networks of the tests and record their results, for scripts/onnx-export-check.py.
 *
 *     onnx_export_peer FOLDER OPSET
 *
 * writes FOLDER/CASE.onnx, and for each batch FOLDER/CASE.BATCH.input.NAME.npy and FOLDER/CASE.BATCH.output.NAME.npy,
 * with the names of the model; in opset OPSET, or for 0 in the lowest that suffices (cases that need a newer one are
 * skipped). Prints the cases. Exit code 1: something failed. */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/export_cases.h"

static sdlf_status write_values(const export_run_values *values, const char *start)
{
    char path[4096];
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < values->input_count && status == SDLF_OK; i++) {
        if (!sdlf_tensor_present(&values->input[i])) continue;
        snprintf(path, sizeof path, "%s.input.%s.npy", start, values->input_name[i]);
        status = sdlf_tensor_write_file(&values->input[i], path);
    }
    for (int i = 0; i < values->output_count && status == SDLF_OK; i++) {
        snprintf(path, sizeof path, "%s.output.%s.npy", start, values->output_name[i]);
        status = sdlf_tensor_write_file(&values->output[i], path);
    }
    return status;
}

/* Takes ownership of the model, which may be NULL. */
static sdlf_status run(const char *folder, const char *name, sdlf_model *model, int opset)
{
    char path[2048];
    sdlf_onnx_exported result;
    if (model == NULL) return SDLF_ERROR_ARGUMENT;
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    sdlf_status status = sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.opset = opset}, &result);
    for (int64_t batch = 1; batch <= 3 && status == SDLF_OK; batch += 2) {
        export_run_values values;
        if (result.fixed_batch && batch > 1) break;
        status = export_case_run(&values, model, batch, NULL);
        snprintf(path, sizeof path, "%s/%s.%lld", folder, name, (long long)batch);
        if (status == SDLF_OK) status = write_values(&values, path);
        export_run_release(&values);
    }
    if (status == SDLF_OK) puts(name);
    sdlf_model_free(model);
    return status;
}

/* Networks read from ONNX files and trained further: one just exported, and one trained elsewhere. */
static sdlf_status run_trained(const char *folder, int opset)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/lenet5.onnx", folder);
    sdlf_status status = run(folder, "trained_on", export_case_trained(path), opset);
    const char *data = getenv("SDLF_DATA");
    snprintf(path, sizeof path, "%s/onnx/mnist-8/model.onnx", data != NULL ? data : "");
    FILE *file = data != NULL ? fopen(path, "rb") : NULL;
    if (file == NULL || status != SDLF_OK) return status;
    fclose(file);
    return run(folder, "trained_on_mnist-8", export_case_trained(path), opset);
}

int main(int count, char **words)
{
    if (count != 3) {
        fprintf(stderr, "usage: onnx_export_peer FOLDER OPSET\n");
        return 2;
    }
    int opset = atoi(words[2]);
    sdlf_status status = SDLF_OK;
    for (int i = 0; export_builtin[i] != NULL && status == SDLF_OK; i++)
        status = run(words[1], export_builtin[i], export_case_model(NULL, export_builtin[i]), opset);
    if (status == SDLF_OK) status = run_trained(words[1], opset);
    for (const export_case *at = export_cases; at->name != NULL && status == SDLF_OK; at++)
        if (opset == 0 || opset >= at->opset) status = run(words[1], at->name, export_case_model(at, NULL), opset);
    if (status == SDLF_OK) return 0;
    fprintf(stderr, "onnx_export_peer: %s\n", sdlf_error_message());
    return 1;
}
