/* SPDX-License-Identifier: MIT */
/* Measuring the algorithms ("rungs") of the convolution lab: the time and the error of each. */
#ifndef SDLF_APPS_BENCH_CONV_MEASURE_H
#define SDLF_APPS_BENCH_CONV_MEASURE_H

#include <sdlf/calculator.h>

/* An algorithm that a calculator offers for conv2d_forward. */
enum { LAB_RUNG_NAME = 64 };
typedef struct lab_rung {
    char name[LAB_RUNG_NAME]; /* no two rungs of a ladder have the same */
    const char *summary;      /* "" if the calculator has none */
    int algorithm;
    sdlf_calculator *calculator; /* NULL in a stored report */
    const char *of;              /* the calculator's name */
    bool rival;                  /* another calculator's own choice, compared with the measured one's */
} lab_rung;

enum { LAB_RUNGS = 32 };

/* The result of a rung on one convolution. */
typedef struct lab_result {
    bool ran;
    char why[160];      /* where it did not run: why not */
    bool channels_last; /* NHWC activations, as the rung requires or as plans store them */
    int64_t prepared;   /* bytes of weights prepacked beforehand, as in inference plans; not in the time */
    const char *taken;  /* the choice of "auto", if the calculator reports it; NULL */
    double seconds;     /* the median run */
    double quarter[2];  /* a quarter of the runs took less than the first, a quarter more than the second */
    int samples, runs;  /* samples of the median; runs in each */
    sdlf_cost work;     /* everything that the rung computes and moves */
    double error; /* the largest difference from reference, in the range of reference's outputs; NaN: outputs are NaN */
    double compared; /* the share of the outputs that was compared */
} lab_result;

/* How long to measure. */
typedef struct lab_effort {
    int repeats;    /* samples, at most */
    double seconds; /* of a rung on one convolution, about; at least one sample is taken */
} lab_effort;

/* List the rungs of a calculator, "auto" last; with only one algorithm, a single one with the calculator's name. */
int lab_rungs_of(sdlf_calculator *calculator, lab_rung *rungs, int most);

/* Another calculator that shares the memory, as a rung to compare with: its automatic choice, under its name; with
 * `long_name` as "NAME:auto", for ladders in which an algorithm already has that name. */
lab_rung lab_rival_of(sdlf_calculator *calculator, bool long_name);

/* One convolution in memory: its operands on the calculator, and the outputs of reference. */
typedef struct lab_bench lab_bench;

/* `operation` has no memory bound. Fills its inputs with random values in [-1, 1) and, if `check`, computes the
 * reference outputs; otherwise errors are NaN and shares compared 0.
 * Errors: SDLF_ERROR_MEMORY, SDLF_ERROR_DEVICE. */
sdlf_status lab_bench_create(lab_bench **bench, sdlf_calculator *calculator, sdlf_calculator *reference,
                             const sdlf_operation *operation, bool check);
void lab_bench_free(lab_bench *bench);

/* Bytes that a bench of this operation needs on the calculator and on the host, workspace included. */
int64_t lab_bench_bytes(sdlf_calculator *calculator, const sdlf_operation *operation);

/* Run a rung, of the bench's calculator or of one that shares its memory. A rung that does not support the convolution,
 * or runs out of memory, is not an error: the result gives the reason. */
sdlf_status lab_bench_run(lab_bench *bench, const lab_rung *rung, const lab_effort *effort, lab_result *result);

#endif
