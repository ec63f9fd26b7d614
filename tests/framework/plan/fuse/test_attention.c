/* SPDX-License-Identifier: MIT */
/* Operations that together form attention are fused into one, and others are not. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 2, HEADS = 3, QUERIES = 5, KEYS = 8, DEPTH = 4, WIDTH = 6 };
enum { Q_COUNT = BATCH * QUERIES * HEADS * DEPTH, K_COUNT = BATCH * KEYS * HEADS * DEPTH };
enum {
    V_COUNT = BATCH * KEYS * HEADS * WIDTH,
    Y_COUNT = BATCH * QUERIES * HEADS * WIDTH,
    MASK_COUNT = BATCH * HEADS * QUERIES * KEYS
};

/* The forms of attention in files; then similar ones: along another axis; on half of the keys; scores or probabilities
 * read elsewhere; a mask that is multiplied, or is the scores themselves; more scale factors than any file has. */
enum {
    PLAIN,
    TURNED_FLAG,
    SCALED_OPERANDS,
    MASKED,
    MASKED_DENSELY,
    CHOSEN,
    CHOSEN_OTHERWISE,
    SPLIT_HEADS,
    FORMS,
    OTHER_AXIS = FORMS,
    HALF_OF_KEYS,
    SCORES_READ,
    PROBABILITIES_READ,
    NO_SUM,
    OWN_MASK,
    MANY_FACTORS,
    ALL
};

static sdlf_node by_number(sdlf_model *net, sdlf_node x, sdlf_binary_layer_function function, float number)
{
    return sdlf_binary(net, &x, 1, &(sdlf_binary_layer_options){.function = function, .scalar = number});
}

static sdlf_node turned(sdlf_model *net, sdlf_node x, sdlf_shape order)
{
    return sdlf_transpose(net, x, &(sdlf_transpose_options){.order = order});
}

static sdlf_node softmax(sdlf_model *net, sdlf_node x, int axis)
{
    return sdlf_model_add(net, sdlf_layer_class_find("softmax"), &(sdlf_softmax_options){.axis = axis}, &x, 1);
}

static bool has_mask(int form)
{
    return form == MASKED || form == NO_SUM || form == MASKED_DENSELY || form == CHOSEN || form == CHOSEN_OTHERWISE;
}

static sdlf_node reshaped(sdlf_model *net, sdlf_node x, sdlf_shape shape)
{
    return sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = shape, .whole = true});
}

static sdlf_node halved(sdlf_model *net, sdlf_node x, int64_t rows, int64_t columns)
{
    return sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(HEADS, rows, columns)});
}

static int batch_of(int form)
{
    return form == SPLIT_HEADS || form == OWN_MASK ? 1 : BATCH;
}

