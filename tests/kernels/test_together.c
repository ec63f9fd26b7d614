/* Operations that a calculator puts together against the same operations one by one: the same outputs, but for the order of sums. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

#include "testing.h"

enum { MOST_OPERANDS = 24, MOST_OPERATIONS = 5 };

/* An operand by its number, and what it holds before. */
typedef struct operand {
    sdlf_dtype dtype;
    sdlf_shape shape;
    const void *from; /* NULL: random numbers of float32 */
    float scale;
    bool exact, written; /* compared bit for bit; compared at all */
    double off;          /* by how much of the largest number they may be off; 0: a few units of the last place */
    sdlf_binding binding;
    void *found;
} operand;

/* A sequence on operands [0, operand_count); operations name them by their number in `buffer`. */
typedef struct sequence {
    operand operand[MOST_OPERANDS];
    int operand_count;
    sdlf_operation operation[MOST_OPERATIONS];
    int count;
} sequence;

static sdlf_tensor add(sequence *s, operand made)
{
    int number = s->operand_count++;
    s->operand[number] = made;
    sdlf_tensor tensor = sdlf_tensor_view(made.dtype, made.shape, NULL);
    tensor.buffer = number;
    return tensor;
}

static sdlf_tensor numbers(sequence *s, sdlf_shape shape, float scale)
{
    return add(s, (operand){.dtype = SDLF_FLOAT32, .shape = shape, .scale = scale, .written = true});
}

/* ---- running ---- */

static void place(sdlf_calculator *calculator, operand *o, int number)
{
    sdlf_tensor tensor = sdlf_tensor_view(o->dtype, o->shape, NULL);
    int64_t count = sdlf_tensor_count(&tensor), bytes = count * (int64_t)sdlf_dtype_size(o->dtype);
    float *made = o->from == NULL ? malloc((size_t)bytes) : NULL;
    for (int64_t i = 0; made != NULL && i < count; i++) {
        uint32_t word = sdlf_philox4x32(11, (uint64_t)i, (uint32_t)number, 0).word[0];
        made[i] = (float)((double)word * 0x1p-31 - 1) * o->scale;
    }
    o->binding = test_tensor(calculator, o->dtype, o->shape, o->from != NULL ? o->from : made);
    o->found = malloc((size_t)bytes);
    free(made);
}

/* All outputs of `times` runs: as many of the first operations together as the calculator does so, the others one by one. How many were
 * together. */
static int run(sequence *s, sdlf_calculator *calculator, bool together, int times)
{
    const sdlf_operation *operations[MOST_OPERATIONS];
    int done = 0;
    for (int i = 0; i < s->operand_count; i++) place(calculator, &s->operand[i], i);
    for (int k = 0; k < s->count; k++) {
        sdlf_operation *op = &s->operation[k];
        operations[k] = op;
        for (int i = 0; i < SDLF_MAX_INPUTS; i++)
            if (sdlf_tensor_present(&op->in[i])) op->in[i].data = s->operand[op->in[i].buffer].binding.tensor.data;
        for (int i = 0; i < SDLF_MAX_OUTPUTS; i++)
            if (sdlf_tensor_present(&op->out[i])) op->out[i].data = s->operand[op->out[i].buffer].binding.tensor.data;
        CHECK_OK(sdlf_operation_check(op));
    }
    for (int n = 0; n < times; n++) {
        if (together) CHECK_OK(calculator->type->run_together(calculator, operations, s->count, &done));
        for (int k = done; k < s->count; k++) CHECK_OK(sdlf_calculator_run(calculator, operations[k]));
    }
    for (int i = 0; i < s->operand_count; i++) {
        test_download(&s->operand[i].binding, s->operand[i].found);
        test_release(&s->operand[i].binding);
    }
    return done;
}

static void release(sequence *s)
{
    for (int i = 0; i < s->operand_count; i++) free(s->operand[i].found);
}

/* ---- comparing ---- */

static double at(const operand *o, int64_t i)
{
    return o->dtype == SDLF_FLOAT64 ? ((const double *)o->found)[i] : (double)((const float *)o->found)[i];
}

