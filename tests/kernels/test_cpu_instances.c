/* SPDX-License-Identifier: MIT */
/* Properties of the cpu calculator that the general kernel tests do not cover: every instruction set of this machine
 * computes the same within rounding, operations large enough to be parallelised give the same bits at any number of
 * threads, and an external GEMM library, if there is one, agrees.
 *
 * The environment variable SDLF_SIMD selects the instruction set. All results are compared with reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/calculator.h>

#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"
#include "testing.h"

enum { LARGEST = 1 << 17 }; /* elements of an operand */

typedef struct example {
    const char *name;
    double tolerance;
    sdlf_operation operation; /* operands without memory */
} example;

static sdlf_tensor floats(sdlf_shape shape)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, NULL);
}

static const sdlf_window2d window5 = {{5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}};
static const sdlf_window2d window3 = {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
static const sdlf_window2d pool2 = {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};

static example gemm_example(const char *name, bool transpose_a, bool transpose_b, int algorithm)
{
    enum { M = 70, N = 301, K = 205 };
    sdlf_operation gemm = {
        .kind = SDLF_GEMM,
        .algorithm = algorithm,
        .in = {floats(transpose_a ? sdlf_shape(K, M) : sdlf_shape(M, K)),
               floats(transpose_b ? sdlf_shape(N, K) : sdlf_shape(K, N)), floats(sdlf_shape(N))},
        .out = {floats(sdlf_shape(M, N))},
        .gemm = {.transpose_a = transpose_a,
                 .transpose_b = transpose_b,
                 .alpha = 1,
                 .activation = {.function = SDLF_RELU}},
    };
    return (example){name, 1e-4, gemm};
}

static example backward_sgd_example(const char *name, int64_t rows, int64_t units)
{
    enum { INPUTS = 333 };
    const sdlf_tensor x = floats(sdlf_shape(rows, INPUTS)), w = floats(sdlf_shape(units, INPUTS));
    sdlf_operation op = {.kind = SDLF_FUSED,
                         .in = {x, floats(sdlf_shape(rows, units)), floats(sdlf_shape(1))},
                         .out = {w, w, x},
                         .fused = {.fusion = &sdlf_gemm_backward_sgd_fusion}};
    gemm_backward_sgd_options_in(&op)->sgd.momentum = 0.9f;
    return (example){name, 1e-4, op};
}

static example pool_example(bool forward)
{
    const sdlf_tensor x = floats(sdlf_shape(9, 4, 20, 18)), w = floats(sdlf_shape(19, 4, 5, 5));
    const sdlf_tensor bias = floats(sdlf_shape(19)), y = floats(sdlf_shape(9, 19, 10, 9));
    const sdlf_tensor mask = sdlf_tensor_view(SDLF_UINT8, y.shape, NULL);
    sdlf_operation op = {.kind = SDLF_FUSED,
                         .in = {x, w, bias},
                         .out = {y, mask},
                         .fused = {.fusion = &sdlf_conv2d_pool_forward_fusion}};
    sdlf_operation back = {.kind = SDLF_FUSED,
                           .in = {x, w, y, mask},
                           .out = {w, bias, x},
                           .fused = {.fusion = &sdlf_conv2d_pool_backward_fusion}};
    if (!forward) op = back;
    *conv2d_pool_options_in(&op) = (conv2d_pool_options){.window = window5, .groups = 1, .pool = pool2};
    return (example){op.fused.fusion->type.name, forward ? 1e-4 : 1e-3, op};
}

static example example_at(int index)
{
    static const char *const names[] = {"gemm, library", "gemm, a', library", "gemm, b', library"};
    switch (index) {
    case 0: return gemm_example("gemm", false, false, 0);
    case 1: return gemm_example("gemm, a'", true, false, 0);
    case 2: return gemm_example("gemm, b'", false, true, 0);
    case 3:
    case 4:
    case 5: return gemm_example(names[index - 3], index == 4, index == 5, 2);
    case 6: return backward_sgd_example("gemm_backward_sgd", 20, 301);
    case 7: return backward_sgd_example("gemm_backward_sgd of many rows", 70, 100);
    case 8: return pool_example(true);
    case 9: return pool_example(false);
    case 10:
        return (example){
            "conv2d_forward",
            1e-4,
            {.kind = SDLF_CONV2D_FORWARD,
             .in = {floats(sdlf_shape(5, 10, 21, 19)), floats(sdlf_shape(22, 10, 3, 3)), floats(sdlf_shape(22))},
             .out = {floats(sdlf_shape(5, 22, 11, 10))},
             .conv2d = {.window = window3, .groups = 1}}};
    case 11:
        return (example){"conv2d_backward_weights",
                         1e-3,
                         {.kind = SDLF_CONV2D_BACKWARD_WEIGHTS,
                          .in = {floats(sdlf_shape(5, 10, 21, 19)), floats(sdlf_shape(5, 22, 11, 10))},
                          .out = {floats(sdlf_shape(22, 10, 3, 3)), floats(sdlf_shape(22))},
                          .conv2d = {.window = window3, .groups = 1}}};
    case 12:
        return (example){"conv2d_backward_input",
                         1e-4,
                         {.kind = SDLF_CONV2D_BACKWARD_INPUT,
                          .in = {floats(sdlf_shape(5, 22, 11, 10)), floats(sdlf_shape(22, 10, 3, 3))},
                          .out = {floats(sdlf_shape(5, 10, 21, 19))},
                          .conv2d = {.window = window3, .groups = 1}}};
    case 13:
        return (example){"reduce",
                         1e-3,
                         {.kind = SDLF_REDUCE,
                          .in = {floats(sdlf_shape(130000))},
                          .out = {floats(sdlf_shape(1))},
                          .reduce = {.function = SDLF_REDUCE_SUM_SQUARES}}};
    case 14:
        return (example){"batch_norm2d_backward",
                         1e-3,
                         {.kind = SDLF_BATCH_NORM2D_BACKWARD,
                          .in = {floats(sdlf_shape(8, 16, 30, 30)), floats(sdlf_shape(16)), floats(sdlf_shape(16)),
                                 floats(sdlf_shape(16)), floats(sdlf_shape(8, 16, 30, 30))},
                          .out = {floats(sdlf_shape(8, 16, 30, 30)), floats(sdlf_shape(16)), floats(sdlf_shape(16))}}};
    case 15:
        return (example){"softmax_forward",
                         1e-5,
                         {.kind = SDLF_SOFTMAX_FORWARD,
                          .in = {floats(sdlf_shape(4000, 31))},
                          .out = {floats(sdlf_shape(4000, 31))},
                          .softmax = {.axis = 1}}};
    case 16:
        return (example){"gemm of many rows",
                         1e-4,
                         {.kind = SDLF_GEMM,
                          .in = {floats(sdlf_shape(1999, 45)), floats(sdlf_shape(45, 19)), floats(sdlf_shape(19))},
                          .out = {floats(sdlf_shape(1999, 19))},
                          .gemm = {.alpha = 0.5f, .activation = {.function = SDLF_RELU}}}};
    default: return (example){.name = NULL};
    }
}

/* ---- running one ---- */

static float memory[SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS][LARGEST];

/* Fill inputs and updated outputs with the same values each time. */
static void fill(sdlf_tensor *tensor, int index)
{
    uint32_t state = 12345u + 977u * (uint32_t)index;
    if (!sdlf_tensor_present(tensor)) return;
    tensor->data = memory[index];
    for (int64_t i = 0; i < sdlf_tensor_count(tensor); i++) {
        state = state * 1664525u + 1013904223u;
        if (tensor->dtype == SDLF_UINT8) {
            ((uint8_t *)tensor->data)[i] = (uint8_t)(1u << (state >> 28 & 3));
        } else {
            memory[index][i] = (float)(state >> 8) * 0x1p-23f - 1;
        }
    }
}

static sdlf_status run(sdlf_calculator *calculator, sdlf_operation *operation)
{
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) fill(&operation->in[i], i);
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) fill(&operation->out[i], SDLF_MAX_INPUTS + i);
    return sdlf_calculator_run(calculator, operation);
}

