/* The ONNX reader on any bytes: an error that names the file, or a model that a plan can be outlined for. Nothing is
 * allocated for weights, so that sizes that lie cost nothing. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/onnx/model_from_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_onnx_report *report;
    sdlf_status status = onnx_inspect_bytes(&report, data, size, "input", NULL);
    if (status != SDLF_OK) {
        if (report != NULL || (status == SDLF_ERROR_FORMAT && strstr(sdlf_error_message(), "input") == NULL)) abort();
        return 0;
    }
    if ((report->model != NULL) != (report->status == SDLF_OK)) abort();
    if (report->model != NULL) {
        sdlf_calculator *calculator;
        sdlf_memory_info memory;
        if (sdlf_calculator_open(&calculator, "reference", NULL) == SDLF_OK) {
            (void)sdlf_plan_measure(&memory, report->model, &(sdlf_plan_options){.batch = 1, .forward = calculator});
            sdlf_calculator_close(calculator);
        }
    }
    sdlf_onnx_report_free(report);
    return 0;
}
