/* SPDX-License-Identifier: MIT */
/* A stored report of the convolution lab, read back. */
#ifndef SDLF_APPS_BENCH_CONV_READ_H
#define SDLF_APPS_BENCH_CONV_READ_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"

/* Read a file written by lab_json: everything that tables and charts need. Values that follow from shapes and times are
 * recomputed, and may be missing; so may values that were not measured (quarters, error, compared, a rung in a
 * convolution). `wanted` names the rungs to keep; none: all. Names in *lab point into lab->source, which the caller
 * releases (json_decref), whatever is returned.
 * Errors: SDLF_ERROR_IO: no such file; SDLF_ERROR_FORMAT names the file and the invalid value;
 * SDLF_ERROR_ARGUMENT: no such rung. */
sdlf_status lab_read(lab *lab, const char *path, const argument_list *wanted);

#endif