/* Sums of a few hundred numbers in another order: some units of the last place of the largest. */
static void compare_operand(const operand *found, const operand *expected, int number)
{
    sdlf_tensor tensor = sdlf_tensor_view(found->dtype, found->shape, NULL);
    int64_t count = sdlf_tensor_count(&tensor), wrong = 0;
    size_t bytes = (size_t)count * sdlf_dtype_size(found->dtype);
    if (found->exact) {
        if (!CHECK(memcmp(found->found, expected->found, bytes) == 0)) CHECK_EQUAL(number, -1);
        return;
    }
    double largest = 0, off = found->off != 0 ? found->off : 2e-5;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(at(expected, i)));
    for (int64_t i = 0; i < count; i++) wrong += !(fabs(at(found, i) - at(expected, i)) <= off * largest + 1e-30);
    if (!CHECK_EQUAL(wrong, 0)) CHECK_EQUAL(number, -1); /* which one it is */
}

/* `least` operations must be together. */
static void compare(const sequence *s, sdlf_calculator *calculator, int times, int least)
{
    sequence together = *s, again = *s, alone = *s;
    CHECK(run(&together, calculator, true, times) >= least);
    CHECK(run(&again, calculator, true, times) >= least);
    run(&alone, calculator, false, times);
    for (int i = 0; i < s->operand_count; i++) {
        sdlf_tensor tensor = sdlf_tensor_view(s->operand[i].dtype, s->operand[i].shape, NULL);
        size_t bytes = (size_t)sdlf_tensor_bytes(&tensor);
        CHECK(memcmp(together.operand[i].found, again.operand[i].found, bytes) == 0); /* the same bits each time */
        if (s->operand[i].written) compare_operand(&together.operand[i], &alone.operand[i], i);
    }
    release(&together);
    release(&again);
    release(&alone);
}

