/* SPDX-License-Identifier: MIT */
/* Operations that a calculator fuses into one launch, compared with the same operations one by one: the same outputs,
 * except for the order of sums.
 *
 *     test_kernels_together [--math MODE]
 *
 * For tools that slow kernels down: only one math mode. */
#include <sdlf/random.h>

#include "kernels/sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    sdlf_math first, last;
} asked = {SDLF_MATH_FP32, SDLF_MATH_COUNT - 1};

/* False, with a line on stderr, if the options are invalid. */
static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--math") == 0 && sdlf_math_from_name(value) != SDLF_MATH_COUNT) {
            asked.first = asked.last = sdlf_math_from_name(value);
        } else {
            fprintf(stderr, "%s: expected [--math MODE], found '%s %s'\n", argv[0], argv[i], value);
            return false;
        }
    }
    return true;
}

/* Calls `test` for every calculator that fuses launches, in every math mode. */
static void for_calculators(void (*test)(sdlf_calculator *calculator, sdlf_math math))
{
    bool some = false;
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        if (type->run_together == NULL) continue;
        for (int math = (int)asked.first; math <= (int)asked.last; math++) {
            sdlf_calculator *calculator = NULL;
            sdlf_status status =
                sdlf_calculator_open(&calculator, type->name, &(sdlf_calculator_options){.math = (sdlf_math)math});
            if (status == SDLF_ERROR_UNSUPPORTED) continue; /* a mode that this device lacks */
            if (!CHECK_OK(status)) continue;
            test(calculator, (sdlf_math)math);
            sdlf_calculator_close(calculator);
            some = true;
        }
    }
    if (!some) test_skip("no calculator here puts operations together");
}

/* ---- a batch is drawn ---- */

enum { SAMPLES = 700, STEPS = 3 };

static void draw(sdlf_calculator *calculator, int batch, int side)
{
    int32_t order[SAMPLES], labels[SAMPLES];
    float rates[STEPS] = {0.1f, 0.2f, 0.3f};
    int64_t first = 40, cursor = 0, step = 0;
    uint8_t *x = malloc((size_t)SAMPLES * (size_t)(side * side));
    for (int i = 0; i < SAMPLES; i++) order[i] = (int32_t)(i * 9 % SAMPLES), labels[i] = i % 10;
    for (int i = 0; i < SAMPLES * side * side; i++) x[i] = (uint8_t)(i * 7 + i / 251);
    sequence s = {.count = 2};
    sdlf_shape one = sdlf_shape(1);
    sdlf_tensor index = sequence_add(
        &s, (sequence_operand){SDLF_INT32, sdlf_shape(batch), .from = order, .exact = true, .written = true});
    s.operation[0] = (sdlf_operation){
        .kind = SDLF_NEXT_BATCH,
        .in = {sequence_add(&s, (sequence_operand){SDLF_INT32, sdlf_shape(STEPS * batch), .from = order}),
               sequence_add(&s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(STEPS), .from = rates}),
               sequence_add(&s, (sequence_operand){SDLF_INT64, one, .from = &first}),
               sequence_add(&s, (sequence_operand){SDLF_INT32, sdlf_shape(SAMPLES), .from = labels})},
        .out = {sequence_add(&s, (sequence_operand){SDLF_INT64, one, .from = &cursor, .exact = true, .written = true}),
                index,
                sequence_add(&s, (sequence_operand){SDLF_FLOAT32, one, .scale = 1, .exact = true, .written = true}),
                sequence_add(&s, (sequence_operand){SDLF_INT64, one, .from = &step, .exact = true, .written = true}),
                sequence_add(&s, (sequence_operand){SDLF_INT32, sdlf_shape(batch), .from = order, .exact = true,
                                                    .written = true})},
    };
    s.operation[1] = (sdlf_operation){
        .kind = SDLF_GATHER_BATCH,
        .in = {sequence_add(&s, (sequence_operand){SDLF_UINT8, sdlf_shape(SAMPLES, 1, side, side), .from = x}), index},
        .out = {sequence_add(&s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(batch, 1, side, side), .scale = 1,
                                                    .exact = true, .written = true})},
        .gather = {.mean = 33.3f, .scale = 0.013f},
    };
    sequence_compare(&s, calculator, STEPS, 2);
    free(x);
}

