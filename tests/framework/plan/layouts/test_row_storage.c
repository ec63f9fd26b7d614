/* SPDX-License-Identifier: MIT */
/* Inference plans that store the rows of a transformer in 16 bits: on `reference`, configured to request it, results match
 * float32 within the type's rounding, the steps are the expected ones, and activations take half the memory. */
#include <float.h>

#include "framework/plan/layouts/rows.h"
#include "testing.h"

/* Blocks of attention and two products, with normalisations and residuals. */
static sdlf_model *transformer(bool softmax_between)
{
    sdlf_model *net = sdlf_model_create("rows");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH));
    for (int block = 0; block < BLOCKS; block++) {
        sdlf_node y = sdlf_layer_norm(net, x, NULL);
        y = sdlf_multi_head_attention(net, y, &(sdlf_multi_head_attention_options){.heads = 4});
        x = sdlf_add(net, x, y);
        y = rows_of(net, sdlf_layer_norm(net, x, NULL), 2 * WIDTH);
        y = sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
        if (softmax_between) y = sdlf_softmax(net, y); /* only supports float32 */
        x = sdlf_add(net, x, rows_of(net, y, WIDTH));
    }
    sdlf_output(net, "y", rows_of(net, sdlf_layer_norm(net, x, NULL), CLASSES));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 3);
    return net;
}

typedef struct found_plan {
    float y[BATCH * ROWS * CLASSES];
    int64_t arena;
    int stored[SDLF_OPERATION_COUNT], all[SDLF_OPERATION_COUNT];
} found_plan;

static void run(sdlf_model *net, const sdlf_plan_options *options, found_plan *found)
{
    static float x[VALUES];
    sdlf_plan *plan = NULL;
    *found = (found_plan){.arena = 0};
    fill_random(x, VALUES, 5);
    CHECK_OK(sdlf_plan_create(&plan, net, options));
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", found->y));
    found->arena = sdlf_plan_memory(plan).arena;
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        CHECK_OK(sdlf_operation_check(op));
        found->all[op->kind]++;
        found->stored[op->kind] += sdlf_operation_storage(op) != SDLF_NONE;
    }
    sdlf_plan_free(plan);
}

/* Runs the network with float32 storage, and with the calculator's storage. */
static void compare(bool softmax_between, const sdlf_plan_options *options, found_plan *exact, found_plan *stored)
{
    sdlf_model *net = transformer(softmax_between);
    sdlf_calculator *calculator = options->forward;
    const sdlf_calculator_class *plain = calculator->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    run(net, options, exact);
    calculator->type = &storing;
    run(net, options, stored);
    calculator->type = plain;
    sdlf_model_free(net);
}

static void rows_are_stored(void)
{
    static const sdlf_dtype types[] = {SDLF_BFLOAT16, SDLF_FLOAT16};
    static found_plan exact, found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    for (int t = 0; t < 2; t++) {
        wanted = types[t];
        compare(false, &(sdlf_plan_options){.batch = BATCH, .forward = reference}, &exact, &found);
        for (int i = 0; i < BATCH * ROWS * CLASSES; i++)
            CHECK_CLOSE(found.y[i], exact.y[i], t == 0 ? 0.15 : 0.02); /* sums of several values near 1 */
        CHECK_EQUAL(found.all[SDLF_GEMM], 4 * BLOCKS + 1);
        CHECK_EQUAL(found.stored[SDLF_GEMM], found.all[SDLF_GEMM]);
        CHECK_EQUAL(found.stored[SDLF_NORMALIZE_FORWARD], 2 * BLOCKS + 1);
        CHECK_EQUAL(found.stored[SDLF_ATTENTION_FORWARD], BLOCKS);
        CHECK_EQUAL(exact.stored[SDLF_GEMM], 0);
        CHECK_EQUAL(found.all[SDLF_COPY], exact.all[SDLF_COPY] + 1); /* to the type; the last GEMM writes float32 */
        CHECK(found.arena < exact.arena * 2 / 3);
    }
    sdlf_calculator_close(reference);
}

