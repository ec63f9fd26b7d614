/* SPDX-License-Identifier: MIT */
/* What the kernel tests are asked for on the command line.
 *
 *     test_kernels [--family NAME,...] [--but NAME,...] [--only TEXT] [--calculator NAME] [--without NAME,...] [--math
 *     MODE]
 *                  [--dry] [--once] [--seconds S | --parts P] [--seed N] [--bench [TEXT]]
 *
 * --calculator leaves the others out, --without those. --dry computes nothing: it sees whether every algorithm takes a
 * case. For tools that make kernels slow: --once runs a case with one thread alone and once off its alignment,
 * --seconds tries as many as there is time for, --parts P of 256 parts, both spread over all cases of all families; which
 * they are depends on --seed (sample.h). --bench ends the list. */
#ifndef SDLF_TESTS_KERNEL_OPTIONS_H
#define SDLF_TESTS_KERNEL_OPTIONS_H

#include <sdlf/calculator.h>

typedef struct kernel_options {
    const char *family, *but, *only, *calculator, *without; /* NULL: all; none; all; all; none */
    bool one_math;                                          /* only in mode `math` */
    sdlf_math math;
    bool dry, once;
    double seconds; /* 0: as long as it takes */
    int parts;      /* 0: all */
    int64_t seed;
    bool bench;
    const char *bench_only; /* part of a name; NULL: all */
} kernel_options;

/* False, and a line on stderr, where it is not understood. A calculator that no build of SDLF has is not: with a
 * misspelt name nothing would ever be tested, or left out, and nobody told. One that this build or this machine has not
 * may be named. */
bool kernel_options_read(kernel_options *options, int argc, char **argv);

#endif
