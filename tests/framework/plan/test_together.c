/* SPDX-License-Identifier: MIT */
/* Steps that a calculator fuses into one launch: it is offered consecutive steps, those it declines run one by one, and
 * only the number of calls changes. */
#include <stdio.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 4, STEPS = 3, MOST_WEIGHTS = 4096 };

/* ---- a calculator that puts pairs together ---- */

static sdlf_operation_kind pair[2];
static int offered, most_offered, most_alike, taken;
static bool breaks;

/* Counts over operations offered at once: one writes another tensor's memory; an operation overwrites its own
 * input. */
static int overlaps, in_place;

static bool is_written_over(const void *data, const sdlf_operation *const *operations, int count)
{
    for (int o = 0; o < count; o++) {
        unsigned may_alias = sdlf_operation_type(operations[o])->may_alias;
        for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
            const sdlf_tensor *in = &operations[o]->in[i], *out = &operations[o]->out[0];
            if (may_alias >> i & 1 && sdlf_tensor_present(in) && in->data == data && out->data == data) return true;
        }
    }
    return false;
}

/* Of these, one writes, and another uses. */
static void count_overlap(const sdlf_tensor *written, const sdlf_tensor *other, const sdlf_operation *const *operations,
                          int count)
{
    if (!sdlf_tensor_present(written) || !sdlf_tensor_present(other) || written->buffer == other->buffer) return;
    const char *a = written->data, *b = other->data;
    if (a >= b + sdlf_tensor_bytes(other) || b >= a + sdlf_tensor_bytes(written)) return;
    ++*(a == b && is_written_over(a, operations, count) ? &in_place : &overlaps);
}

static void count_overlaps(const sdlf_operation *a, const sdlf_operation *b, const sdlf_operation *const *operations,
                           int count)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS + 1; i++) {
        const sdlf_tensor *written = i < SDLF_MAX_OUTPUTS ? &a->out[i] : &a->workspace;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) count_overlap(written, &b->in[j], operations, count);
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) count_overlap(written, &b->out[j], operations, count);
        count_overlap(written, &b->workspace, operations, count);
    }
}

static sdlf_status run_pair(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count, int *done)
{
    offered++;
    if (count > most_offered) most_offered = count;
    int alike = 0;
    while (alike < count && operations[alike]->kind == pair[0]) alike++;
    if (alike > most_alike) most_alike = alike;
    *done = 0;
    for (int i = 0; i < count * count; i++) {
        if (i / count != i % count) count_overlaps(operations[i / count], operations[i % count], operations, count);
    }
    if (count < 2 || operations[0]->kind != pair[0] || operations[1]->kind != pair[1]) return SDLF_OK;
    taken++;
    *done = 2;
    if (breaks) return sdlf_fail(SDLF_ERROR_DEVICE, "a pair broke");
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 2 && status == SDLF_OK; i++)
        status = sdlf_calculator_slot(calculator, operations[i])->run(calculator, operations[i]);
    return status;
}

static sdlf_calculator_class pairing;

static sdlf_calculator *open_pairing(sdlf_operation_kind first, sdlf_operation_kind second)
{
    sdlf_calculator *calculator = test_open("guarded");
    if (calculator == NULL) return NULL;
    pairing = *calculator->type;
    pairing.run_together = run_pair;
    calculator->type = &pairing;
    pair[0] = first, pair[1] = second;
    offered = most_offered = most_alike = taken = overlaps = in_place = 0;
    breaks = false;
    return calculator;
}

/* All weights, concatenated, after a few steps; the first step must fail if a pair fails. */
static int train_network(sdlf_model *net, const sdlf_plan_options *options, float *weights)
{
    sdlf_plan *plan = NULL;
    int count = 0;
    float image[BATCH * 36];
    for (int i = 0; i < BATCH * 36; i++) image[i] = (float)(i % 11) * 0.1f;
    if (CHECK_OK(sdlf_plan_create(&plan, net, options))) {
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[BATCH]){0, 1, 2, 1}));
        for (int i = 0; i < STEPS && !breaks; i++) CHECK_OK(sdlf_plan_step(plan, 0.05f));
        if (breaks) CHECK_FAILS(sdlf_plan_step(plan, 0.05f), SDLF_ERROR_DEVICE, "a pair broke");
        CHECK_OK(sdlf_plan_store_parameters(plan));
        for (int p = 0; p < sdlf_model_parameter_count(net); p++) {
            const sdlf_tensor *value = &sdlf_model_parameter(net, p)->value;
            int64_t of = sdlf_tensor_count(value);
            if (!CHECK(count + of <= MOST_WEIGHTS)) break;
            memcpy(weights + count, value->data, (size_t)sdlf_tensor_bytes(value));
            count += (int)of;
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return count;
}

