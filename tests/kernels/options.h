/* SPDX-License-Identifier: MIT */
/* The command line options of the kernel tests.
 *
 *     test_kernels [--family NAME,...] [--but NAME,...] [--only TEXT] [--calculator NAME] [--without NAME,...] [--math
 *     MODE]
 *                  [--dry] [--once] [--seconds S | --parts P] [--seed N] [--bench [TEXT]]
 *
 * --calculator tests only that one, --without excludes some. --dry computes nothing: it checks that every algorithm
 * accepts a case. For tools that slow kernels down: --once runs a case only with one thread and once off its alignment,
 * --seconds tries as many as time allows, --parts P of 256 parts; both are spread over all cases of all families, and
 * which cases they are depends on --seed (sample.h). --bench must be last. */
#ifndef SDLF_TESTS_KERNEL_OPTIONS_H
#define SDLF_TESTS_KERNEL_OPTIONS_H

#include <sdlf/calculator.h>

typedef struct kernel_options {
    const char *family, *but, *only, *calculator, *without; /* NULL: all; none; all; all; none */
    bool one_math;                                          /* only in mode `math` */
    sdlf_math math;
    bool dry, once;
    double seconds; /* 0: no limit */
    int parts;      /* 0: all */
    int64_t seed;
    bool bench;
    const char *bench_only; /* part of a name; NULL: all */
} kernel_options;

/* Parses the options; false, with a line on stderr, if they are invalid. A calculator that no build of SDLF has is
 * invalid: a misspelt name would silently test, or exclude, nothing. One that only this build or this machine lacks may
 * be named. */
bool kernel_options_read(kernel_options *options, int argc, char **argv);

#endif
