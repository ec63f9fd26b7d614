/* SPDX-License-Identifier: MIT */
/* A kernel's output is visible to the kernel queued after it, whose blocks may have started early: an operation after a
 * long-running GEMM that writes one of its operands has bitwise the same outputs as if the host had waited between the
 * two, with prepacked weights and without. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

#include "calculators/fusions/inverted_residual.h"

/* Operands that the GEMM writes have up to MOST elements, each a sum of TERMS terms. */
enum { MOST = 16, TERMS = 1 << 17, LARGEST = 4096 };

/* An operation, and which of its inputs is written. */
typedef struct follower {
    sdlf_operation operation;
    int written;
} follower;

static sdlf_window2d window_of(int size)
{
    sdlf_window2d window;
    memset(&window, 0, sizeof window);
    for (int i = 0; i < 2; i++) {
        window.size[i] = size;
        window.stride[i] = window.dilation[i] = 1;
        window.padding_before[i] = window.padding_after[i] = size / 2;
    }
    return window;
}

static sdlf_tensor tensor(sdlf_shape shape)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, NULL);
}

/* ---- the operations ---- */

typedef struct convolution {
    int c, h, w, k, size, groups;
    bool x_last, y_last;
    int written;
} convolution;

static follower convolve(convolution c)
{
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.window = window_of(c.size), .groups = c.groups}};
    o.in[0] = tensor(sdlf_shape(1, c.c, c.h, c.w));
    o.in[1] = tensor(sdlf_shape(c.k, c.c / c.groups, c.size, c.size));
    o.in[2] = tensor(sdlf_shape(c.k));
    o.out[0] = tensor(sdlf_shape(1, c.k, c.h, c.w));
    if (c.x_last) o.in[0] = sdlf_tensor_channels_last(o.in[0]);
    if (c.y_last) o.out[0] = sdlf_tensor_channels_last(o.out[0]);
    if (c.written == 3) o.in[3] = o.out[0];
    return (follower){o, c.written};
}

static follower multiply(int64_t k, int64_t n)
{
    sdlf_operation o = {.kind = SDLF_GEMM, .gemm = {.transpose_b = true, .alpha = 1}};
    o.in[0] = tensor(sdlf_shape(1, k));
    o.in[1] = tensor(sdlf_shape(n, k));
    o.out[0] = tensor(sdlf_shape(1, n));
    return (follower){o, 0};
}

/* Of 4 channels of 2x2 pixels, 32 in the middle. */
static follower block(int written)
{
    sdlf_operation o = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_inverted_residual_fusion}};
    inverted_residual_options_in(&o)->window = window_of(3);
    o.in[0] = o.in[7] = o.out[0] = tensor(sdlf_shape(1, 4, 2, 2));
    o.in[1] = tensor(sdlf_shape(32, 1, 3, 3));
    o.in[2] = tensor(sdlf_shape(4, 32, 1, 1));
    o.in[3] = tensor(sdlf_shape(32, 4, 1, 1));
    return (follower){o, written};
}

static int followers(follower *to)
{
    static const convolution convolutions[] = {
        /* bias */
        {3, 6, 5, 16, 3, 1, false, false, 2},
        {3, 6, 5, 16, 3, 1, true, true, 2},
        {3, 6, 5, 16, 3, 1, false, true, 2},
        {4, 6, 5, 16, 3, 1, true, true, 2},
        {36, 6, 5, 16, 3, 1, true, true, 2},
        {36, 6, 5, 16, 1, 1, true, true, 2},
        {36, 6, 5, 16, 3, 1, false, false, 2},
        {36, 6, 5, 16, 1, 1, false, false, 2},
        {16, 6, 5, 16, 3, 16, true, true, 2},
        {16, 6, 5, 16, 3, 16, false, false, 2},
        /* x */
        {3, 1, 5, 16, 3, 1, true, true, 0},
        {3, 1, 5, 16, 3, 1, false, true, 0},
        {4, 2, 2, 16, 3, 1, true, true, 0},
        {8, 1, 2, 16, 3, 1, true, true, 0},
        {8, 1, 2, 8, 3, 8, true, true, 0},
        {4, 2, 2, 16, 3, 1, false, false, 0},
        /* the residual */
        {3, 2, 2, 4, 3, 1, true, true, 3},
        {36, 2, 2, 4, 3, 1, true, true, 3},
        {36, 2, 2, 4, 1, 1, false, false, 3},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof convolutions / sizeof convolutions[0]; i++) to[count++] = convolve(convolutions[i]);
    to[count++] = multiply(16, 64);
    to[count++] = block(0);
    to[count++] = block(7);
    return count;
}

/* ---- running ---- */

static sdlf_tensor allocated(sdlf_calculator *calculator, int64_t bytes)
{
    sdlf_tensor made = {.dtype = SDLF_NONE};
    if (bytes <= 0) return made;
    made = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), NULL);
    CHECK_OK(calculator->type->allocate(calculator, bytes, &made.data));
    return made;
}

static void give_back(sdlf_calculator *calculator, const sdlf_tensor *made)
{
    if (made->data != NULL) calculator->type->deallocate(calculator, made->data);
}

static void fill(sdlf_calculator *calculator, const sdlf_tensor *made, double value)
{
    const sdlf_operation o = {.kind = SDLF_FILL, .out = {*made}, .fill = {.value = value}};
    CHECK_OK(sdlf_calculator_run(calculator, &o));
}

