/* SPDX-License-Identifier: MIT */
/* The convolutions that the lab times: those of a named network or experiment, or one from the command line. */
#ifndef SDLF_APPS_BENCH_CONV_WORKLOADS_H
#define SDLF_APPS_BENCH_CONV_WORKLOADS_H

#include "apps/bench/conv/shape.h"

typedef struct lab_case {
    char name[32];   /* "conv3_2", "255 s2" */
    char row[32];    /* its row in the summary; several may share one */
    int count;       /* how many layers of the network have this shape */
    lab_shape shape; /* with the batch */
} lab_case;

enum { LAB_CASES = 64 };
typedef struct lab_workload {
    const char *name;
    char about[160];
    int count;
    lab_case item[LAB_CASES];
} lab_workload;

/* "study", "simple_cnn", ...; NULL-terminated. The function prints a line on each. */
extern const char *const lab_workload_names[];
void lab_workloads_print(void);

/* Create the workload at `index` of the names. side: of the images, 0 for the default. Errors: SDLF_ERROR_ARGUMENT for
 * a side that the workload does not support. */
sdlf_status lab_workload_make(lab_workload *workload, int index, int64_t batch, int64_t side);

/* The workload of this one convolution. */
void lab_workload_of_shape(lab_workload *workload, const lab_shape *shape);

#endif
