/* SPDX-License-Identifier: MIT */
/* The dense matrix product of a graph convolution, by each algorithm of a calculator. */
#include <stdio.h>
#include <stdlib.h>

#include <sdlf/calculator.h>

#include "apps/gcn/gcn.h"
#include "apps/output/number.h"
#include "apps/output/table.h"
#include "apps/system/interrupt.h"
#include "framework/clock.h"

enum { TOGETHER = 10 }; /* runs between two clock readings */

static sdlf_status make_operand(sdlf_tensor *tensor, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape,
                                uint32_t stream)
{
    sdlf_status status = sdlf_tensor_create(tensor, calculator, dtype, shape);
    if (status != SDLF_OK) return status;
    const sdlf_operation draw = {
        .kind = SDLF_RANDOM_UNIFORM, .out = {*tensor}, .random = {.seed = 1, .stream = stream, .a = -1, .b = 1}};
    return sdlf_calculator_run(calculator, &draw);
}

/* Queues the product TOGETHER times, recorded if the calculator supports it. */
static sdlf_status run_together(sdlf_calculator *calculator, const sdlf_operation *product, void *recording)
{
    const sdlf_calculator_class *type = calculator->type;
    if (recording != NULL) return type->replay(calculator, recording);
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < TOGETHER && status == SDLF_OK; i++) status = type->kernel[SDLF_GEMM].run(calculator, product);
    return status;
}

static sdlf_status time_product(sdlf_calculator *calculator, const sdlf_operation *product, int repeats, double *best)
{
    const sdlf_calculator_class *type = calculator->type;
    void *recording = NULL;
    sdlf_status status = run_together(calculator, product, NULL); /* warm */
    if (status == SDLF_OK && type->record_begin != NULL) {
        status = type->record_begin(calculator);
        if (status == SDLF_OK) status = run_together(calculator, product, NULL);
        sdlf_status ended = type->record_end(calculator, &recording);
        if (status == SDLF_OK) status = ended;
    }
    *best = 1e300;
    for (int i = 0; i < repeats && status == SDLF_OK && (i == 0 || interrupt_signal() == 0); i++) {
        status = type->synchronize(calculator);
        double start = sdlf_clock();
        if (status == SDLF_OK) status = run_together(calculator, product, recording);
        if (status == SDLF_OK) status = type->synchronize(calculator);
        double seconds = (sdlf_clock() - start) / TOGETHER;
        *best = seconds < *best ? seconds : *best;
    }
    if (recording != NULL) type->discard(calculator, recording);
    return status;
}

static sdlf_status time_algorithm(gcn_ladder *ladder, sdlf_calculator *calculator, sdlf_operation product, int repeats)
{
    const char *const *names = calculator->type->kernel[SDLF_GEMM].algorithms;
    if (!sdlf_calculator_supports(calculator, &product)) return SDLF_OK;
    gcn_rung *rung = &ladder->rung[ladder->count];
    int64_t bytes = sdlf_calculator_workspace(calculator, &product);
    sdlf_status status = SDLF_OK;
    if (bytes > 0) status = sdlf_tensor_create(&product.workspace, calculator, SDLF_UINT8, sdlf_shape(bytes));
    if (status == SDLF_OK) status = time_product(calculator, &product, repeats, &rung->seconds);
    if (bytes > 0) sdlf_tensor_release(&product.workspace, calculator);
    if (status != SDLF_OK) return status;
    rung->algorithm = names != NULL ? names[product.algorithm] : "auto";
    rung->cost = sdlf_operation_cost(&product);
    ladder->count++;
    return SDLF_OK;
}

sdlf_status gcn_ladder_time(gcn_ladder *ladder, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape size,
                            int repeats)
{
    enum { MOST = sizeof ladder->rung / sizeof ladder->rung[0] };
    int64_t m = size.dim[0], k = size.dim[1], n = size.dim[2];
    sdlf_tensor x = {.dtype = SDLF_NONE}, w = x, h = x;
    ladder->count = 0;
    sdlf_status status = make_operand(&x, calculator, dtype, sdlf_shape(m, k), 1);
    if (status == SDLF_OK) status = make_operand(&w, calculator, dtype, sdlf_shape(k, n), 2);
    if (status == SDLF_OK) status = sdlf_tensor_create(&h, calculator, dtype, sdlf_shape(m, n));
    const char *const *names = calculator->type->kernel[SDLF_GEMM].algorithms;
    for (int i = 0; status == SDLF_OK && ladder->count < MOST && (i == 0 || (names != NULL && names[i] != NULL)); i++) {
        if (interrupt_signal() != 0) break;
        const sdlf_operation product = {
            .kind = SDLF_GEMM, .algorithm = i, .in = {x, w}, .out = {h}, .gemm = {.alpha = 1}};
        status = time_algorithm(ladder, calculator, product, repeats);
    }
    sdlf_tensor_release(&x, calculator);
    sdlf_tensor_release(&w, calculator);
    sdlf_tensor_release(&h, calculator);
    return status;
}

void gcn_ladder_print(const gcn_ladder *ladder, const terminal *out)
{
    table *lines = table_create("dense product|>ms|>GFLOP/s|>GB/s, each byte once");
    for (int i = 0; i < ladder->count; i++) {
        const gcn_rung *r = &ladder->rung[i];
        table_cell(lines, "%s", r->algorithm);
        table_cell(lines, "%s", number_fixed(r->seconds * 1e3, 4).text);
        table_cell(lines, "%s", number_fixed((double)r->cost.flops / r->seconds * 1e-9, 0).text);
        table_cell(lines, "%s", number_fixed((double)r->cost.bytes / r->seconds * 1e-9, 1).text);
    }
    putchar('\n');
    table_print(lines, out, 2);
    table_free(lines);
}
