/* SPDX-License-Identifier: MIT */
/* embedding, position_embedding, rotary_embedding, rms_norm, multi_head_attention: values, rejected inputs,
 * gradients. */
#include "framework/plan/networks.h"
#include "layers/gradients.h"

#include <float.h>

static sdlf_node build_embedding(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_embedding(model, x[0], options);
}

static sdlf_node build_positions(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_position_embedding(model, x[0], options);
}

static sdlf_node build_rotary(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_rotary_embedding(model, x[0], options);
}

static sdlf_node build_rms_norm(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_rms_norm(model, x[0], options);
}

static sdlf_node build_attention(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_multi_head_attention(model, x[0], options);
}

static sdlf_node build_biased(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_multi_head_attention_masked(model, x[0], x[1], options);
}

/* True where an input's elements are positive. */
static sdlf_node build_masked(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node mask =
        sdlf_binary(model, &x[0], 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_GREATER, .scalar = 0.01f});
    mask = sdlf_slice(model, mask,
                      &(sdlf_slice_options){.axes = {1, {2}}, .start = {1, {0}}, .end = {1, {1}}}); /* (N,T,1) */
    mask = sdlf_reshape(model, mask, &(sdlf_reshape_options){.shape = sdlf_shape(1, 1, 3)});
    return sdlf_multi_head_attention_masked(model, x[0], mask, options);
}

static sdlf_node build_masked_by_floats(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node mask =
        sdlf_slice(model, x[0], &(sdlf_slice_options){.axes = {1, {2}}, .start = {1, {0}}, .end = {1, {1}}});
    mask = sdlf_reshape(model, mask, &(sdlf_reshape_options){.shape = sdlf_shape(1, 1, 3)});
    return sdlf_multi_head_attention_masked(model, x[0], mask, options);
}

/* An embedding indexed by constant tokens, with an input that has no other role. */
static sdlf_node build_looked_up(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node rounded = sdlf_binary(
        model, &x[0], 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_GREATER, .scalar = 0}); /* 0 or 1 */
    rounded = sdlf_cast(model, rounded, &(sdlf_cast_options){.dtype = SDLF_VALUE_INT64});
    sdlf_node y = sdlf_embedding(model, rounded, options);
    sdlf_node wide = sdlf_reshape(model, x[0], &(sdlf_reshape_options){.shape = sdlf_shape(4, 1)});
    return sdlf_binary(model, (const sdlf_node[]){y, wide}, 2,
                       &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
}

/* ---- values ---- */

