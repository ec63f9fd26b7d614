/* SPDX-License-Identifier: MIT */
/* A stored report of the convolution lab, read back. */
#ifndef SDLF_APPS_BENCH_CONV_READ_H
#define SDLF_APPS_BENCH_CONV_READ_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"

/* Read what lab_json wrote, from a file: all that tables and charts are made of. What follows from shapes and times is
 * worked out anew, and may be missing; so may be what was not measured (quarters, error, compared, a rung in a
 * convolution). `wanted` names the rungs to keep; none: all. Names of *lab point into lab->source, which the caller
 * releases (json_decref), whatever is returned.
 * Errors: SDLF_ERROR_IO: no such file; SDLF_ERROR_FORMAT names the file and the value that is not as it should be;
 * SDLF_ERROR_ARGUMENT: no such rung. */
sdlf_status lab_read(lab *lab, const char *path, const argument_list *wanted);

#endif