/* A kind without a kernel for the type reads and writes float32, between two copies. */
static void others_are_converted(void)
{
    static found_plan exact, found;
    sdlf_calculator *reference = NULL;
    wanted = SDLF_FLOAT16;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    compare(true, &(sdlf_plan_options){.batch = BATCH, .forward = reference}, &exact, &found);
    for (int i = 0; i < BATCH * ROWS * CLASSES; i++) CHECK_CLOSE(found.y[i], exact.y[i], 0.02);
    CHECK_EQUAL(found.stored[SDLF_GEMM], 4 * BLOCKS + 1);
    CHECK_EQUAL(found.all[SDLF_COPY], exact.all[SDLF_COPY] + 1 + BLOCKS);
    sdlf_calculator_close(reference);
}

/* Squares and angles between products keep the range and precision of float32. */
static void squares_and_angles_stay_float32(void)
{
    static float x[VALUES];
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    reference->type = &storing;
    wanted = SDLF_FLOAT16;
    sdlf_model *net = sdlf_model_create("squares");
    const sdlf_binary_layer_options multiply = {.function = SDLF_LAYER_MULTIPLY};
    sdlf_node h = rows_of(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH)), WIDTH);
    h = rows_of(net, sdlf_binary(net, (sdlf_node[]){h, h}, 2, &multiply), WIDTH);
    h = sdlf_unary(net, h, &(sdlf_unary_options){.function = SDLF_UNARY_COS});
    sdlf_output(net, "y", rows_of(net, h, CLASSES));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 3);
    sdlf_plan *plan = NULL;
    fill_random(x, VALUES, 5);
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = reference}));
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        bool product = op->kind == SDLF_GEMM;
        if (op->kind != SDLF_COPY) CHECK_EQUAL(sdlf_operation_storage(op) != SDLF_NONE, product);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

/* A mask of the most negative float, added to a product before a softmax, which requires float32. */
static void masks_stay_float32(void)
{
    static float x[VALUES], mask[VALUES], y[2][BATCH * ROWS * CLASSES];
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    wanted = SDLF_FLOAT16;
    sdlf_model *net = sdlf_model_create("masked");
    sdlf_node in = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH));
    sdlf_node hidden = sdlf_input(net, "mask", SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH));
    sdlf_node scores = sdlf_add(net, rows_of(net, rows_of(net, in, WIDTH), WIDTH), hidden);
    sdlf_output(net, "y", rows_of(net, sdlf_softmax(net, scores), CLASSES));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 3);
    fill_random(x, VALUES, 5);
    for (int i = 0; i < VALUES; i++) mask[i] = i / WIDTH % 3 == 0 || i % 2 == 0 ? -FLT_MAX : 0;
    for (int stored = 0; stored < 2; stored++) {
        sdlf_plan *plan = NULL;
        reference->type = stored ? &storing : plain;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = reference}));
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(test_plan_write(plan, "mask", mask));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y[stored]));
        sdlf_plan_free(plan);
    }
    for (int i = 0; i < BATCH * ROWS * CLASSES; i++) CHECK_CLOSE(y[1][i], y[0][i], 0.01);
    sdlf_model_free(net);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

/* If operations stay by themselves, or every activation must be readable. */
static void float32_stays_where_it_is_asked_for(void)
{
    static found_plan exact, found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    compare(false, &(sdlf_plan_options){.batch = BATCH, .forward = reference, .no_fusion = true}, &exact, &found);
    CHECK_EQUAL(found.stored[SDLF_GEMM], 0);
    compare(false, &(sdlf_plan_options){.batch = BATCH, .forward = reference, .keep_activations = true}, &exact,
            &found);
    CHECK_EQUAL(found.stored[SDLF_GEMM], 0);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(rows_are_stored);
    RUN(others_are_converted);
    RUN(squares_and_angles_stay_float32);
    RUN(masks_stay_float32);
    RUN(float32_stays_where_it_is_asked_for);
    return test_summary();
}