/* Attention with interleaved heads, as a projection outputs them, for inputs and results. */
static sdlf_model *make(int form)
{
    const sdlf_shape heads = sdlf_shape(0, 2, 1, 3), columns = sdlf_shape(0, 2, 3, 1);
    sdlf_model *net = sdlf_model_create("attention");
    sdlf_node q = sdlf_input(net, "q", SDLF_FLOAT32, sdlf_shape(QUERIES, HEADS, DEPTH));
    sdlf_node k = sdlf_input(net, "k", SDLF_FLOAT32, sdlf_shape(KEYS, HEADS, DEPTH));
    sdlf_node v = sdlf_input(net, "v", SDLF_FLOAT32, sdlf_shape(KEYS, HEADS, WIDTH));
    bool flag = form == TURNED_FLAG, operands = form == SCALED_OPERANDS;
    q = turned(net, q, heads), v = turned(net, v, heads), k = turned(net, k, flag ? heads : columns);
    if (operands) q = by_number(net, q, SDLF_LAYER_MULTIPLY, 0.7f), k = by_number(net, k, SDLF_LAYER_MULTIPLY, 0.7f);
    for (int i = 0; form == MANY_FACTORS && i < 40; i++) q = by_number(net, q, SDLF_LAYER_MULTIPLY, 1.01f);
    if (form == SPLIT_HEADS) { /* (N H,.,.) before, (N,H,.,.) after */
        k = reshaped(net, turned(net, reshaped(net, k, sdlf_shape(HEADS, DEPTH, KEYS)), sdlf_shape(0, 2, 1)),
                     sdlf_shape(1, HEADS, KEYS, DEPTH));
        k = turned(net, k, sdlf_shape(0, 1, 3, 2));
        v = reshaped(net, reshaped(net, v, sdlf_shape(HEADS, KEYS, WIDTH)), sdlf_shape(1, HEADS, KEYS, WIDTH));
    }
    sdlf_node scores = sdlf_matmul(net, q, k, &(sdlf_matmul_options){.transpose_b = flag});
    if (!operands) scores = by_number(net, scores, SDLF_LAYER_DIVIDE, 2);
    if (form == SCORES_READ) sdlf_output(net, "scores", by_number(net, scores, SDLF_LAYER_ADD, 1));
    sdlf_binary_layer_options joined = {.function = form == NO_SUM ? SDLF_LAYER_MULTIPLY : SDLF_LAYER_ADD};
    if (has_mask(form)) {
        bool dense = form == MASKED_DENSELY;
        sdlf_node mask =
            sdlf_input(net, "mask", SDLF_FLOAT32, dense ? sdlf_shape(HEADS, QUERIES, KEYS) : sdlf_shape(1, 1, KEYS));
        sdlf_node both[] = {scores, mask};
        if (form == CHOSEN || form == CHOSEN_OTHERWISE) {
            sdlf_node number = sdlf_value(net, &(sdlf_value_options){.name = "number", .shape = sdlf_shape(1)});
            sdlf_node seen = by_number(net, mask, SDLF_LAYER_GREATER, 0);
            scores = form == CHOSEN ? sdlf_select(net, seen, scores, number) : sdlf_select(net, seen, number, scores);
        } else {
            scores = dense ? sdlf_add(net, both[0], both[1]) : sdlf_binary(net, both, 2, &joined);
        }
    }
    if (form == OWN_MASK) { /* of one sample: broadcast along it */
        sdlf_node again = reshaped(net, scores, sdlf_shape(HEADS, QUERIES, KEYS));
        scores = sdlf_binary(net, (sdlf_node[]){scores, again}, 2, &joined);
    }
    if (form == HALF_OF_KEYS) scores = halved(net, scores, 2 * QUERIES, KEYS / 2);
    sdlf_node p = softmax(net, scores, form == OTHER_AXIS ? 2 : 3);
    if (form == HALF_OF_KEYS) p = halved(net, p, QUERIES, KEYS);
    if (form == PROBABILITIES_READ) sdlf_output(net, "p", by_number(net, p, SDLF_LAYER_ADD, 1));
    sdlf_node y = turned(net, sdlf_matmul(net, p, v, NULL), heads);
    sdlf_output(net, "y", by_number(net, sdlf_relu(net, y), SDLF_LAYER_ADD, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) /* the value for masked keys */
        *(float *)sdlf_model_parameter(net, i)->value.data = -0.5f;
    return net;
}

static void write(sdlf_plan *plan, const char *name, int count, uint64_t seed)
{
    float values[MASK_COUNT + V_COUNT];
    fill_random(values, count, seed);
    CHECK_OK(sdlf_plan_write_converted(plan, name, values, SDLF_FLOAT32, count));
}

/* expected: steps of attention, or ANY_STEPS. */
enum { ANY_STEPS = -1 };

static void run(int form, sdlf_calculator *calculator, sdlf_dtype dtype, bool parts, int expected, double *y)
{
    sdlf_plan *plan = NULL;
    sdlf_model *net = make(form);
    sdlf_plan_options options = {.batch = batch_of(form), .forward = calculator, .no_fusion = parts, .dtype = dtype};
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        if (expected != ANY_STEPS) {
            CHECK_EQUAL(count_steps(plan, "attention_forward"), expected);
            CHECK_EQUAL(count_steps(plan, "softmax_forward"), !expected);
        }
        if (expected == 1) CHECK_EQUAL(count_steps(plan, "copy"), 0); /* heads are read and written in place */
        int batch = batch_of(form), count = Y_COUNT / BATCH * batch;
        write(plan, "q", Q_COUNT / BATCH * batch, 1);
        write(plan, "k", K_COUNT / BATCH * batch, 2);
        write(plan, "v", V_COUNT / BATCH * batch, 3);
        if (has_mask(form)) write(plan, "mask", form == MASKED_DENSELY ? MASK_COUNT : BATCH * KEYS, 4);
        CHECK_OK(sdlf_plan_forward(plan));
        float single[Y_COUNT];
        bool is_double = dtype == SDLF_FLOAT64;
        CHECK_OK(sdlf_plan_read(plan, "y", is_double ? (void *)y : single, dtype,
                                count * (int64_t)(is_double ? sizeof *y : sizeof *single)));
        for (int i = 0; i < count && !is_double; i++) y[i] = (double)single[i];
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void attention_in_several_operations_is_one(void)
{
    static const sdlf_dtype types[] = {SDLF_FLOAT32, SDLF_FLOAT64};
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool has = test_calculator_class_at(c)->kernel[SDLF_ATTENTION_FORWARD].run != NULL;
        bool on_host = strcmp(calculator->space, SDLF_HOST_SPACE) == 0;
        for (int form = 0; form < ALL; form++) {
            for (int t = 0; t < (has ? 2 : 1); t++) {
                double found[2][Y_COUNT] = {{0}}, tolerance = t == 0 ? 1e-5 : 1e-13;
                int expected = has && form < FORMS;
                if (!on_host && types[t] == SDLF_FLOAT64) expected = ANY_STEPS; /* some GPUs' have none of float64 */
                run(form, calculator, types[t], false, expected, found[0]);
                run(form, calculator, types[t], true, 0, found[1]);
                for (int i = 0; i < Y_COUNT; i++)
                    CHECK_CLOSE(found[0][i], found[1][i], tolerance * (1 + fabs(found[1][i])));
            }
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(attention_in_several_operations_is_one);
    return test_summary();
}
