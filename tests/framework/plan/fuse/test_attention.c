/* SPDX-License-Identifier: MIT */
/* Attention in several operations becomes one, where it is that. */
#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 2, HEADS = 3, QUERIES = 5, KEYS = 7, DEPTH = 4, WIDTH = 6 };
enum { Q_COUNT = BATCH * QUERIES * HEADS * DEPTH, K_COUNT = BATCH * KEYS * HEADS * DEPTH };
enum { V_COUNT = BATCH * KEYS * HEADS * WIDTH, Y_COUNT = BATCH * QUERIES * HEADS * WIDTH, MASK_COUNT = BATCH * KEYS };

/* Forms in which files have attention; then those that look like it: along another axis, the scores or the probabilities read elsewhere, a
 * mask that is multiplied. */
enum {
    PLAIN,
    TURNED_FLAG,
    SCALED_OPERANDS,
    MASKED,
    FORMS,
    OTHER_AXIS = FORMS,
    SCORES_READ,
    PROBABILITIES_READ,
    NO_SUM,
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
    return form == MASKED || form == NO_SUM;
}

/* Of heads that lie side by side, as a projection leaves them, and whose results do so. */
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
    sdlf_node scores = sdlf_matmul(net, q, k, &(sdlf_matmul_options){.transpose_b = flag});
    if (!operands) scores = by_number(net, scores, SDLF_LAYER_DIVIDE, 2);
    if (form == SCORES_READ) sdlf_output(net, "scores", by_number(net, scores, SDLF_LAYER_ADD, 1));
    sdlf_binary_layer_options joined = {.function = form == NO_SUM ? SDLF_LAYER_MULTIPLY : SDLF_LAYER_ADD};
    if (has_mask(form)) {
        sdlf_node mask = sdlf_input(net, "mask", SDLF_FLOAT32, sdlf_shape(1, 1, KEYS));
        scores = sdlf_binary(net, (sdlf_node[]){scores, mask}, 2, &joined);
    }
    sdlf_node p = softmax(net, scores, form == OTHER_AXIS ? 2 : 3);
    if (form == PROBABILITIES_READ) sdlf_output(net, "p", by_number(net, p, SDLF_LAYER_ADD, 1));
    sdlf_node y = turned(net, sdlf_matmul(net, p, v, NULL), heads);
    sdlf_output(net, "y", by_number(net, sdlf_relu(net, y), SDLF_LAYER_ADD, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void run(int form, sdlf_calculator *calculator, bool parts, int expected, float *y)
{
    float q[Q_COUNT], k[K_COUNT], v[V_COUNT], mask[MASK_COUNT];
    sdlf_plan *plan = NULL;
    sdlf_model *net = make(form);
    fill_random(q, Q_COUNT, 1), fill_random(k, K_COUNT, 2), fill_random(v, V_COUNT, 3), fill_random(mask, MASK_COUNT, 4);
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .no_fusion = parts}));
    if (plan == NULL) return;
    CHECK_EQUAL(count_steps(plan, "attention_forward"), expected);
    CHECK_EQUAL(count_steps(plan, "softmax_forward"), !expected);
    if (expected) CHECK_EQUAL(count_steps(plan, "copy"), 0); /* heads are read and written where they lie */
    CHECK_OK(test_plan_write(plan, "q", q));
    CHECK_OK(test_plan_write(plan, "k", k));
    CHECK_OK(test_plan_write(plan, "v", v));
    if (has_mask(form)) CHECK_OK(test_plan_write(plan, "mask", mask));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void attention_in_several_operations_is_one(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool has = test_calculator_class_at(c)->kernel[SDLF_ATTENTION_FORWARD].run != NULL;
        for (int form = 0; form < ALL; form++) {
            static float found[2][Y_COUNT];
            run(form, calculator, false, has && form < FORMS, found[0]);
            run(form, calculator, true, 0, found[1]);
            for (int i = 0; i < Y_COUNT; i++)
                CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5 * (1 + fabs((double)found[1][i])));
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(attention_in_several_operations_is_one);
    return test_summary();
}