/* ---- comparing ---- */

static float expected[SDLF_MAX_OUTPUTS][LARGEST], first[SDLF_MAX_OUTPUTS][LARGEST];

static void keep(float to[SDLF_MAX_OUTPUTS][LARGEST], const sdlf_operation *operation)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        memcpy(to[i], memory[SDLF_MAX_INPUTS + i], (size_t)sdlf_tensor_bytes(&operation->out[i]));
    }
}

static double largest_difference(const sdlf_operation *operation)
{
    double worst = 0;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *out = &operation->out[i];
        for (int64_t j = 0; out->dtype == SDLF_FLOAT32 && j < sdlf_tensor_count(out); j++) {
            double want = (double)expected[i][j], difference = fabs((double)((float *)out->data)[j] - want);
            difference /= fmax(1, fabs(want));
            if (!(difference <= worst)) worst = difference;
        }
    }
    return worst;
}

static bool same_bits(const sdlf_operation *operation)
{
    bool same = true;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        same =
            same && memcmp(first[i], memory[SDLF_MAX_INPUTS + i], (size_t)sdlf_tensor_bytes(&operation->out[i])) == 0;
    }
    return same;
}

static void check_example(const example *made, sdlf_calculator *const cpu[3], const char *level)
{
    sdlf_operation operation = made->operation;
    if (!sdlf_calculator_supports(cpu[0], &operation)) return; /* a build without a library */
    for (int i = 0; i < 3; i++) {
        if (!CHECK_OK(run(cpu[i], &operation))) return;
        if (i == 0) keep(first, &operation);
        if (!CHECK(largest_difference(&operation) <= made->tolerance) || !CHECK(same_bits(&operation))) {
            printf("%s, %s, machine %d: %g off\n", made->name, level, i, largest_difference(&operation));
        }
    }
}

