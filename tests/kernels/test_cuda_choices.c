/* SPDX-License-Identifier: MIT */
/* What "auto" of the cuda calculator chooses where algorithms differ clearly in speed: a row for each branch of its
 * rules, with the microseconds of the choice and of the runner-up, on the GPU of compute capability 9.0 that the rules
 * are tuned for (an H200). */
#include <stdio.h>

#include <sdlf/calculator.h>

#include "testing.h"

enum { MODES = SDLF_MATH_COUNT + 1, DOUBLE = SDLF_MATH_COUNT /* float64 */ };

/* NULL if there is no such GPU. */
static sdlf_calculator *open_in(int mode)
{
    sdlf_calculator *cuda = NULL;
    const sdlf_calculator_options options = {.math = mode == DOUBLE ? SDLF_MATH_FP32 : (sdlf_math)mode};
    sdlf_status status = sdlf_calculator_open(&cuda, "cuda", &options);
    if (status == SDLF_OK && test_runs_all_kernels(cuda)) return cuda;
    test_skip(status == SDLF_OK ? "the rules are fitted to compute capability 9.0" : sdlf_error_message());
    if (status == SDLF_OK) sdlf_calculator_close(cuda);
    return NULL;
}

static sdlf_tensor of(int mode, sdlf_shape shape)
{
    return sdlf_tensor_view(mode == DOUBLE ? SDLF_FLOAT64 : SDLF_FLOAT32, shape, NULL);
}

/* ---- GEMMs ---- */

static const struct gemm_choice {
    int mode, m, n, k;
    bool transpose_b, ready; /* b is prepacked */
    const char *taken;
} gemms[] = {
    {SDLF_MATH_FP32, 1, 10, 1024, true, false, "gemv"},                 /* 1.2; skinny-n 1.9 */
    {SDLF_MATH_FP32, 64, 10, 1024, true, false, "skinny-n"},            /* 2.1; cublas 7.5 */
    {SDLF_MATH_FP32, 10000, 10, 128, true, false, "cublas"},            /* 6.7; skinny-n 16.1 */
    {SDLF_MATH_FP32, 64, 1024, 6272, true, false, "skinny-m"},          /* 27.1; cublas 32.4 */
    {SDLF_MATH_FP32, 96, 100, 512, true, false, "cublas"},              /* 7.0; skinny-m 16.9 */
    {SDLF_MATH_FP32, 2708, 8, 16, false, false, "register-stationary"}, /* 2.5; cublas 7 */
    {SDLF_MATH_FP32, 30000, 16, 128, false, false, "tall-skinny"},      /* 8.0; register-stationary 11.4, cublas 11.4 */
    {SDLF_MATH_FP32, 281903, 16, 128, false, false, "register-stationary"}, /* 42.6; tall-skinny 49.3 */
    {DOUBLE, 20000, 8, 64, false, false, "register-stationary"},            /* 4.3; cublas 6.5 */
    {SDLF_MATH_TF32, 10000, 16, 1024, true, false, "cublas"},               /* 12.0; skinny-n 31.7 */
    {SDLF_MATH_TF32, 96, 1000, 1280, true, false, "cublas"},                /* 8.0 */
    {SDLF_MATH_BF16, 10000, 10, 1024, true, false, "skinny-n"},             /* 24.2 */
    {SDLF_MATH_BF16, 60000, 3, 128, true, false, "cublas"},                 /* 32.4; skinny-n 87.5 */
    {SDLF_MATH_BF16, 64, 1024, 6272, true, false, "cublas"},
    {SDLF_MATH_BF16, 128, 4096, 4096, true, true, "cublas"}, /* 15.7 */
};

static void products(void)
{
    static char somewhere[64]; /* nothing is computed */
    for (int mode = 0; mode < MODES; mode++) {
        sdlf_calculator *cuda = open_in(mode);
        if (cuda == NULL) return;
        for (size_t i = 0; i < sizeof gemms / sizeof gemms[0]; i++) {
            const struct gemm_choice *choice = &gemms[i];
            if (choice->mode != mode) continue;
            int m = choice->m, n = choice->n, k = choice->k;
            sdlf_operation op = {
                .kind = SDLF_GEMM,
                .in = {of(mode, sdlf_shape(m, k)), of(mode, choice->transpose_b ? sdlf_shape(n, k) : sdlf_shape(k, n))},
                .out = {of(mode, sdlf_shape(m, n))},
                .gemm = {.transpose_b = choice->transpose_b, .alpha = 1}};
            CHECK_OK(sdlf_operation_check(&op));
            int64_t bytes = sdlf_calculator_prepared(cuda, &op);
            if (choice->ready && CHECK(bytes > 0))
                op.prepared = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), somewhere);
            if (!CHECK_TEXT(sdlf_calculator_algorithm(cuda, &op), choice->taken)) printf("    row %zu\n", i);
        }
        sdlf_calculator_close(cuda);
    }
}

/* ---- recurrent networks: by calculators/cuda/recurrent/tiling.c's estimate ---- */

static const struct recurrent_choice {
    sdlf_operation_kind kind;
    int gates, samples, units;
    const char *taken;
} recurrences[] = {
    {SDLF_LSTM_FORWARD, 4, 1, 48, "cluster"},   {SDLF_LSTM_FORWARD, 4, 1, 256, "cluster"},
    {SDLF_LSTM_FORWARD, 4, 32, 256, "cluster"}, {SDLF_GRU_FORWARD, 3, 1, 512, "cluster"},
    {SDLF_LSTM_FORWARD, 4, 1, 512, "grid"}, /* 4 MB: more than 16 multiprocessors' shared memory */
    {SDLF_LSTM_FORWARD, 4, 32, 512, "grid"},    {SDLF_GRU_FORWARD, 3, 1, 1024, "grid"},
    {SDLF_LSTM_FORWARD, 4, 1, 1700, "steps"}, /* 46 MB: more than all have */
    {SDLF_LSTM_FORWARD, 4, 1024, 512, "steps"},
};

static void recurrent_networks(void)
{
    enum { T = 100 };
    sdlf_calculator *cuda = open_in(SDLF_MATH_FP32);
    if (cuda == NULL) return;
    for (size_t i = 0; i < sizeof recurrences / sizeof recurrences[0]; i++) {
        const struct recurrent_choice *c = &recurrences[i];
        sdlf_operation op = {.kind = c->kind,
                             .in = {of(SDLF_MATH_FP32, sdlf_shape(T, c->samples, c->gates * c->units)),
                                    of(SDLF_MATH_FP32, sdlf_shape(c->gates * c->units, c->units))},
                             .out = {of(SDLF_MATH_FP32, sdlf_shape(T, c->samples, c->units))}};
        CHECK_OK(sdlf_operation_check(&op));
        if (!CHECK_TEXT(sdlf_calculator_algorithm(cuda, &op), c->taken)) printf("    row %zu\n", i);
    }
    sdlf_calculator_close(cuda);
}

int main(void)
{
    RUN(products);
    RUN(recurrent_networks);
    return test_summary();
}
