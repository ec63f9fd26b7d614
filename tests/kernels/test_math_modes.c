/* SPDX-License-Identifier: MIT */
/* Math modes: products in fp16 and bf16 are those of operands rounded to the mode's format, for every algorithm.
 *
 * A calculator computes an operation on the original operands, and the reference on operands rounded here. The two may
 * differ only by the rounding of float32 sums, which is far less than the rounding of operands, so that a wrong mode
 * would be detected. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

#include "testing.h"

enum { OPERANDS = 2, MOST_SIZES = 4 };

/* To nearest, ties to even. */
static float rounded(sdlf_math math, float x)
{
    int exponent = 0;
    if (x == 0 || !isfinite(x)) return x;
    frexp((double)x, &exponent); /* x = m 2^exponent, m in [1/2, 1) */
    int unit = exponent - (math == SDLF_MATH_BF16 ? 8 : 11);
    if (math == SDLF_MATH_FP16 && unit < -24) unit = -24; /* denormal */
    double value = ldexp(nearbyint(ldexp((double)x, -unit)), unit);
    if (math == SDLF_MATH_FP16 && fabs(value) > 65504) return x < 0 ? -INFINITY : INFINITY;
    return (float)value;
}

/* ---- an operation with its operands on the host ---- */

typedef struct job {
    sdlf_operation operation;
    float *in[OPERANDS], *rounded[OPERANDS], *found, *expected;
    float magnitude; /* operands are in [-magnitude, magnitude) */
} job;

static float *need(int64_t count)
{
    float *memory = malloc((size_t)count * sizeof *memory);
    if (memory == NULL) exit(1);
    return memory;
}

static void job_make(job *j, sdlf_math math, float magnitude)
{
    j->magnitude = magnitude;
    for (int i = 0; i < OPERANDS; i++) {
        int64_t count = sdlf_tensor_count(&j->operation.in[i]);
        j->in[i] = need(count);
        j->rounded[i] = need(count);
        for (int64_t e = 0; e < count; e++) {
            uint32_t word = sdlf_philox4x32(7, (uint64_t)e, (uint32_t)i, 0).word[0];
            j->in[i][e] = (float)((double)word * 0x1p-31 - 1) * (i == 0 ? magnitude : 1);
            j->rounded[i][e] = rounded(math, j->in[i][e]);
        }
    }
    j->found = need(sdlf_tensor_count(&j->operation.out[0]));
    j->expected = need(sdlf_tensor_count(&j->operation.out[0]));
}

static void job_free(job *j)
{
    for (int i = 0; i < OPERANDS; i++) {
        free(j->in[i]);
        free(j->rounded[i]);
    }
    free(j->found);
    free(j->expected);
}

static void job_run(const job *j, sdlf_calculator *calculator, int algorithm, float *const *in, float *out)
{
    sdlf_operation operation = j->operation;
    operation.algorithm = algorithm;
    for (int i = 0; i < OPERANDS; i++) {
        CHECK_OK(sdlf_tensor_create(&operation.in[i], calculator, SDLF_FLOAT32, j->operation.in[i].shape));
        CHECK_OK(
            calculator->type->upload(calculator, operation.in[i].data, in[i], sdlf_tensor_bytes(&operation.in[i])));
    }
    CHECK_OK(sdlf_tensor_create(&operation.out[0], calculator, SDLF_FLOAT32, j->operation.out[0].shape));
    int64_t bytes = sdlf_tensor_bytes(&operation.out[0]);
    memset(out, 0xff, (size_t)bytes); /* NaN wherever nothing is written */
    CHECK_OK(calculator->type->upload(calculator, operation.out[0].data, out, bytes));
    CHECK_OK(sdlf_calculator_run(calculator, &operation));
    CHECK_OK(calculator->type->download(calculator, out, operation.out[0].data, bytes));
    for (int i = 0; i < OPERANDS; i++) sdlf_tensor_release(&operation.in[i], calculator);
    sdlf_tensor_release(&operation.out[0], calculator);
}

/* ---- comparing ---- */

/* Float32 sums are off by a few units in the last place per step; tensor cores truncate. */
static int64_t wrong_ones(const job *j, int64_t depth)
{
    double allowed = (double)j->magnitude * 0x1p-22 * (double)(depth + 8);
    int64_t wrong = 0;
    for (int64_t e = 0; e < sdlf_tensor_count(&j->operation.out[0]); e++) {
        double found = (double)j->found[e], expected = (double)j->expected[e];
        bool same = found == expected || (isnan(found) && isnan(expected));
        wrong += !same && !(fabs(found - expected) <= allowed);
    }
    return wrong;
}

/* Algorithms that round operands in these modes; all others compute in fp32 (docs/guides/cuda.md), cuDNN's convolutions
 * as in tf32. */
static bool rounds(const sdlf_calculator *calculator, sdlf_operation_kind kind, const char *algorithm)
{
    if (strcmp(calculator->type->name, "cudnn") == 0 && kind != SDLF_GEMM) return false;
    static const char *const names[] = {"cublas", "two-step", "implicit-gemm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], algorithm) == 0) return true;
    }
    return false;
}