/* Parameters become 0, 1, 2, ... times `step`; y of a sample x in that shape, on every calculator. */
static void check_values(layer_builder *build, const void *options, sdlf_dtype dtype, sdlf_shape shape, const void *x,
                         float step, const double *expected, int count)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float y[64];
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("values");
        sdlf_node in = sdlf_input(model, "x", dtype, shape);
        sdlf_output(model, "y", build(model, &in, options));
        CHECK_OK(sdlf_model_build(model, 1));
        for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
            sdlf_tensor *value = &sdlf_model_parameter(model, i)->value;
            for (int64_t e = 0; e < sdlf_tensor_count(value); e++) ((float *)value->data)[e] = (float)e * step;
        }
        if (CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", y));
            for (int e = 0; e < count; e++) CHECK_CLOSE(y[e], expected[e], 1e-5 * (1 + fabs(expected[e])));
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

static void values_match(void)
{
    const sdlf_embedding_options pairs = {.vocabulary = 3, .units = 2};
    const double looked_up[] = {4, 5, 0, 1, 4, 5, 0, 1};
    check_values(build_embedding, &pairs, SDLF_INT32, sdlf_shape(4), (const int32_t[]){2, 0, -1, -3}, 1, looked_up, 8);
    check_values(build_embedding, &pairs, SDLF_INT64, sdlf_shape(4), (const int64_t[]){2, 0, -1, -3}, 1, looked_up, 8);
    check_values(build_embedding, &pairs, SDLF_FLOAT32, sdlf_shape(4), (const float[]){2, 0, -1, -3}, 1, looked_up, 8);
    check_values(build_positions, NULL, SDLF_FLOAT32, sdlf_shape(2, 2), (const float[]){10, 20, 30, 40}, 1,
                 (const double[]){10, 21, 32, 43}, 4);
    /* three positions of one pair: turned by 0, 1 and 2 */
    check_values(
        build_rotary, NULL, SDLF_FLOAT32, sdlf_shape(3, 2), (const float[]){1, 2, 1, 2, 1, 2}, 0,
        (const double[]){1, 2, cos(1) - 2 * sin(1), 2 * cos(1) + sin(1), cos(2) - 2 * sin(2), 2 * cos(2) + sin(2)}, 6);
    /* the second pair of four elements turns by 1/100 */
    check_values(build_rotary, NULL, SDLF_FLOAT32, sdlf_shape(2, 4), (const float[]){0, 0, 0, 0, 1, 1, 0, 0}, 0,
                 (const double[]){0, 0, 0, 0, cos(1), cos(0.01), sin(1), sin(0.01)}, 8);
    double r = 1 / sqrt(12.5 + 1e-5);
    check_values(build_rms_norm, NULL, SDLF_FLOAT32, sdlf_shape(1, 2), (const float[]){3, 4}, 1,
                 (const double[]){0, 4 * r}, 2);
}

/* A causal row does not depend on later positions: the last position changes, and the others' outputs do not. */
static void the_future_is_not_seen(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float x[5 * 4], before[5 * 4], after[5 * 4];
        for (int e = 0; e < 20; e++) x[e] = (float)((e * 7) % 11) - 5;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("causal");
        sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(5, 4));
        sdlf_output(model, "y",
                    sdlf_multi_head_attention(
                        model, in, &(sdlf_multi_head_attention_options){.heads = 2, .causal = true, .rotary = true}));
        if (CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", before));
            for (int e = 16; e < 20; e++) x[e] += 3;
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", after));
            CHECK(memcmp(before, after, 16 * sizeof *before) == 0);
            CHECK(memcmp(before + 16, after + 16, 4 * sizeof *before) != 0);
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

/* y of attention over x (5,4) with a mask (5,5) as input 1; of a bool one where `yes`. */
static void attend(sdlf_calculator *calculator, bool causal, bool yes, const float *x, const void *mask, float y[20])
{
    sdlf_plan *plan = NULL;
    sdlf_model *model = sdlf_model_create("masked");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(5, 4));
    sdlf_node seen = sdlf_input(model, "mask", yes ? SDLF_BOOL : SDLF_FLOAT32, sdlf_shape(1, 5, 5));
    sdlf_multi_head_attention_options options = {.heads = 2, .causal = causal};
    sdlf_output(model, "y", sdlf_multi_head_attention_masked(model, in, seen, &options));
    if (CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(test_plan_write(plan, "mask", mask));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

/* A row that may look at nothing looks at all alike, whatever the mask's type; with `causal` at all up to itself. */
static void rows_that_see_nothing(void)
{
    uint8_t yes[25];
    float x[20], added[25], lowest[25], of_bool[20], of_float[20], changed[20];
    for (int e = 0; e < 20; e++) x[e] = (float)((e * 7) % 11) - 5;
    for (int e = 0; e < 25; e++) {
        yes[e] = e / 5 != 2 && e != 8; /* row 2 sees nothing, row 1 not position 3 */
        added[e] = yes[e] ? 0 : -INFINITY;
        lowest[e] = yes[e] ? 0 : -FLT_MAX;
    }
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        for (int causal = 0; causal < 2; causal++) {
            attend(calculator, causal, true, x, yes, of_bool);
            attend(calculator, causal, false, x, added, of_float);
            for (int e = 0; e < 20; e++) CHECK_CLOSE(of_float[e], of_bool[e], 1e-6);
            attend(calculator, causal, false, x, lowest, of_float);
            for (int e = 0; e < 20; e++) CHECK_CLOSE(of_float[e], of_bool[e], 1e-6);
            for (int e = 12; e < 20; e++) x[e] += 3; /* what lies ahead of row 2 */
            attend(calculator, causal, true, x, yes, changed);
            CHECK((memcmp(changed + 8, of_bool + 8, 4 * sizeof *changed) == 0) == (causal == 1));
            for (int e = 12; e < 20; e++) x[e] -= 3;
        }
        sdlf_calculator_close(calculator);
    }
}

/* y (2,5,4) of attention in a step of training, or in inference. */
static void attend_dropping(float dropout, uint64_t seed, bool training, float y[2][40])
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    float x[40];
    const int32_t labels[2] = {0, 1};
    for (int e = 0; e < 40; e++) x[e] = (float)((e * 7) % 11) - 5;
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    sdlf_model *model = sdlf_model_create("dropping");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(5, 4));
    sdlf_multi_head_attention_options options = {.heads = 2, .dropout = dropout};
    sdlf_node said = sdlf_multi_head_attention(model, in, &options);
    sdlf_output(model, "scores", sdlf_fully_connected(model, said, &(sdlf_fully_connected_options){.units = 3}));
    sdlf_output(model, "y", said);
    CHECK_OK(sdlf_model_build(model, 1));
    sdlf_plan_options plan_options = {
        .batch = 2, .mode = training ? SDLF_TRAIN : SDLF_INFER, .forward = calculator, .seed = seed};
    if (CHECK_OK(sdlf_plan_create(&plan, model, &plan_options))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        if (training) CHECK_OK(test_plan_write(plan, "labels", labels));
        for (int step = 0; step < 2; step++) {
            CHECK_OK(training ? sdlf_plan_step(plan, 0) : sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", y[step]));
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

/* Probabilities are dropped in training only, others in each step and with each seed, the same again with the same. */
static void attention_drops(void)
{
    float whole[2][40], rest[2][40], dropped[2][40], again[2][40], other[2][40];
    attend_dropping(0, 1, true, whole);
    attend_dropping(0.5f, 1, false, rest);
    for (int e = 0; e < 40; e++) CHECK_CLOSE(rest[0][e], whole[0][e], 1e-6);
    attend_dropping(0.5f, 1, true, dropped);
    attend_dropping(0.5f, 1, true, again);
    attend_dropping(0.5f, 2, true, other);
    CHECK(memcmp(dropped[0], whole[0], sizeof whole[0]) != 0);
    CHECK(memcmp(dropped[0], dropped[1], sizeof whole[0]) != 0);
    CHECK(memcmp(dropped[0], other[0], sizeof whole[0]) != 0);
    CHECK(memcmp(dropped, again, sizeof dropped) == 0);
}

/* If the calculator has the operation, attention uses it in both passes, except where the probabilities are needed. */
static void no_scores_are_stored(void)
{
    const sdlf_multi_head_attention_options plain = {.heads = 2}, dropping = {.heads = 2, .dropout = 0.25f},
                                            rotary = {.heads = 2, .causal = true, .rotary = true};
    const struct {
        layer_builder *build;
        const sdlf_multi_head_attention_options *options;
        bool inference, training;
    } cases[] = {
        {build_attention, &plain, true, true},
        {build_attention, &rotary, true, true},
        {build_masked, &plain, true, true},
        {build_attention, &dropping, true, false},
        {build_masked_by_floats, &plain, true, false},
    };
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(c)->name, NULL));
        bool has = test_calculator_class_at(c)->kernel[SDLF_ATTENTION_BACKWARD].run != NULL;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            for (int mode = 0; mode < 4; mode++) { /* inference, training; each without fusion */
                bool trains = mode & 1, parts = mode & 2;
                bool expected = has && !parts && (trains ? cases[i].training : cases[i].inference);
                sdlf_model *model = sdlf_model_create("attention");
                sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3, 4));
                x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = 4, .axis = 2});
                x = cases[i].build(model, &x, cases[i].options);
                sdlf_node target = sdlf_input(model, "target", SDLF_FLOAT32, sdlf_shape(3, 4));
                sdlf_mse(model, x, target);
                sdlf_output(model, "y", x);
                CHECK_OK(sdlf_model_build(model, 1));
                sdlf_plan *plan = NULL;
                sdlf_plan_options options = {.mode = trains ? SDLF_TRAIN : SDLF_INFER, .batch = 2, .no_fusion = parts};
                options.forward = calculator;
                if (CHECK_OK(sdlf_plan_create(&plan, model, &options))) {
                    CHECK_EQUAL(count_steps(plan, "attention_forward"), expected);
                    CHECK_EQUAL(count_steps(plan, "attention_backward"), expected && trains);
                    CHECK_EQUAL(count_steps(plan, "softmax_forward"), !expected);
                }
                sdlf_plan_free(plan);
                sdlf_model_free(model);
            }
        }
        sdlf_calculator_close(calculator);
    }
}

