/* SPDX-License-Identifier: MIT */
/* Measuring the rungs of the convolution lab: how long each takes, and how far it is from the truth. */
#ifndef SDLF_APPS_BENCH_CONV_MEASURE_H
#define SDLF_APPS_BENCH_CONV_MEASURE_H

#include <sdlf/calculator.h>

/* An algorithm that a calculator offers for conv2d_forward. */
enum { LAB_RUNG_NAME = 64 };
typedef struct lab_rung {
    char name[LAB_RUNG_NAME]; /* no two rungs of a ladder have the same */
    const char *summary;      /* "" where the calculator says nothing */
    int algorithm;
    sdlf_calculator *calculator; /* NULL in a stored report */
    const char *of;              /* the calculator's name */
    bool rival;                  /* it is what another calculator takes, beside those of the one that is measured */
} lab_rung;

enum { LAB_RUNGS = 32 };

/* What became of a rung on one convolution. */
typedef struct lab_result {
    bool ran;
    char why[160];      /* where it did not run: why not */
    bool channels_last; /* the activations were so, since the rung takes them only so, or plans store them so */
    int64_t prepared;   /* bytes of weights that were prepacked beforehand, as inference plans do; not in the time */
    const char *taken;  /* what "auto" took, where the calculator tells; NULL */
    double seconds;     /* the median run */
    double quarter[2];  /* a quarter of the runs took less than the first, a quarter more than the second */
    int samples, runs;  /* what the median was taken of; runs in each */
    sdlf_cost work;     /* all that the rung computes and moves */
    double error; /* the largest difference from reference, in the range of reference's outputs; NaN: outputs are NaN */
    double compared; /* the share of the outputs that was compared */
} lab_result;

/* How long to measure. */
typedef struct lab_effort {
    int repeats;    /* samples, at most */
    double seconds; /* of a rung on one convolution, about; one sample is taken however long it lasts */
} lab_effort;

/* The rungs of a calculator, "auto" last; one called after the calculator where it has only one way. */
int lab_rungs_of(sdlf_calculator *calculator, lab_rung *rungs, int most);

/* A calculator that works in the same memory as a rung to compare with: its own choice, under its name; with
 * `long_name` as "NAME:auto", for ladders in which an algorithm is called so already. */
lab_rung lab_rival_of(sdlf_calculator *calculator, bool long_name);

/* One convolution in memory: its operands on the calculator, and what reference makes of them. */
typedef struct lab_bench lab_bench;

/* `operation` has no memory bound. Fills its inputs with random numbers in [-1, 1) and, to `check`, computes the
 * outputs to compare with; otherwise errors are NaN and shares compared 0.
 * Errors: SDLF_ERROR_MEMORY, SDLF_ERROR_DEVICE. */
sdlf_status lab_bench_create(lab_bench **bench, sdlf_calculator *calculator, sdlf_calculator *reference,
                             const sdlf_operation *operation, bool check);
void lab_bench_free(lab_bench *bench);

/* Bytes that a bench of this operation takes on the calculator and on the host, workspace included. */
int64_t lab_bench_bytes(sdlf_calculator *calculator, const sdlf_operation *operation);

/* Run a rung, of the bench's calculator or of one that shares its memory. A rung that does not take the convolution, or
 * finds no memory, is no failure: the result says why. */
sdlf_status lab_bench_run(lab_bench *bench, const lab_rung *rung, const lab_effort *effort, lab_result *result);

#endif
