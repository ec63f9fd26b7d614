/* What "auto" of the cuda calculator takes where rungs are far apart: a row for each branch of its rules, with the microseconds of what it takes
 * and of what comes next, on the GPU of compute capability 9.0 that the rules are fitted to (an H200). */
#include <stdio.h>

#include <sdlf/calculator.h>

#include "testing.h"

enum { MODES = SDLF_MATH_COUNT + 1, DOUBLE = SDLF_MATH_COUNT /* float64 */ };

/* NULL where there is no such GPU. */
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

/* ---- convolutions ---- */

static const struct conv_choice {
    int mode;
    char kind; /* forward, x or w */
    int n, c, side, k, size, stride;
    bool finishes; /* with bias and ReLU */
    const char *taken;
} convs[] = {
    /* forward: 1x1 */
    {SDLF_MATH_FP32, 'f', 1, 960, 7, 160, 1, 1, true, "pointwise"},  /* 6.3; two-step 8.8 */
    {SDLF_MATH_FP32, 'f', 1, 1024, 14, 256, 1, 1, true, "two-step"}, /* 10.7; pointwise 12.8, pointwise-warps 25.0 */
    {SDLF_MATH_FP32, 'f', 128, 32, 112, 16, 1, 1, true, "pointwise-warps"}, /* 93.7; two-step 227 */
    {SDLF_MATH_FP32, 'f', 128, 256, 56, 128, 1, 1, false, "two-step"},      /* 605; pointwise-warps 756 */
    {SDLF_MATH_FP32, 'f', 32, 1152, 1, 48, 1, 1, true, "two-step"},         /* 5.4; pointwise 8.3 */
    {SDLF_MATH_FP32, 'f', 32, 1024, 14, 2048, 1, 2, true, "two-step"},      /* 222; implicit-gemm 249, pointwise 399 */
    {DOUBLE, 'f', 32, 256, 14, 512, 1, 2, true, "two-step"},                /* 23.2; implicit-gemm 64.4 */
    {SDLF_MATH_TF32, 'f', 32, 256, 14, 1024, 1, 1, false,
     "two-step"}, /* 31.1; pointwise-warps 65.0, implicit-gemm 75.8 */
    {SDLF_MATH_TF32, 'f', 32, 512, 7, 128, 1, 1, false, "pointwise-warps"}, /* 9.1; two-step 13.1 */
    {SDLF_MATH_TF32, 'f', 8, 480, 14, 128, 1, 1, true, "pointwise-warps"},  /* 5.1; two-step 9.5 */
    {SDLF_MATH_BF16, 'f', 32, 128, 28, 512, 1, 1, false, "two-step"},       /* 28.4; implicit-gemm 74.3 */
    {SDLF_MATH_BF16, 'f', 32, 512, 7, 128, 1, 1, false, "implicit-gemm"},   /* 14.8; two-step 20.0 */
    /* forward: other windows */
    {SDLF_MATH_FP32, 'f', 1, 1, 28, 32, 5, 1, true, "depthwise"},            /* 1.8; few-channels 3.8 */
    {SDLF_MATH_FP32, 'f', 8, 128, 56, 32, 3, 1, true, "winograd-2x2-steps"}, /* 59.5; winograd-2x2 74.2 */
    {SDLF_MATH_FP32, 'f', 32, 256, 14, 512, 3, 2, true, "two-step"},         /* 138; implicit-gemm 185 */
    {SDLF_MATH_FP32, 'f', 4, 720, 16, 64, 3, 2, false, "implicit-gemm"},     /* 19.6; two-step 143 */
    {DOUBLE, 'f', 1, 512, 28, 512, 3, 1, true, "two-step"},                  /* 99.8; implicit-gemm 420 */
    {SDLF_MATH_TF32, 'f', 32, 512, 28, 512, 3, 1, false, "two-step"},        /* 775; implicit-gemm 1109 */
    {SDLF_MATH_TF32, 'f', 32, 64, 56, 64, 3, 1, false, "implicit-gemm"},     /* 118; two-step 248 */
    {SDLF_MATH_BF16, 'f', 32, 256, 28, 512, 3, 1, false, "two-step"},        /* 223; implicit-gemm 408 */
    /* backward by the input */
    {SDLF_MATH_BF16, 'x', 32, 96, 1, 4, 1, 1, false, "direct"},            /* 2.7; pointwise 5.7 */
    {SDLF_MATH_FP32, 'x', 2, 512, 7, 512, 3, 1, false, "two-step"},        /* 35.7; implicit-gemm 60.2 */
    {SDLF_MATH_TF32, 'x', 32, 128, 28, 128, 3, 1, false, "implicit-gemm"}, /* 122; two-step 287 */
    {SDLF_MATH_TF32, 'x', 32, 256, 14, 512, 1, 2, false, "two-step"},      /* 37.5; implicit-gemm 48.4 */
    /* backward by the weights */
    {SDLF_MATH_TF32, 'w', 128, 512, 7, 2048, 1, 1, false, "implicit-gemm"}, /* 216; pointwise 461 */
    {SDLF_MATH_TF32, 'w', 32, 256, 14, 1024, 1, 1, false, "pointwise"},     /* 36.4; implicit-gemm 93.4 */
    {SDLF_MATH_TF32, 'w', 32, 512, 28, 512, 3, 1, false, "two-step"},       /* 814; implicit-gemm 1359 */
    {SDLF_MATH_FP32, 'w', 32, 64, 56, 64, 1, 1, false, "implicit-gemm"},    /* 59.9; pointwise 104 */
    {SDLF_MATH_FP32, 'w', 128, 1, 28, 32, 5, 1, false, "depthwise"},        /* 36.3; implicit-gemm 63.8 */
    {SDLF_MATH_BF16, 'w', 32, 512, 7, 2048, 1, 1, false, "implicit-gemm"},  /* 60.1; pointwise 147 */
};