static void nonsense_is_refused(void)
{
    sdlf_multi_head_attention_options heads = {.heads = 4};
    sdlf_model *model;
    sdlf_node y;
    check_refused(build_embedding, NULL, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "vocabulary: expected 1");
    check_refused(build_positions, NULL, sdlf_shape(3), SDLF_ERROR_SHAPE, "expected an input (N,T,C)");
    check_refused(build_rotary, NULL, sdlf_shape(3, 5), SDLF_ERROR_SHAPE, "with an even D, found 1x3x5");
    check_refused(build_attention, &heads, sdlf_shape(3, 6), SDLF_ERROR_SHAPE, "6 channels do not divide into 4 heads");
    heads.rotary = true;
    check_refused(build_attention, &heads, sdlf_shape(3, 12), SDLF_ERROR_SHAPE, "an even number of channels in a head");
    heads.rotary = false;
    check_integers_refused(build_attention, &heads, sdlf_shape(3, 4));
    CHECK_FAILS(build_layer(&model, build_biased, &heads, SDLF_FLOAT32, sdlf_shape(3, 4), sdlf_shape(2, 3), &y),
                SDLF_ERROR_SHAPE, "expected a mask of bool or float that broadcasts to 1x4x3x3, found float32 1x2x3");
    sdlf_model_free(model);
    check_output(build_attention, &heads, sdlf_shape(3, 8), sdlf_shape(3, 8));
}