/* The operands of the GEMM, whose results are all 1. */
typedef struct product {
    sdlf_tensor a, b;
} product;

static product make_product(sdlf_calculator *calculator)
{
    product p = {tensor(sdlf_shape(1, TERMS)), tensor(sdlf_shape(MOST, TERMS))};
    CHECK_OK(calculator->type->allocate(calculator, sdlf_tensor_bytes(&p.a), &p.a.data));
    CHECK_OK(calculator->type->allocate(calculator, sdlf_tensor_bytes(&p.b), &p.b.data));
    fill(calculator, &p.a, 1);
    fill(calculator, &p.b, 1.0 / TERMS);
    return p;
}

typedef enum queueing { NOT_WRITTEN, WAITED_FOR, QUEUED } queueing;

/* The operation's output, after the GEMM or without it. */
static void run(sdlf_calculator *calculator, const follower *f, const product *p, queueing order, float *found)
{
    static const float zeros[MOST];
    const sdlf_tensor *written = &f->operation.in[f->written], *y = &f->operation.out[0];
    const int64_t count = sdlf_tensor_count(written);
    sdlf_operation o = {.kind = SDLF_GEMM, .gemm = {.transpose_b = true, .alpha = 1}};
    o.in[0] = p->a;
    o.in[1] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count, TERMS), p->b.data);
    o.out[0] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, count), written->data);
    o.workspace = allocated(calculator, sdlf_calculator_workspace(calculator, &o));
    CHECK_OK(calculator->type->upload(calculator, written->data, zeros, count * 4));
    CHECK_OK(calculator->type->synchronize(calculator));
    if (order != NOT_WRITTEN) CHECK_OK(sdlf_calculator_run(calculator, &o));
    if (order == WAITED_FOR) CHECK_OK(calculator->type->synchronize(calculator));
    CHECK_OK(sdlf_calculator_run(calculator, &f->operation));
    CHECK_OK(calculator->type->download(calculator, found, y->data, sdlf_tensor_bytes(y)));
    give_back(calculator, &o.workspace);
}

static void compare(sdlf_calculator *calculator, follower f, const product *p, bool ready)
{
    float without[LARGEST], expected[LARGEST], found[LARGEST];
    sdlf_operation *o = &f.operation;
    const size_t bytes = (size_t)sdlf_tensor_bytes(&o->out[0]);
    o->prepared = allocated(calculator, ready ? sdlf_calculator_prepared(calculator, o) : 0);
    if (ready && o->prepared.data == NULL) return;
    if (ready) CHECK_OK(sdlf_calculator_slot(calculator, o)->prepare(calculator, o));
    o->workspace = allocated(calculator, sdlf_calculator_workspace(calculator, o));
    run(calculator, &f, p, NOT_WRITTEN, without);
    run(calculator, &f, p, WAITED_FOR, expected);
    run(calculator, &f, p, QUEUED, found);
    CHECK(memcmp(without, expected, bytes) != 0);
    CHECK(memcmp(found, expected, bytes) == 0);
    give_back(calculator, &o->prepared);
    give_back(calculator, &o->workspace);
}

/* With operands from -1 to 1, in both orders. */
static void try_follower(sdlf_calculator *calculator, follower f, const product *p)
{
    sdlf_operation *o = &f.operation;
    for (int i = 0; i <= SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *operand = i < SDLF_MAX_INPUTS ? &o->in[i] : &o->out[0];
        const int64_t count = sdlf_tensor_present(operand) ? sdlf_tensor_count(operand) : 0;
        float numbers[LARGEST * 4];
        for (int64_t k = 0; k < count; k++)
            numbers[k] = (float)((double)sdlf_philox4x32(5, (uint64_t)k, (uint32_t)i, 0).word[0] * 0x1p-31 - 1);
        if (count == 0) continue;
        CHECK_OK(calculator->type->allocate(calculator, count * 4, &operand->data));
        CHECK_OK(calculator->type->upload(calculator, operand->data, numbers, count * 4));
    }
    if (sdlf_calculator_supports(calculator, o)) {
        CHECK_OK(sdlf_operation_check(o));
        compare(calculator, f, p, false);
        compare(calculator, f, p, true);
    }
    for (int i = 0; i <= SDLF_MAX_INPUTS; i++) give_back(calculator, i < SDLF_MAX_INPUTS ? &o->in[i] : &o->out[0]);
}

static void what_is_written_is_there_for_the_next(void)
{
    follower tried[32];
    const int count = followers(tried);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        for (int math = SDLF_MATH_FP32; math < SDLF_MATH_COUNT; math++) {
            sdlf_calculator *calculator = NULL;
            sdlf_status status =
                sdlf_calculator_open(&calculator, type->name, &(sdlf_calculator_options){.math = (sdlf_math)math});
            if (status == SDLF_ERROR_UNSUPPORTED) continue; /* an unsupported mode */
            if (!CHECK_OK(status)) continue;
            const product p = make_product(calculator);
            for (int k = 0; k < count; k++) try_follower(calculator, tried[k], &p);
            give_back(calculator, &p.a);
            give_back(calculator, &p.b);
            sdlf_calculator_close(calculator);
        }
    }
}

int main(void)
{
    RUN(what_is_written_is_there_for_the_next);
    return test_summary();
}