static void draw_all(sdlf_calculator *calculator, sdlf_math math)
{
    (void)math;
    draw(calculator, 1, 28);
    draw(calculator, 7, 5); /* no whole quads */
    draw(calculator, 64, 28);
    draw(calculator, 233, 6);
}

static void a_batch_is_drawn(void)
{
    for_calculators(draw_all);
}

/* ---- many parameters ---- */

static sdlf_operation update(sequence *s, sdlf_operation_kind kind, int number, const sdlf_tensor shared[3])
{
    static const int64_t counts[] = {1, 7, 64, 1000, 1024, 1025, 9000};
    sdlf_shape shape = sdlf_shape(counts[number % 7]);
    double decay = number % 2 * 0.01;
    sdlf_operation op = {.kind = kind, .in = {sequence_numbers(s, shape, 1), shared[0], shared[1]}};
    bool adam = kind == SDLF_ADAM_UPDATE;
    if (adam) op.in[3] = shared[2];
    int states = kind == SDLF_SGD_UPDATE ? 2 : 3;
    for (int i = 0; i < states; i++) {
        op.out[i] = sequence_numbers(s, shape, 1);
        s->operand[op.out[i].buffer].exact = true;
        s->operand[op.out[i].buffer].positive = i > 0;
    }
    if (kind == SDLF_SGD_UPDATE)
        op.sgd = (sdlf_sgd_rule){.momentum = 0.9f, .nesterov = true, .decay = (float)decay};
    else if (adam)
        op.adam.beta1 = 0.9, op.adam.beta2 = 0.99, op.adam.epsilon = 1e-8, op.adam.decay = decay;
    else
        op.rmsprop.rho = 0.9, op.rmsprop.epsilon = 1e-8, op.rmsprop.momentum = 0.5, op.rmsprop.decay = decay;
    return op;
}

static void updates(sdlf_calculator *calculator, sdlf_operation_kind kind, int count, bool scaled)
{
    const float rate = 0.1f, scale = 0.25f;
    const int64_t step = 3;
    const sdlf_shape one = sdlf_shape(1);
    sequence *s = calloc(1, sizeof *s);
    sdlf_tensor shared[3] = {sequence_add(s, (sequence_operand){SDLF_FLOAT32, one, .from = &rate}),
                             {.dtype = SDLF_NONE},
                             sequence_add(s, (sequence_operand){SDLF_INT64, one, .from = &step})};
    if (scaled) shared[1] = sequence_add(s, (sequence_operand){SDLF_FLOAT32, one, .from = &scale});
    for (int i = 0; i < count; i++) s->operation[s->count++] = update(s, kind, i, shared);
    sequence_compare(s, calculator, 2, count);
    free(s);
}

static void updates_all(sdlf_calculator *calculator, sdlf_math math)
{
    (void)math;
    static const sdlf_operation_kind kinds[] = {SDLF_SGD_UPDATE, SDLF_ADAM_UPDATE, SDLF_RMSPROP_UPDATE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        updates(calculator, kinds[i], 2, true);
        updates(calculator, kinds[i], SEQUENCE_OPERATIONS, false); /* more than fit in a launch */
    }
}

static void updates_are_one(void)
{
    for_calculators(updates_all);
}

/* Check tensors for finite values: all are finite (bad -1), or tensor `bad` is not, at its end. */
static void checks(sdlf_calculator *calculator, int count, int bad)
{
    static float spoilt[1025];
    const float zero = 0;
    sequence *s = calloc(1, sizeof *s);
    spoilt[1024] = bad % 2 ? (float)NAN : -(float)INFINITY;
    const sdlf_tensor found =
        sequence_add(s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(1), .from = &zero, .exact = true, .written = true});
    for (int i = 0; i < count; i++) {
        sequence_operand x = {SDLF_FLOAT32, sdlf_shape(i == bad ? 1025 : 1 + 700 * (i % 3)), .scale = 1};
        if (i == bad) x.from = spoilt;
        s->operation[s->count++] =
            (sdlf_operation){.kind = SDLF_CHECK_FINITE, .in = {sequence_add(s, x)}, .out = {found}};
    }
    sequence_compare(s, calculator, 1, count);
    free(s);
}