static void gradients_match(void)
{
    const sdlf_multi_head_attention_options plain = {.heads = 2}, one = {.heads = 1, .no_bias = true},
                                            causal = {.heads = 2, .causal = true, .dropout = 0.25f},
                                            rotary = {.heads = 2, .causal = true, .rotary = true, .base = 10};
    const layer_case cases[] = {
        {.what = "embedding",
         .build = build_looked_up,
         .options = &(sdlf_embedding_options){.vocabulary = 2, .units = 3},
         .input = {sdlf_shape(3, 4)}},
        {.what = "positions", .build = build_positions, .input = {sdlf_shape(3, 4, 2)}},
        {.what = "rotary", .build = build_rotary, .input = {sdlf_shape(2, 5, 6)}},
        {.what = "rms_norm", .build = build_rms_norm, .input = {sdlf_shape(2, 3, 5)}},
        {.what = "attention", .build = build_attention, .options = &plain, .input = {sdlf_shape(2, 3, 4)}},
        {.what = "one head", .build = build_attention, .options = &one, .input = {sdlf_shape(2, 4, 3)}},
        {.what = "causal, dropout", .build = build_attention, .options = &causal, .input = {sdlf_shape(2, 5, 4)}},
        {.what = "rotary heads", .build = build_attention, .options = &rotary, .input = {sdlf_shape(2, 5, 4)}},
        {.what = "added mask",
         .build = build_biased,
         .options = &plain,
         .input = {sdlf_shape(2, 3, 4), sdlf_shape(2, 1, 3, 3)},
         .input_count = 2},
        {.what = "true and false", .build = build_masked, .options = &plain, .input = {sdlf_shape(2, 3, 4)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(values_match);
    RUN(the_future_is_not_seen);
    RUN(rows_that_see_nothing);
    RUN(attention_drops);
    RUN(no_scores_are_stored);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
