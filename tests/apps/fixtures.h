/* ONNX models for tests of the program: those that tests/onnx keeps, and their own. */
#ifndef SDLF_TESTS_APPS_FIXTURES_H
#define SDLF_TESTS_APPS_FIXTURES_H

#include <sdlf/model.h>

/* The path of a file of tests/onnx/fixtures. It stays good for the next five calls. */
const char *fixture(const char *name);

/* Build the model, write it and free it. */
void save_as_onnx(sdlf_model *model, const char *path);

#endif