static void checks_all(sdlf_calculator *calculator, sdlf_math math)
{
    (void)math;
    checks(calculator, 2, -1);
    checks(calculator, SEQUENCE_OPERATIONS, -1);
    checks(calculator, SEQUENCE_OPERATIONS, SEQUENCE_OPERATIONS - 1);
    checks(calculator, SEQUENCE_OPERATIONS, 4);
}

static void checks_are_one(void)
{
    for_calculators(checks_all);
}

/* Convert weights (K,C,R,S) to 16-bit (K,R,S,C), as in training plans. */
static void weights_all(sdlf_calculator *calculator, sdlf_math math)
{
    (void)math;
    static const int64_t sizes[][4] = {{16, 3, 3, 3}, {64, 16, 1, 1}, {8, 24, 5, 3},   {1, 1, 1, 1},
                                       {40, 8, 7, 7}, {3, 460, 3, 3}, {2, 24, 16, 16}, {2, 4100, 1, 1}};
    for (int half = 0; half < 2; half++) {
        sequence *s = calloc(1, sizeof *s);
        for (int i = 0; i < 70; i++) {
            const int64_t *n = sizes[i % 8];
            sdlf_tensor x =
                sequence_add(s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(n[0], n[2], n[3], n[1]), .scale = 1});
            const int64_t stride[] = {n[1] * n[2] * n[3], n[3], 1, n[2] * n[3]};
            for (int axis = 0; axis < 4; axis++) x.stride[axis] = stride[axis];
            sdlf_tensor y = sequence_add(s, (sequence_operand){half ? SDLF_FLOAT16 : SDLF_BFLOAT16, x.shape, .scale = 1,
                                                               .exact = true, .written = true});
            s->operation[s->count++] = (sdlf_operation){.kind = SDLF_COPY, .in = {x}, .out = {y}};
        }
        sequence_compare(s, calculator, 1, s->count);
        free(s);
    }
}

static void weights_become_16_bits_as_one(void)
{
    for_calculators(weights_all);
}

/* ---- a convolution that computes the sums of batch normalisation ---- */

typedef struct layer {
    int64_t n, side, c, k;
    int window, stride;
    bool bias;
    int groups;
} layer;

/* An image (N,C,H,W), channels last. */
static sdlf_tensor channels_last(sdlf_tensor image, int64_t c, int64_t h, int64_t w)
{
    const int64_t stride[] = {h * w * c, 1, w * c, c};
    image.shape = sdlf_shape(sdlf_tensor_count(&image) / (c * h * w), c, h, w);
    for (int axis = 0; axis < 4; axis++) image.stride[axis] = stride[axis];
    return image;
}

static sdlf_tensor image_of(sequence *s, sdlf_dtype dtype, int64_t rows, int64_t channels)
{
    return sequence_add(
        s, (sequence_operand){.dtype = dtype, .shape = sdlf_shape(rows, channels), .scale = 1, .written = true});
}

/* A convolution of image x, weights and image y, all written. */
static sdlf_operation convolution_of(sequence *s, sdlf_operation_kind kind, sdlf_dtype dtype, const layer *l,
                                     sdlf_tensor x, sdlf_tensor y, int64_t out)
{
    sdlf_operation conv = {.kind = kind, .conv2d = {.groups = l->groups}};
    const bool backward = kind == SDLF_CONV2D_BACKWARD_INPUT;
    const sdlf_tensor w = image_of(s, dtype, l->k, l->c / l->groups * l->window * l->window);
    for (int i = 0; i < 2; i++) {
        conv.conv2d.window.size[i] = l->window;
        conv.conv2d.window.stride[i] = l->stride;
        conv.conv2d.window.dilation[i] = 1;
        conv.conv2d.window.padding_before[i] = conv.conv2d.window.padding_after[i] = l->window / 2;
    }
    x = channels_last(x, l->c, l->side, l->side);
    y = channels_last(y, l->k, out, out);
    conv.in[0] = backward ? y : x;
    conv.in[1] = channels_last(w, l->c / l->groups, l->window, l->window);
    conv.out[0] = backward ? x : y;
    return conv;
}

