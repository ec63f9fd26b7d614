/* SPDX-License-Identifier: MIT */
/* ONNX models for tests of the program. See fixtures.h. */
#include "apps/fixtures.h"

#include <stdio.h>

#include <sdlf/formats.h>

#include "testing.h"

const char *fixture(const char *name)
{
    static char path[6][600];
    static int next;
    char *text = path[next++ % 6];
    snprintf(text, sizeof path[0], "%s/%s", SDLF_FIXTURES, name);
    return text;
}

void save_as_onnx(sdlf_model *model, const char *path)
{
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_OK(sdlf_model_to_onnx(model, path, NULL, NULL));
    sdlf_model_free(model);
}
