/* SPDX-License-Identifier: MIT */
/* The benchmarks of sdlf bench: a file or a folder each, one line each in bench.c. */
#ifndef SDLF_APPS_BENCH_BENCH_H
#define SDLF_APPS_BENCH_BENCH_H

typedef struct bench {
    const char *name;
    const char *summary;                 /* one line for --help */
    int (*run)(int count, char **words); /* the words after the name; returns an exit code */
} bench;

extern const bench network_bench;
extern const bench placement_bench;
extern const bench epoch_bench;
extern const bench scaling_bench;
extern const bench model_bench;
extern const bench conv_bench;
extern const bench kernels_bench;

/* Prints the benchmarks, for help. */
void bench_print_list(void);

#endif
