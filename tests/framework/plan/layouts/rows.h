/* SPDX-License-Identifier: MIT */
/* Shared by the tests of rows in 16-bit storage: a calculator that requests it, and sizes. */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_LAYOUTS_ROWS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_LAYOUTS_ROWS_H

#include "calculators/fusions/gemm_backward_sgd.h"
#include "framework/plan/layouts/networks.h"

enum { ROWS = 24, WIDTH = 32, CLASSES = 8, BLOCKS = 2, VALUES = BATCH * ROWS * WIDTH };

static sdlf_dtype wanted = SDLF_BFLOAT16;

/* Behaves like a calculator with kernels for products of rows. */
static inline sdlf_dtype storage_of_rows(const sdlf_calculator *calculator, const sdlf_operation *operation,
                                         bool training)
{
    (void)calculator, (void)training;
    bool attention = operation->kind == SDLF_ATTENTION_FORWARD || operation->kind == SDLF_ATTENTION_BACKWARD;
    bool fused = operation->kind == SDLF_FUSED && operation->fused.fusion == &sdlf_gemm_backward_sgd_fusion;
    return operation->kind == SDLF_GEMM || attention || fused ? wanted : SDLF_NONE;
}

static inline sdlf_node rows_of(sdlf_model *net, sdlf_node x, int units)
{
    return sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = units, .axis = -1});
}

#endif
