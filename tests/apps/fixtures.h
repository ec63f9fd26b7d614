/* SPDX-License-Identifier: MIT */
/* ONNX models for tests of the program: those that tests/onnx keeps, and their own. */
#ifndef SDLF_TESTS_APPS_FIXTURES_H
#define SDLF_TESTS_APPS_FIXTURES_H

#include <stdbool.h>

#include <sdlf/sdlf.h>

/* The path of a file of tests/onnx/fixtures. It stays good for the next five calls. */
const char *fixture(const char *name);

/* Build the model, write it and free it. */
void save_as_onnx(sdlf_model *model, const char *path);

/* Does this build read ONNX files? */
static inline bool reads_onnx(void)
{
    sdlf_model *model = NULL;
    sdlf_status status = sdlf_model_from_onnx(&model, fixture("small_cnn/model.onnx"), NULL);
    sdlf_model_free(model);
    return status != SDLF_ERROR_UNSUPPORTED;
}

#endif