/* A convolution and batch normalisation of its output. */
static void normalize(sdlf_calculator *calculator, sdlf_dtype dtype, const layer *l)
{
    sequence *s = calloc(1, sizeof *s);
    const int64_t out = (l->side + 2 * (l->window / 2) - l->window) / l->stride + 1, rows = l->n * out * out;
    sdlf_tensor x = image_of(s, dtype, l->n * l->side * l->side, l->c), y = image_of(s, dtype, rows, l->k);
    sdlf_operation *conv = &s->operation[0], *norm = &s->operation[1];
    s->count = 2;
    *conv = convolution_of(s, SDLF_CONV2D_FORWARD, dtype, l, x, y, out);
    if (l->bias) conv->in[2] = sequence_numbers(s, sdlf_shape(l->k), 100); /* large means cancel */
    *norm = (sdlf_operation){.kind = SDLF_BATCH_NORM2D_FORWARD, .in = {y}};
    norm->batch_norm.epsilon = 1e-5f;
    norm->batch_norm.momentum = 0.1f;
    norm->batch_norm.activation.function = SDLF_RELU;
    for (int i = 0; i < 2; i++) norm->in[1 + i] = sequence_numbers(s, sdlf_shape(l->k), 1);
    norm->in[3] = image_of(s, dtype, rows, l->k);
    norm->out[0] = image_of(s, dtype, rows, l->k);
    for (int i = 1; i < 5; i++) norm->out[i] = sequence_numbers(s, sdlf_shape(l->k), 1);
    const bool stores = sdlf_calculator_storage(calculator, conv, true) == dtype;
    CHECK(!stores || (sdlf_calculator_supports(calculator, conv) && sdlf_calculator_supports(calculator, norm)));
    if (stores) sequence_compare(s, calculator, 1, 2);
    free(s);
}

static void normalize_all(sdlf_calculator *calculator, sdlf_math math)
{
    static const layer layers[] = {
        {4, 11, 16, 24, 3, 1, false, 1},   /* rows and columns beyond the tile */
        {3, 11, 16, 24, 3, 1, false, 1},   /* three tiles */
        {8, 16, 64, 64, 3, 1, true, 1},    /* whole tiles */
        {3, 13, 24, 200, 1, 1, true, 1},   /* several columns of tiles */
        {2, 4, 512, 64, 3, 1, false, 1},   /* a tile's sum is shared among the blocks of a cluster */
        {5, 9, 64, 32, 3, 2, false, 1},    /* a stride */
        {75, 32, 8, 8, 3, 1, false, 1},    /* more tiles than blocks */
        {1, 5, 8, 8, 3, 1, false, 1},      /* one tile */
        {20, 32, 120, 120, 3, 1, true, 5}, /* groups in blocks of 48 channels, the last of them with one */
        {3, 9, 64, 128, 3, 1, false, 8},
    };
    if (math != SDLF_MATH_TF32 && math != SDLF_MATH_BF16) return;
    const sdlf_dtype dtype = math == SDLF_MATH_BF16 ? SDLF_BFLOAT16 : SDLF_FLOAT32;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) normalize(calculator, dtype, &layers[i]);
}

static void convolutions_sum_for_normalization(void)
{
    for_calculators(normalize_all);
}

/* Random numbers of that type. */
static void *numbers_of(sdlf_dtype dtype, int64_t count)
{
    char *numbers = malloc((size_t)count * sizeof(float));
    const size_t size = sdlf_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)((double)sdlf_philox4x32(7, (uint64_t)i, 0, 0).word[0] * 0x1p-31 - 1);
        memcpy(numbers + (size_t)i * size, (const char *)&value + sizeof value - size,
               size); /* bfloat16: the upper half */
    }
    return numbers;
}

