/* SPDX-License-Identifier: MIT */
/* The first lines of a command's output: the calculators, the data and the network.
 *
 *     sdlf 0.2.0  cpu: 2 threads, avx512, gemm oneDNN 2.6; release build
 *     data   digits (procedural, seed 1)  60,000 train  10,000 test  1x28x28
 *     net    simple_cnn  6,433,... parameters  42 MFLOP a sample, trained  memory 131 MB, all of it allocated now */
#ifndef SDLF_APPS_OUTPUT_REPORT_H
#define SDLF_APPS_OUTPUT_REPORT_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/output/terminal.h"

/* calculators: each is described once; NULL and repeated ones are skipped. */
void report_header(const terminal *out, sdlf_calculator *const *calculators, int count);

/* Either data set may be NULL. */
void report_data(const terminal *out, const sdlf_dataset *train, const sdlf_dataset *test);

/* A network, the plan that runs it, and the plan's properties. */
typedef struct report_subject {
    sdlf_model *model;
    const sdlf_plan *plan; /* NULL: FLOPs and memory are omitted */
    sdlf_mode mode;        /* the plan's */
    int64_t batch;         /* the plan's */
    int64_t memory;        /* bytes */
    const char *note;      /* ends the line: ", all of it allocated now" */
} report_subject;
void report_network(const terminal *out, const report_subject *subject);

/* A label of the left margin, in bold where there is colour: "data   ". */
void report_label(const terminal *out, const char *label);

/* Text that begins `at` columns from the left, wrapped at a terminal's width; one line in a file. */
void report_wrapped(const terminal *out, const char *text, int at);

/* A note on the columns above, dimmed where there is colour, wrapped at 100 columns at most. */
void report_note(const terminal *out, const char *text);

/* FLOPs and minimum bytes of a run of the whole plan, both passes. */
sdlf_cost report_plan_cost(const sdlf_plan *plan);

/* The CUDA compiler, if a calculator was built with it; else NULL. */
const char *report_cuda(void);

/* "release build", "debug build with sanitizers". */
const char *report_build(void);

#endif
