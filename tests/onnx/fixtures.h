/* SPDX-License-Identifier: MIT */
/* The models under fixtures/, which scripts/make-onnx-fixtures.py writes, and whether this build can read ONNX. */
#ifndef SDLF_TESTS_ONNX_FIXTURES_H
#define SDLF_TESTS_ONNX_FIXTURES_H

#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/formats.h>

/* The path of a file; the last eight results stay valid. */
static inline const char *onnx_fixture(const char *name, const char *file)
{
    static char path[8][600];
    static int next;
    char *text = path[next++ % 8];
    snprintf(text, sizeof path[0], "%s/%s/%s", SDLF_FIXTURES, name, file);
    return text;
}

static inline bool onnx_available(void)
{
    sdlf_onnx_report *report;
    sdlf_status status = sdlf_onnx_inspect(&report, onnx_fixture("moves", "model.onnx"), NULL);
    bool absent = status == SDLF_ERROR_UNSUPPORTED && strstr(sdlf_error_message(), "protobuf-c") != NULL;
    sdlf_onnx_report_free(report);
    return !absent;
}

/* The only test of a program that needs ONNX files in a build without ONNX. */
static inline void no_onnx(void)
{
    test_skip("this build reads no ONNX files");
}

#endif