static sdlf_operation conv_of(const struct conv_choice *choice)
{
    int out = (choice->side - 1) / choice->stride + 1, before = choice->size / 2;
    sdlf_tensor x = of(choice->mode, sdlf_shape(choice->n, choice->c, choice->side, choice->side));
    sdlf_tensor w = of(choice->mode, sdlf_shape(choice->k, choice->c, choice->size, choice->size));
    sdlf_tensor y = of(choice->mode, sdlf_shape(choice->n, choice->k, out, out));
    sdlf_operation op = {.kind = SDLF_CONV2D_FORWARD, .in = {x, w}, .out = {y}, .conv2d = {.groups = 1}};
    for (int i = 0; i < 2; i++) {
        sdlf_window2d *window = &op.conv2d.window;
        window->size[i] = choice->size;
        window->stride[i] = choice->stride;
        window->dilation[i] = 1;
        window->padding_before[i] = window->padding_after[i] = before;
    }
    if (choice->finishes) {
        op.in[2] = of(choice->mode, sdlf_shape(choice->k));
        op.conv2d.activation.function = SDLF_RELU;
    }
    if (choice->kind == 'x') {
        op.kind = SDLF_CONV2D_BACKWARD_INPUT;
        op.in[0] = y;
        op.out[0] = x;
    } else if (choice->kind == 'w') {
        op.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
        op.in[1] = y;
        op.out[0] = w;
    }
    return op;
}

static void convolutions(void)
{
    for (int mode = 0; mode < MODES; mode++) {
        sdlf_calculator *cuda = open_in(mode);
        if (cuda == NULL) return;
        for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
            if (convs[i].mode != mode) continue;
            sdlf_operation op = conv_of(&convs[i]);
            CHECK_OK(sdlf_operation_check(&op));
            if (!CHECK_TEXT(sdlf_calculator_algorithm(cuda, &op), convs[i].taken)) printf("    row %zu\n", i);
        }
        sdlf_calculator_close(cuda);
    }
}

/* ---- products ---- */

static const struct gemm_choice {
    int mode, m, n, k;
    bool transpose_b, ready; /* is b ready? */
    const char *taken;
} gemms[] = {
    {SDLF_MATH_FP32, 1, 10, 1024, true, false, "sweep"},           /* 1.2; few-columns 1.9 */
    {SDLF_MATH_FP32, 64, 10, 1024, true, false, "few-columns"},    /* 2.1; cublas 7.5 */
    {SDLF_MATH_FP32, 10000, 10, 128, true, false, "cublas"},       /* 6.7; few-columns 16.1 */
    {SDLF_MATH_FP32, 64, 1024, 6272, true, false, "few-rows"},     /* 27.1; cublas 32.4 */
    {SDLF_MATH_FP32, 96, 100, 512, true, false, "cublas"},         /* 7.0; few-rows 16.9 */
    {SDLF_MATH_FP32, 2708, 8, 16, false, false, "resident"},       /* 2.5; cublas 7 */
    {SDLF_MATH_FP32, 30000, 16, 128, false, false, "vector"},      /* 8.0; resident 11.4, cublas 11.4 */
    {SDLF_MATH_FP32, 281903, 16, 128, false, false, "resident"},   /* 42.6; vector 49.3 */
    {DOUBLE, 20000, 8, 64, false, false, "resident"},              /* 4.3; cublas 6.5 */
    {SDLF_MATH_TF32, 10000, 16, 1024, true, false, "cublas"},      /* 12.0; few-columns 31.7 */
    {SDLF_MATH_TF32, 96, 1000, 1280, true, false, "cublas"},       /* 8.0; few-rows 9.2 */
    {SDLF_MATH_BF16, 10000, 10, 1024, true, false, "few-columns"}, /* 24.2; tensor 26.9 */
    {SDLF_MATH_BF16, 60000, 3, 128, true, false, "tensor"},        /* 15.6; cublas 32.4, few-columns 87.5 */
    {SDLF_MATH_BF16, 128, 4096, 4096, true, false, "few-rows"},    /* b rounded anew each time otherwise */
    {SDLF_MATH_BF16, 128, 4096, 4096, true, true, "cublas"},       /* 15.7; few-rows 42.8 */
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

int main(void)
{
    RUN(convolutions);
    RUN(products);
    return test_summary();
}
