/* Operations that a calculator puts together against the same operations one by one: the same outputs, but for the order of sums.
 *
 *     test_kernels_together [--math MODE] [--hidden N]
 *
 * For tools that make kernels slow: one math mode alone, and last layers behind no more than N units alone (0: none). */
#include "kernels/sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    sdlf_math first, last;
    int hidden;
} asked = {SDLF_MATH_FP32, SDLF_MATH_COUNT - 1, INT32_MAX};

/* False, and a line on stderr, where it is not understood. */
static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--math") == 0 && sdlf_math_from_name(value) != SDLF_MATH_COUNT) {
            asked.first = asked.last = sdlf_math_from_name(value);
        } else if (strcmp(argv[i], "--hidden") == 0 && *value >= '0' && *value <= '9') {
            asked.hidden = atoi(value);
        } else {
            fprintf(stderr, "%s: expected [--math MODE] [--hidden N], found '%s %s'\n", argv[0], argv[i], value);
            return false;
        }
    }
    return true;
}

/* Calls `test` for every calculator that puts operations together, in every math mode. */
static void for_calculators(void (*test)(sdlf_calculator *calculator))
{
    bool some = false;
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        if (type->run_together == NULL) continue;
        for (int math = (int)asked.first; math <= (int)asked.last; math++) {
            sdlf_calculator *calculator = NULL;
            sdlf_status status =
                sdlf_calculator_open(&calculator, type->name, &(sdlf_calculator_options){.math = (sdlf_math)math});
            if (status == SDLF_ERROR_UNSUPPORTED) continue; /* a mode that this device has not */
            if (!CHECK_OK(status)) continue;
            test(calculator);
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

static void draw_all(sdlf_calculator *calculator)
{
    draw(calculator, 1, 28);
    draw(calculator, 7, 5); /* no whole quads */
    draw(calculator, 64, 28);
    draw(calculator, 233, 6);
}

static void a_batch_is_drawn(void)
{
    for_calculators(draw_all);
}

/* ---- the last layers ---- */

typedef struct last_case {
    int rows, inputs, hidden, units;
    bool bare; /* no biases, no velocity of them, no dx, no metrics */
    sdlf_activation_function function;
    float smoothing, decay;
} last_case;

static void last(sdlf_calculator *calculator, last_case c)
{
    int32_t labels[128];
    float one = 1, rate = 0.05f;
    for (int i = 0; i < c.rows; i++) labels[i] = (i * 5 + 1) % c.units;
    const double sums[3] = {1.5, 2, 3};
    sequence s = {.count = 4};
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    const sdlf_activation activation = {.function = c.function, .slope = 0.1f};
    sdlf_tensor x = sequence_numbers(&s, sdlf_shape(c.rows, c.inputs), 0.5f);
    sdlf_tensor first_w = sequence_numbers(&s, sdlf_shape(c.hidden, c.inputs), 0.2f);
    sdlf_tensor first_b = c.bare ? none : sequence_numbers(&s, sdlf_shape(c.hidden), 0.3f);
    sdlf_tensor h = sequence_numbers(&s, sdlf_shape(c.rows, c.hidden), 9);
    sdlf_tensor w = sequence_numbers(&s, sdlf_shape(c.units, c.hidden), 0.1f), v = sequence_numbers(&s, w.shape, 0.1f);
    sdlf_tensor b = c.bare ? none : sequence_numbers(&s, sdlf_shape(c.units), 0.2f);
    sdlf_tensor bv = c.bare ? none : sequence_numbers(&s, sdlf_shape(c.units), 0.2f);
    sdlf_tensor logits = sequence_numbers(&s, sdlf_shape(c.rows, c.units), 9),
                p = sequence_numbers(&s, logits.shape, 9);
    sdlf_tensor dlogits = sequence_numbers(&s, logits.shape, 9), dx = c.bare ? none : sequence_numbers(&s, h.shape, 9);
    sdlf_tensor metrics =
        c.bare ? none
               : sequence_add(&s, (sequence_operand){SDLF_FLOAT64, sdlf_shape(3), .from = sums, .written = true});
    sdlf_tensor scalar = sequence_add(&s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(1), .from = &one});
    sdlf_tensor mean = sequence_add(&s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(1), .from = &one, .written = true});
    sdlf_tensor rates = sequence_add(&s, (sequence_operand){SDLF_FLOAT32, sdlf_shape(1), .from = &rate});
    sdlf_tensor label = sequence_add(&s, (sequence_operand){SDLF_INT32, sdlf_shape(c.rows), .from = labels});
    s.operation[0] = (sdlf_operation){
        .kind = SDLF_GEMM,
        .in = {x, first_w, first_b},
        .out = {h},
        .gemm = {.transpose_b = true, .alpha = 0.75f, .activation = activation},
    };
    s.operation[1] = (sdlf_operation){
        .kind = SDLF_GEMM, .in = {h, w, b}, .out = {logits}, .gemm = {.transpose_b = true, .alpha = 1}};
    s.operation[2] = (sdlf_operation){
        .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD,
        .in = {logits, label, scalar},
        .out = {p, mean, metrics, dlogits},
        .cross_entropy = {.smoothing = c.smoothing},
    };
    s.operation[3] = (sdlf_operation){
        .kind = SDLF_GEMM_BACKWARD_SGD,
        .in = {h, dlogits, rates},
        .out = {w, v, dx, b, bv},
        .gemm_backward = {.sgd = {.momentum = 0.9f, .decay = c.decay}, .activation = activation},
    };
    const int least = c.rows <= 64 && test_runs_all_kernels(calculator) ? 4 : 0; /* it wants a cluster of blocks */
    sequence_compare(&s, calculator, 2, least);
    if (c.bare) return;
    /* And the hidden layer's backward pass. Where dx is rounded to a factor of 16 bits, its last place may turn the other way. */
    const double turned = 1e-3;
    for (int i = 0; i < s.operand_count; i++) {
        if (i == first_w.buffer || i == first_b.buffer) s.operand[i].off = turned;
    }
    sdlf_tensor first_v = sequence_numbers(&s, first_w.shape, 0.1f),
                first_bv = sequence_numbers(&s, first_b.shape, 0.1f);
    sdlf_tensor first_dx = sequence_numbers(&s, x.shape, 9);
    s.operand[first_v.buffer].off = s.operand[first_dx.buffer].off = turned;
    s.operation[4] = (sdlf_operation){
        .kind = SDLF_GEMM_BACKWARD_SGD,
        .in = {x, dx, rates},
        .out = {first_w, first_v, first_dx, first_b, first_bv},
        .gemm_backward = {.sgd = {.momentum = 0.9f, .decay = c.decay}},
    };
    s.count = 5;
    sequence_compare(&s, calculator, 1, least);
}

