/* SPDX-License-Identifier: MIT */
/* The kernels of a calculator, one by one: the operations, their measurement and the report. */
#ifndef SDLF_APPS_BENCH_KERNELS_KERNELS_H
#define SDLF_APPS_BENCH_KERNELS_KERNELS_H

#include <sdlf/calculator.h>

#include "apps/bench/conv/measure.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/timing/ceilings.h"

/* ---- operations ---- */

/* An operation of typical large size; no memory is bound. */
typedef struct kernel_row {
    char text[64]; /* shapes and options */
    sdlf_operation operation;
    bool every; /* with every algorithm of its slot, not only auto's */
} kernel_row;

enum { KERNEL_ROWS = 176 };
typedef struct kernel_rows {
    kernel_row row[KERNEL_ROWS];
    int count;
    sdlf_dtype dtype;
    int64_t elements; /* of a large tensor */
} kernel_rows;

/* List all kinds of operations, each at one or a few sizes; those of matrix products scale with the square root of
 * `elements`. */
void kernel_rows_make(kernel_rows *rows, sdlf_dtype dtype, int64_t elements);

/* For the files that fill the list: */
void kernel_rows_add(kernel_rows *rows, const sdlf_operation *operation, bool every, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void kernel_rows_products(kernel_rows *rows);
void kernel_rows_convolutions(kernel_rows *rows);
void kernel_rows_elements(kernel_rows *rows);
void kernel_rows_axes(kernel_rows *rows);
void kernel_rows_networks(kernel_rows *rows);
void kernel_rows_quantized(kernel_rows *rows);
sdlf_tensor kernel_rows_tensor(const kernel_rows *rows, sdlf_shape shape);
sdlf_tensor kernel_rows_image(const kernel_rows *rows);              /* (N,128,64,64), of about `elements` */
int64_t kernel_rows_side(const kernel_rows *rows, int64_t of_whole); /* of a matrix, a multiple of 4 */

/* ---- measurements ---- */

typedef struct kernel_result {
    const kernel_row *row;
    const char *algorithm; /* NULL: the kind has only one way */
    bool automatic;        /* auto chooses it */
    sdlf_cost cost;        /* of the operation itself */
    lab_result time;       /* its times and `ran`; `why` where it did not */
} kernel_result;

/* Run a row with one of its algorithms, if the calculator supports it: operands are created, filled and freed. */
sdlf_status kernel_measure(kernel_result *result, sdlf_calculator *calculator, const kernel_row *row, int algorithm,
                           const lab_effort *effort);

/* ---- report ---- */

enum { KERNEL_RESULTS = 512 };
typedef struct kernel_report {
    const char *calculator, *math;
    char runs_on[256];
    sdlf_dtype dtype;
    ceilings ceilings;
    int missing; /* kinds that the calculator has no kernel for */
    int count;
    kernel_result result[KERNEL_RESULTS];
} kernel_report;

void kernel_report_print(const terminal *out, const kernel_report *report);
json_t *kernel_report_json(const kernel_report *report);

#endif
