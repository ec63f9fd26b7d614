/* SPDX-License-Identifier: MIT */
/* Training plans that store the rows of a transformer, and their gradients, in 16 bits: on `reference`, configured to request
 * it, losses match float32 within the type's rounding, the steps are the expected ones, gradients of parameters, updates and
 * states keep float32, and activations take half the memory. */
#include <stdio.h>

#include "framework/plan/layouts/rows.h"
#include "testing.h"

enum { STEPS = 6 };

typedef struct training {
    double loss[STEPS];
    int64_t arena;
    int stored[SDLF_OPERATION_COUNT], all[SDLF_OPERATION_COUNT];
} training;

/* A parameter, a state, a gradient: what keeps float32. */
static bool is_kept(const sdlf_plan *plan, int buffer)
{
    bool kept = plan->buffers[buffer].kind != BUFFER_ARENA;
    for (int i = 0; i < plan->model->parameter_count; i++)
        kept = kept || (sdlf_tensor_present(&plan->gradients[i]) && plan->gradients[i].buffer == buffer);
    return kept;
}

static void look_at(const sdlf_plan *plan, training *seen)
{
    seen->arena = sdlf_plan_memory(plan).arena;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        CHECK_OK(sdlf_operation_check(op));
        CHECK(sdlf_calculator_supports(plan->steps[i].calculator, op));
        seen->all[op->kind]++;
        seen->stored[op->kind] += sdlf_operation_storage(op) != SDLF_NONE;
        if (plan->steps[i].phase == SDLF_PHASE_UPDATE) CHECK_EQUAL(sdlf_operation_storage(op), SDLF_NONE);
        if (op->kind == SDLF_COPY && op->in[0].dtype == wanted) CHECK(!is_kept(plan, op->out[0].buffer));
    }
}

typedef sdlf_node network(sdlf_model *net, sdlf_node h);

static sdlf_node attending_blocks(sdlf_model *net, sdlf_node h)
{
    for (int block = 0; block < BLOCKS; block++) {
        sdlf_node y = sdlf_layer_norm(net, h, NULL);
        h = sdlf_add(
            net, h,
            sdlf_multi_head_attention(net, y, &(sdlf_multi_head_attention_options){.heads = 4, .causal = block == 1}));
        y = rows_of(net, sdlf_layer_norm(net, h, NULL), 2 * WIDTH);
        y = sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
        h = sdlf_add(net, h, rows_of(net, y, WIDTH));
    }
    return h;
}

/* GEMMs between operations that support only float32. */
static sdlf_node softmax_blocks(sdlf_model *net, sdlf_node h)
{
    for (int i = 0; i < 3; i++) h = sdlf_softmax(net, rows_of(net, h, WIDTH));
    return h;
}