static void check_job(sdlf_calculator *calculator, sdlf_calculator *reference, sdlf_math math, sdlf_operation operation,
                      int64_t depth, float magnitude)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, &operation);
    job j = {.operation = operation};
    job_make(&j, math, magnitude);
    job_run(&j, reference, 0, j.rounded, j.expected);
    for (int a = 1; slot->algorithms != NULL && slot->algorithms[a] != NULL; a++) {
        operation.algorithm = a;
        if (!rounds(calculator, operation.kind, slot->algorithms[a]) ||
            !sdlf_calculator_supports(calculator, &operation))
            continue;
        job_run(&j, calculator, a, j.in, j.found);
        int64_t wrong = wrong_ones(&j, depth);
        if (wrong > 0)
            printf("%s, %s, %s, operands up to %g: %lld numbers are not those of rounded operands\n",
                   sdlf_operation_type(&operation)->name, slot->algorithms[a], sdlf_math_name(math), (double)magnitude,
                   (long long)wrong);
        CHECK_EQUAL(wrong, 0);
    }
    job_free(&j);
}

/* ---- the operations ---- */

static sdlf_tensor tensor(sdlf_shape shape)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, NULL);
}

static void check_products(sdlf_calculator *calculator, sdlf_calculator *reference, sdlf_math math, float magnitude)
{
    static const int64_t sizes[MOST_SIZES][3] = {{260, 200, 300}, {64, 128, 512}, {33, 70, 45}, {129, 67, 130}};
    for (int i = 0; i < MOST_SIZES; i++) {
        for (int transposed = 0; transposed < 4; transposed++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            bool a = transposed & 1, b = transposed & 2;
            sdlf_operation product = {.kind = SDLF_GEMM,
                                      .in = {tensor(a ? sdlf_shape(k, m) : sdlf_shape(m, k)),
                                             tensor(b ? sdlf_shape(n, k) : sdlf_shape(k, n))},
                                      .out = {tensor(sdlf_shape(m, n))},
                                      .gemm = {.transpose_a = a, .transpose_b = b, .alpha = 1}};
            check_job(calculator, reference, math, product, k, magnitude);
        }
    }
}

/* x (N,C,H,W), K filters of side R, padding R / 2: forward, dx from dy and w, dw from x and dy. */
static void check_convolutions(sdlf_calculator *calculator, sdlf_calculator *reference, sdlf_math math, float magnitude)
{
    static const int64_t sizes[][5] = {{3, 16, 9, 40, 3}, {2, 24, 7, 30, 1}}; /* N, C, H = W, K, R */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t side = sizes[i][2];
        int window = (int)sizes[i][4], padding = window / 2;
        sdlf_tensor x = tensor(sdlf_shape(sizes[i][0], sizes[i][1], side, side));
        sdlf_tensor w = tensor(sdlf_shape(sizes[i][3], sizes[i][1], window, window));
        sdlf_tensor y = tensor(sdlf_shape(sizes[i][0], sizes[i][3], side, side));
        sdlf_operation forward = {.kind = SDLF_CONV2D_FORWARD, .in = {x, w}, .out = {y}};
        forward.conv2d.groups = 1;
        forward.conv2d.window = (sdlf_window2d){.size = {window, window},
                                                .stride = {1, 1},
                                                .dilation = {1, 1},
                                                .padding_before = {padding, padding},
                                                .padding_after = {padding, padding}};
        sdlf_operation input = forward, weights = forward;
        input.kind = SDLF_CONV2D_BACKWARD_INPUT;
        input.in[0] = y;
        input.out[0] = x;
        weights.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
        weights.in[1] = y;
        weights.out[0] = w;
        int64_t taps = (int64_t)window * window;
        check_job(calculator, reference, math, forward, sizes[i][1] * taps, magnitude);
        check_job(calculator, reference, math, input, sizes[i][3] * taps, magnitude);
        check_job(calculator, reference, math, weights, sizes[i][0] * side * side, magnitude);
    }
}

/* Operands up to 1; down to where float16 has few bits or none; and up to where it overflows. */
static void operands_are_rounded(void)
{
    static const float magnitudes[] = {1, 1e-6f, 1e5f};
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    bool any = false;
    for (int i = 0; reference != NULL && test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        for (int math = SDLF_MATH_FP16; type->has_math && math <= SDLF_MATH_BF16; math++) {
            sdlf_calculator *calculator = NULL;
            sdlf_calculator_options options = {.math = (sdlf_math)math};
            if (sdlf_calculator_open(&calculator, type->name, &options) != SDLF_OK) continue;
            any = true;
            for (int m = 0; m < 3; m++) {
                check_products(calculator, reference, (sdlf_math)math, magnitudes[m]);
                check_convolutions(calculator, reference, (sdlf_math)math, magnitudes[m]);
            }
            sdlf_calculator_close(calculator);
        }
    }
    sdlf_calculator_close(reference);
    if (!any) test_skip("no calculator with fp16 or bf16 on this machine");
}

int main(void)
{
    RUN(operands_are_rounded);
    return test_summary();
}