static void last_all(sdlf_calculator *calculator)
{
    static const last_case cases[] = {
        {64, 1040, 1024, 10, .function = SDLF_RELU},
        {64, 600, 512, 10, .function = SDLF_RELU, .smoothing = 0.1f},
        {64, 512, 128, 10, .function = SDLF_RELU, .smoothing = 0.1f, .decay = 0.01f},
        {16, 260, 1024, 10, .function = SDLF_RELU, .bare = true},
        {5, 600, 64, 3, .function = SDLF_SIGMOID},
        {33, 300, 320, 16, .function = SDLF_LEAKY_RELU, .decay = 0.1f},
        {100, 256, 256, 12, .function = SDLF_RELU},
        {128, 2048, 640, 7, .function = SDLF_RELU, .smoothing = 0.2f},
        {97, 512, 1024, 2, .function = SDLF_IDENTITY, .bare = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].hidden <= asked.hidden) last(calculator, cases[i]);
    }
}

static void the_last_layers_are_one(void)
{
    if (asked.hidden == 0) {
        test_skip("--hidden 0");
        return;
    }
    for_calculators(last_all);
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

static void updates_all(sdlf_calculator *calculator)
{
    static const sdlf_operation_kind kinds[] = {SDLF_SGD_UPDATE, SDLF_ADAM_UPDATE, SDLF_RMSPROP_UPDATE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        updates(calculator, kinds[i], 2, true);
        updates(calculator, kinds[i], SEQUENCE_OPERATIONS, false); /* more than a launch takes */
    }
}

static void updates_are_one(void)
{
    for_calculators(updates_all);
}

/* Weights (K,C,R,S) to 16 bits, (K,R,S,C), as plans for training have them. */
static void weights_all(sdlf_calculator *calculator)
{
    static const int64_t sizes[][4] = {{16, 3, 3, 3}, {64, 16, 1, 1}, {8, 24, 5, 3}, {1, 1, 1, 1}, {40, 8, 7, 7}};
    for (int half = 0; half < 2; half++) {
        sequence *s = calloc(1, sizeof *s);
        for (int i = 0; i < 70; i++) {
            const int64_t *n = sizes[i % 5];
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

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) return 2;
    RUN(a_batch_is_drawn);
    RUN(the_last_layers_are_one);
    RUN(updates_are_one);
    RUN(weights_become_16_bits_as_one);
    return test_summary();
}