static void check_level(const char *level)
{
    static const int threads[3] = {1, 2, 3};
    sdlf_calculator *cpu[3] = {NULL}, *reference = NULL;
    if (!test_set_level(level)) {
        test_skip(sdlf_error_message());
        return;
    }
    bool opened = true;
    for (int i = 0; i < 3; i++)
        opened &= CHECK_OK(sdlf_calculator_open(&cpu[i], "cpu", &(sdlf_calculator_options){.threads = threads[i]}));
    if (opened && CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL))) {
        for (int i = 0; example_at(i).name; i++) {
            example made = example_at(i);
            sdlf_operation operation = made.operation;
            operation.algorithm = 0;
            if (!CHECK_OK(run(reference, &operation))) continue;
            keep(expected, &operation);
            check_example(&made, cpu, level);
        }
    }
    sdlf_calculator_close(reference);
    for (int i = 0; i < 3; i++) sdlf_calculator_close(cpu[i]);
    test_set_level(NULL);
}

static void plain_agrees(void)
{
    check_level("plain");
}

static void neon_agrees(void)
{
    check_level("neon");
}

static void avx2_agrees(void)
{
    check_level("avx2");
}

static void avx512_agrees(void)
{
    check_level("avx512");
}

static void unknown_levels_are_refused(void)
{
    sdlf_calculator *cpu = NULL;
    setenv("SDLF_SIMD", "mmx", 1);
    CHECK_FAILS(sdlf_calculator_open(&cpu, "cpu", NULL), SDLF_ERROR_ARGUMENT, "mmx");
    CHECK(test_set_level(NULL));
}

int main(void)
{
    RUN(plain_agrees);
    RUN(neon_agrees);
    RUN(avx2_agrees);
    RUN(avx512_agrees);
    RUN(unknown_levels_are_refused);
    return test_summary();
}