static int train(const sdlf_plan_options *options, float *weights)
{
    return train_network(small_cnn(), options, weights);
}

/* ---- tests ---- */

static void pairs_change_no_bit(void)
{
    float plain[MOST_WEIGHTS], paired[MOST_WEIGHTS];
    sdlf_calculator *calculator = open_pairing(SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD, SDLF_FUSED);
    if (calculator == NULL) return;
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .no_recording = true};
    int count = train(&options, paired);
    CHECK_EQUAL(taken, STEPS);
    CHECK_EQUAL(most_offered, 7);    /* a whole step: three forward, the loss, three backward */
    CHECK_EQUAL(offered, STEPS * 5); /* not after a pair's first step, and not the last step by itself */

    options.no_recording = false; /* once step by step, once recorded, then replayed */
    taken = 0;
    CHECK_EQUAL(train(&options, plain), count);
    CHECK_EQUAL(taken, 2);
    CHECK(memcmp(plain, paired, (size_t)count * sizeof *plain) == 0);

    pairing.run_together = NULL;
    CHECK_EQUAL(train(&options, plain), count);
    CHECK(memcmp(plain, paired, (size_t)count * sizeof *plain) == 0);
    sdlf_calculator_close(calculator);
}

/* A feed writes values that nothing reads (the step number); gradients reuse the memory of activations. */
static void what_is_offered_shares_no_memory(void)
{
    uint8_t samples[8 * 36];
    int32_t labels[8], order[8];
    fill_samples(samples, labels, order, 8);
    sdlf_calculator *calculator = open_pairing(SDLF_NEXT_BATCH, SDLF_GATHER_BATCH);
    if (calculator == NULL) return;
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_feed feed = feed_of(samples, labels, 8);
    sdlf_epoch epoch = {.order = order, .order_count = 8, .rates = (float[]){0.1f, 0.1f}};
    if (CHECK_OK(sdlf_plan_create(
            &plan, net,
            &(sdlf_plan_options){
                .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .feed = &feed, .no_recording = true}))) {
        CHECK_OK(sdlf_plan_begin_epoch(plan, &epoch));
        CHECK_OK(sdlf_plan_run(plan, 2));
    }
    CHECK_EQUAL(taken, 2);
    CHECK_EQUAL(overlaps, 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* Activations, dropout and sums are computed in place, and nothing else is. */
static void what_is_offered_is_written_over_by_its_readers(void)
{
    sdlf_calculator *calculator = open_pairing(SDLF_GEMM, SDLF_GEMM);
    if (calculator == NULL) return;
    const sdlf_conv2d_options wide = {.filters = 4, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_model *net = sdlf_model_create("in place");
    sdlf_plan *plan = NULL;
    sdlf_node x = sdlf_conv2d(net, sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6)), &wide);
    x = sdlf_tanh(net, sdlf_dropout(net, sdlf_sigmoid(net, x), NULL));
    x = sdlf_relu(net, sdlf_add(net, sdlf_add(net, sdlf_conv2d(net, x, &wide), x), sdlf_tanh(net, x)));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    if (CHECK_OK(sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator})))
        CHECK_OK(sdlf_plan_step(plan, 0.05f));
    CHECK_EQUAL(most_offered, 8);
    CHECK(in_place > 0);
    CHECK_EQUAL(overlaps, 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* Memory of a plan with every other layer, and the whole backward pass, on another calculator. */
static int64_t arena_in_turns(sdlf_calculator *calculator, sdlf_calculator *host)
{
    enum { LAYERS = 8 };
    char name[LAYERS][32];
    sdlf_placement placement[LAYERS];
    int64_t arena = 0;
    sdlf_model *net = sdlf_model_create("in turns");
    sdlf_plan *plan = NULL;
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(16));
    for (int i = 0; i < 2 * LAYERS; i++) {
        x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 16});
        if (i % 2 == 0) continue;
        snprintf(name[i / 2], sizeof name[0], "fully_connected_%d", i + 1);
        placement[i / 2] = (sdlf_placement){.layer = name[i / 2], .forward = host};
    }
    sdlf_output(net, "class", sdlf_softmax(net, x));
    if (CHECK_OK(sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = BATCH,
                                                       .mode = SDLF_TRAIN,
                                                       .forward = calculator,
                                                       .backward = host,
                                                       .placement = placement,
                                                       .placement_count = LAYERS})))
        arena = sdlf_plan_memory(plan).arena;
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return arena;
}