/* Calls `test` for every calculator that puts operations together, in every math mode. */
static void for_calculators(void (*test)(sdlf_calculator *calculator))
{
    bool some = false;
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        if (type->run_together == NULL) continue;
        for (int math = SDLF_MATH_FP32; math < SDLF_MATH_COUNT; math++) {
            sdlf_calculator *calculator = NULL;
            if (!CHECK_OK(
                    sdlf_calculator_open(&calculator, type->name, &(sdlf_calculator_options){.math = (sdlf_math)math})))
                continue;
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
    sdlf_tensor index =
        add(&s, (operand){SDLF_INT32, sdlf_shape(batch), .from = order, .exact = true, .written = true});
    s.operation[0] = (sdlf_operation){
        .kind = SDLF_NEXT_BATCH,
        .in = {add(&s, (operand){SDLF_INT32, sdlf_shape(STEPS * batch), .from = order}),
               add(&s, (operand){SDLF_FLOAT32, sdlf_shape(STEPS), .from = rates}),
               add(&s, (operand){SDLF_INT64, one, .from = &first}),
               add(&s, (operand){SDLF_INT32, sdlf_shape(SAMPLES), .from = labels})},
        .out = {add(&s, (operand){SDLF_INT64, one, .from = &cursor, .exact = true, .written = true}), index,
                add(&s, (operand){SDLF_FLOAT32, one, .scale = 1, .exact = true, .written = true}),
                add(&s, (operand){SDLF_INT64, one, .from = &step, .exact = true, .written = true}),
                add(&s, (operand){SDLF_INT32, sdlf_shape(batch), .from = order, .exact = true, .written = true})},
    };
    s.operation[1] = (sdlf_operation){
        .kind = SDLF_GATHER_BATCH,
        .in = {add(&s, (operand){SDLF_UINT8, sdlf_shape(SAMPLES, 1, side, side), .from = x}), index},
        .out = {add(
            &s, (operand){SDLF_FLOAT32, sdlf_shape(batch, 1, side, side), .scale = 1, .exact = true, .written = true})},
        .gather = {.mean = 33.3f, .scale = 0.013f},
    };
    compare(&s, calculator, STEPS, 2);
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
    sdlf_tensor x = numbers(&s, sdlf_shape(c.rows, c.inputs), 0.5f);
    sdlf_tensor first_w = numbers(&s, sdlf_shape(c.hidden, c.inputs), 0.2f);
    sdlf_tensor first_b = c.bare ? none : numbers(&s, sdlf_shape(c.hidden), 0.3f);
    sdlf_tensor h = numbers(&s, sdlf_shape(c.rows, c.hidden), 9);
    sdlf_tensor w = numbers(&s, sdlf_shape(c.units, c.hidden), 0.1f), v = numbers(&s, w.shape, 0.1f);
    sdlf_tensor b = c.bare ? none : numbers(&s, sdlf_shape(c.units), 0.2f);
    sdlf_tensor bv = c.bare ? none : numbers(&s, sdlf_shape(c.units), 0.2f);
    sdlf_tensor logits = numbers(&s, sdlf_shape(c.rows, c.units), 9), p = numbers(&s, logits.shape, 9);
    sdlf_tensor dlogits = numbers(&s, logits.shape, 9), dx = c.bare ? none : numbers(&s, h.shape, 9);
    sdlf_tensor metrics =
        c.bare ? none : add(&s, (operand){SDLF_FLOAT64, sdlf_shape(3), .from = sums, .written = true});
    sdlf_tensor scalar = add(&s, (operand){SDLF_FLOAT32, sdlf_shape(1), .from = &one});
    sdlf_tensor mean = add(&s, (operand){SDLF_FLOAT32, sdlf_shape(1), .from = &one, .written = true});
    sdlf_tensor rates = add(&s, (operand){SDLF_FLOAT32, sdlf_shape(1), .from = &rate});
    sdlf_tensor label = add(&s, (operand){SDLF_INT32, sdlf_shape(c.rows), .from = labels});
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
    const int least = c.rows <= 64 ? 4 : 0;
    compare(&s, calculator, 2, least);
    if (c.bare) return;
    /* And the hidden layer's backward pass. Where dx is rounded to a factor of 16 bits, its last place may turn the other way. */
    const double turned = 1e-3;
    for (int i = 0; i < s.operand_count; i++) {
        if (i == first_w.buffer || i == first_b.buffer) s.operand[i].off = turned;
    }
    sdlf_tensor first_v = numbers(&s, first_w.shape, 0.1f), first_bv = numbers(&s, first_b.shape, 0.1f);
    sdlf_tensor first_dx = numbers(&s, x.shape, 9);
    s.operand[first_v.buffer].off = s.operand[first_dx.buffer].off = turned;
    s.operation[4] = (sdlf_operation){
        .kind = SDLF_GEMM_BACKWARD_SGD,
        .in = {x, dx, rates},
        .out = {first_w, first_v, first_dx, first_b, first_bv},
        .gemm_backward = {.sgd = {.momentum = 0.9f, .decay = c.decay}},
    };
    s.count = 5;
    compare(&s, calculator, 1, least);
}

static void last_all(sdlf_calculator *calculator)
{
    static const last_case cases[] = {
        {64, 1040, 1024, 10, .function = SDLF_RELU},
        {64, 512, 128, 10, .function = SDLF_RELU, .smoothing = 0.1f, .decay = 0.01f},
        {16, 260, 1024, 10, .function = SDLF_RELU, .bare = true},
        {5, 600, 64, 3, .function = SDLF_SIGMOID},
        {33, 300, 320, 16, .function = SDLF_LEAKY_RELU, .decay = 0.1f},
        {100, 256, 256, 12, .function = SDLF_RELU},
        {128, 2048, 640, 7, .function = SDLF_RELU, .smoothing = 0.2f},
        {97, 512, 1024, 2, .function = SDLF_IDENTITY, .bare = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) last(calculator, cases[i]);
}

static void the_last_layers_are_one(void)
{
    for_calculators(last_all);
}

int main(void)
{
    RUN(a_batch_is_drawn);
    RUN(the_last_layers_are_one);
    return test_summary();
}