/* Steps on the same samples. */
static void train(network *blocks, const sdlf_plan_options *options, float rate, training *seen)
{
    static float x[VALUES];
    static int32_t labels[BATCH * ROWS];
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node h = blocks(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH)));
    h = rows_of(net, sdlf_layer_norm(net, h, NULL), CLASSES);
    sdlf_output(net, "class",
                sdlf_model_add(net, sdlf_layer_class_find("softmax"), &(sdlf_softmax_options){.axis = -1}, &h, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_random(x, VALUES, 5);
    for (int i = 0; i < BATCH * ROWS; i++) labels[i] = i * i % CLASSES;
    sdlf_plan *plan = NULL;
    *seen = (training){.arena = 0};
    CHECK_OK(sdlf_plan_create(&plan, net, options));
    for (int step = 0; step < STEPS && plan != NULL; step++) {
        sdlf_metrics metrics = {0};
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        CHECK_OK(sdlf_plan_step(plan, rate));
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_OK(sdlf_plan_clear_metrics(plan));
        seen->loss[step] = metrics.loss_sum / (BATCH * ROWS);
    }
    if (plan != NULL) look_at(plan, seen);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

/* With the optimizer's update fused into the backward GEMMs, and without. */
static void training_is_stored(void)
{
    static training exact, found;
    static const sdlf_dtype types[] = {SDLF_BFLOAT16, SDLF_FLOAT16};
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    for (int adam = 0; adam < 2; adam++) {
        for (int t = 0; t < 2; t++) {
            sdlf_plan_options options = {.mode = SDLF_TRAIN, .batch = BATCH, .forward = reference};
            options.optimizer = adam ? sdlf_adamw(.beta1 = 0.9f) : sdlf_sgd(.momentum = 0.5f);
            wanted = types[t];
            train(attending_blocks, &options, adam ? 0.005f : 0.1f, &exact);
            reference->type = &storing;
            train(attending_blocks, &options, adam ? 0.005f : 0.1f, &found);
            reference->type = plain;
            for (int i = 0; i < STEPS; i++) CHECK_CLOSE(found.loss[i], exact.loss[i], t == 0 ? 0.02 : 0.003);
            CHECK(exact.loss[STEPS - 1] < 0.9 * exact.loss[0]);
            for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
                bool all = kind == SDLF_GEMM || kind == SDLF_FUSED || kind == SDLF_ATTENTION_FORWARD ||
                           kind == SDLF_ATTENTION_BACKWARD || kind == SDLF_NORMALIZE_FORWARD ||
                           kind == SDLF_NORMALIZE_BACKWARD || kind == SDLF_ACTIVATION_FORWARD ||
                           kind == SDLF_ACTIVATION_BACKWARD || kind == SDLF_REDUCE || kind == SDLF_ADD;
                /* a GEMM writes the gradient for the first normalisation in float32: no GEMM follows */
                int first = adam && kind == SDLF_NORMALIZE_BACKWARD;
                if (all && !CHECK_EQUAL(found.stored[kind], found.all[kind] - first))
                    printf("    %s\n", sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
                if (kind != SDLF_COPY) CHECK_EQUAL(found.all[kind], exact.all[kind]);
            }
            CHECK_EQUAL(exact.stored[SDLF_GEMM], 0);
            CHECK(found.all[SDLF_COPY] <= exact.all[SDLF_COPY] + 2); /* the input, and the gradient of the scores */
            CHECK(found.arena < exact.arena * 3 / 4);
        }
    }
    sdlf_calculator_close(reference);
}

/* Sums over batches, clipped gradients, scaled losses and optimizers of several operations: none of these is stored, but
 * the network is. */
static void updates_stay_float32(void)
{
    static training exact, found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    wanted = SDLF_FLOAT16;
    const sdlf_plan_options all[] = {
        {.accumulate = true, .optimizer = sdlf_sgd(.momentum = 0.5f)},
        {.clip_norm = 0.5f, .loss_scale = 1024, .optimizer = sdlf_adamw(.beta1 = 0.9f)},
        {.optimizer = sdlf_muon(.momentum = 0.5f, .weight_decay = 0.01f)},
        {.optimizer = sdlf_lars(.momentum = 0.5f), .loss_scale = 1024},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        sdlf_plan_options options = all[i];
        options.mode = SDLF_TRAIN, options.batch = BATCH, options.forward = reference;
        train(attending_blocks, &options, 0.01f, &exact);
        reference->type = &storing;
        train(attending_blocks, &options, 0.01f, &found);
        reference->type = plain;
        for (int step = 0; step < STEPS; step++) CHECK_CLOSE(found.loss[step], exact.loss[step], 0.02);
        CHECK_EQUAL(found.stored[SDLF_ATTENTION_BACKWARD], BLOCKS);
        CHECK(found.stored[SDLF_NORMALIZE_BACKWARD] >= 2 * BLOCKS);
    }
    sdlf_calculator_close(reference);
}

/* A weight that is a layer of its own, and reaches a product through copies: its gradient keeps float32. */
static sdlf_node valued_blocks(sdlf_model *net, sdlf_node h)
{
    for (int i = 0; i < 2; i++) {
        sdlf_node weight = sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(WIDTH, WIDTH), .trainable = true});
        h = sdlf_matmul(net, rows_of(net, h, WIDTH), weight, NULL);
    }
    return rows_of(net, h, WIDTH);
}

static void gradients_of_values_stay_float32(void)
{
    static training found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    wanted = SDLF_BFLOAT16;
    reference->type = &storing;
    train(valued_blocks,
          &(sdlf_plan_options){
              .mode = SDLF_TRAIN, .batch = BATCH, .forward = reference, .optimizer = sdlf_adamw(.beta1 = 0.9f)},
          0.005f, &found);
    CHECK(found.stored[SDLF_GEMM] > 0);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

/* Where each GEMM's operands would be converted for others, training stores none. */
static void conversions_alone_are_not_stored(void)
{
    static training found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_of_rows;
    wanted = SDLF_BFLOAT16;
    reference->type = &storing;
    train(softmax_blocks,
          &(sdlf_plan_options){
              .mode = SDLF_TRAIN, .batch = BATCH, .forward = reference, .optimizer = sdlf_sgd(.momentum = 0.5f)},
          0.1f, &found);
    CHECK(found.all[SDLF_GEMM] > 0);
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) CHECK_EQUAL(found.stored[kind], 0);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(training_is_stored);
    RUN(updates_stay_float32);
    RUN(gradients_of_values_stay_float32);
    RUN(conversions_alone_are_not_stored);
    return test_summary();
}