/* Between copies only one step is offered at a time, and no value outlives it. */
static void what_is_never_offered_shares_memory(void)
{
    sdlf_calculator *calculator = open_pairing(SDLF_GEMM, SDLF_GEMM), *host = test_open("reference");
    if (calculator == NULL || host == NULL) return;
    int64_t together = arena_in_turns(calculator, host);
    pairing.run_together = NULL;
    CHECK_EQUAL(together, arena_in_turns(calculator, host));
    sdlf_calculator_close(calculator);
    sdlf_calculator_close(host);
}

static sdlf_model *deep(void)
{
    sdlf_model *net = sdlf_model_create("deep");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    for (int i = 0; i < 10; i++)
        x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6}));
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Updates of small parameters come last, one after another, more of them than are offered of several kinds; the
 * weights are those of updates in their original positions. */
static void updates_are_offered_as_one(void)
{
    float together[MOST_WEIGHTS], alone[MOST_WEIGHTS];
    sdlf_calculator *calculator = open_pairing(SDLF_ADAM_UPDATE, SDLF_ADAM_UPDATE);
    if (calculator == NULL) return;
    const sdlf_plan_options options = {
        .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = sdlf_adam(0)};
    int count = train_network(deep(), &options, together);
    CHECK_EQUAL(most_alike, 20);
    CHECK_EQUAL(overlaps, 0);
    pairing.run_together = NULL;
    CHECK_EQUAL(train_network(deep(), &options, alone), count);
    CHECK(memcmp(together, alone, (size_t)count * sizeof(float)) == 0);
    sdlf_calculator_close(calculator);
}

static void unfused_plans_put_nothing_together(void)
{
    float weights[MOST_WEIGHTS];
    sdlf_calculator *calculator = open_pairing(SDLF_GEMM, SDLF_GEMM);
    if (calculator == NULL) return;
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .no_fusion = true};
    train(&options, weights);
    CHECK_EQUAL(offered, 0);
    sdlf_calculator_close(calculator);
}

/* The loss runs on the forward calculator, the steps after it on another. */
static void pairs_stay_on_one_calculator(void)
{
    float weights[MOST_WEIGHTS];
    sdlf_calculator *calculator = open_pairing(SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD, SDLF_FUSED);
    sdlf_calculator *host = test_open("reference");
    if (calculator == NULL || host == NULL) return;
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .backward = host};
    train(&options, weights);
    CHECK_EQUAL(taken, 0);
    CHECK(offered > 0 && most_offered < 7);
    sdlf_calculator_close(calculator);
    sdlf_calculator_close(host);
}

static void a_broken_pair_says_where(void)
{
    float weights[MOST_WEIGHTS];
    sdlf_calculator *calculator = open_pairing(SDLF_GEMM, SDLF_GEMM);
    if (calculator == NULL) return;
    breaks = true;
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator};
    train(&options, weights);
    CHECK_EQUAL(taken, 1);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(pairs_change_no_bit);
    RUN(what_is_offered_shares_no_memory);
    RUN(what_is_offered_is_written_over_by_its_readers);
    RUN(what_is_never_offered_shares_memory);
    RUN(updates_are_offered_as_one);
    RUN(unfused_plans_put_nothing_together);
    RUN(pairs_stay_on_one_calculator);
    RUN(a_broken_pair_says_where);
    return test_summary();
}