/* The last image of a batch has the same result as alone, although another kernel runs if the batch occupies all multiprocessors. */
static void convolve_last(sdlf_calculator *calculator, sdlf_dtype dtype, const layer *l, sdlf_operation_kind kind)
{
    enum { READ, READ_LAST, WRITTEN, WRITTEN_LAST };
    sequence *s = calloc(1, sizeof *s);
    const bool backward = kind == SDLF_CONV2D_BACKWARD_INPUT;
    const int64_t side = l->side, pixels = side * side, from = backward ? l->k : l->c, to = backward ? l->c : l->k;
    char *numbers = numbers_of(dtype, l->n * pixels * from);
    const size_t before = (size_t)((l->n - 1) * pixels * from) * sdlf_dtype_size(dtype);
    sdlf_tensor read[2], written[2];
    for (int last = 0; last < 2; last++)
        read[last] = sequence_add(s, (sequence_operand){.dtype = dtype,
                                                        .shape = sdlf_shape((last ? 1 : l->n) * pixels, from),
                                                        .from = last ? numbers + before : numbers});
    for (int last = 0; last < 2; last++) written[last] = image_of(s, dtype, (last ? 1 : l->n) * pixels, to);
    for (int last = 0; last < 2; last++) {
        layer part = *l;
        if (last) part.n = 1;
        s->operation[last] = convolution_of(s, kind, dtype, &part, backward ? written[last] : read[last],
                                            backward ? read[last] : written[last], side);
        s->operation[last].in[1] = s->operation[0].in[1];
    }
    s->count = 2;
    if (sdlf_calculator_storage(calculator, &s->operation[0], true) == dtype)
        sequence_compare_part(s, calculator, WRITTEN, (l->n - 1) * pixels * to, WRITTEN_LAST);
    free(numbers);
    free(s);
}

static void convolve_all(sdlf_calculator *calculator, sdlf_math math)
{
    static const layer layers[] = {
        {31, 24, 72, 72, 3, 1, false, 1},  /* an odd number of tiles of 8 x 8 pixels, one tap's weights after another */
        {67, 16, 64, 128, 3, 1, false, 1}, /* columns of tiles of 128 channels, and of 64 */
        {40, 21, 24, 16, 3, 1, false, 1},  /* all weights resident; partial tiles */
        {70, 13, 32, 32, 5, 1, false, 1},  /* a window of 5 x 5 */
        {40, 24, 128, 32, 3, 1, false, 1}, /* all weights resident, with TMA boxes of some of the channels at a time */
        {67, 16, 136, 200, 3, 1, false, 1}, /* several columns and several loads of channels */
        {600, 4, 72, 128, 3, 1, false, 1},  /* tiles of 128 columns, each shared by two blocks of a large GPU */
        {40, 29, 88, 88, 3, 1, false, 88},  /* depthwise, by boxes of the image */
        {1501, 3, 48, 48, 3, 1, false, 48}, /* the same, of several images */
    };
    if (math != SDLF_MATH_TF32 && math != SDLF_MATH_BF16) return;
    const sdlf_dtype dtype = math == SDLF_MATH_BF16 ? SDLF_BFLOAT16 : SDLF_FLOAT32;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        convolve_last(calculator, dtype, &layers[i], SDLF_CONV2D_FORWARD);
        convolve_last(calculator, dtype, &layers[i], SDLF_CONV2D_BACKWARD_INPUT);
    }
}

static void images_are_convolved_alike(void)
{
    for_calculators(convolve_all);
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) return 2;
    RUN(a_batch_is_drawn);
    RUN(updates_are_one);
    RUN(checks_are_one);
    RUN(weights_become_16_bits_as_one);
    RUN(convolutions_sum_for_normalization);
    RUN(images_are_convolved_alike);
    return test_summary();
}
