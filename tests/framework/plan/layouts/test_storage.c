/* SPDX-License-Identifier: MIT */
/* Training plans that store activations in 16 bits: on `reference`, configured to request it, training proceeds as in
 * float32, the steps are the expected ones, and the arena takes about half the memory. */
#include <math.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

enum { CLASSES = 5, STEPS = 6 };

static sdlf_dtype wanted = SDLF_BFLOAT16;

static sdlf_dtype storage_wanted(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training)
{
    (void)calculator;
    (void)operation;
    (void)training;
    return wanted;
}

/* Normalised convolutions with a residual that has two more readers, pooling, groups, concatenated channels, an
 * activation whose derivative needs its input, a product of rows. */
static sdlf_model *network(void)
{
    sdlf_model *net = sdlf_model_create("stored");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_batch_norm2d(net, conv(net, x, "stem", 8, 3, 1), NULL));
    sdlf_node y = sdlf_batch_norm2d(net, conv(net, x, "body", 8, 3, 1), NULL);
    x = sdlf_relu(net, sdlf_add(net, y, x));
    sdlf_node wide = sdlf_relu6(net, sdlf_batch_norm2d(net, conv(net, x, "wide", 16, 1, 1), NULL));
    sdlf_node deep =
        sdlf_unary(net, conv(net, wide, "deep", 16, 3, 16), &(sdlf_unary_options){.function = SDLF_UNARY_SILU});
    sdlf_node joined = sdlf_concat(net, (sdlf_node[]){deep, x}, 2, NULL);
    joined = sdlf_max_pool2d(net, joined, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}});
    joined = sdlf_avg_pool2d(net, joined, &(sdlf_pool2d_options){.window = {2, 2}});
    sdlf_node rows = sdlf_fully_connected(net, joined, &(sdlf_fully_connected_options){.units = CLASSES});
    sdlf_output(net, "class", sdlf_softmax(net, rows));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

typedef struct training {
    double loss[STEPS];
    int64_t arena;
    int stored[SDLF_OPERATION_COUNT], all[SDLF_OPERATION_COUNT]; /* steps of each kind: in 16 bits; in all */
} training;

static void look_at(const sdlf_plan *plan, training *seen)
{
    seen->arena = sdlf_plan_memory(plan).arena;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        seen->all[op->kind]++;
        seen->stored[op->kind] += sdlf_operation_storage(op) != SDLF_NONE;
        CHECK_OK(sdlf_operation_check(op));
    }
}

/* Train repeatedly on the same images. */
static void train(const sdlf_plan_options *options, training *seen)
{
    static float image[4 * IMAGE];
    const int32_t labels[4] = {0, 3, 1, 4};
    sdlf_model *net = network();
    sdlf_plan *plan = NULL;
    fill_random(image, 4 * CHANNELS * SIDE * SIDE, 7);
    *seen = (training){.arena = 0};
    CHECK_OK(sdlf_plan_create(&plan, net, options));
    for (int step = 0; step < STEPS && plan != NULL; step++) {
        sdlf_metrics metrics = {0};
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_OK(sdlf_plan_clear_metrics(plan));
        seen->loss[step] = metrics.loss_sum / metrics.samples;
    }
    if (plan != NULL) look_at(plan, seen);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void training_goes_as_in_float32(void)
{
    static const sdlf_dtype types[] = {SDLF_BFLOAT16, SDLF_FLOAT16, SDLF_FLOAT32};
    static training exact, found;
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_calculator_class storing = *reference->type;
    const sdlf_calculator_class *plain = reference->type;
    storing.storage = storage_wanted;
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = 4, .forward = reference, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    train(&options, &exact);
    CHECK_EQUAL(exact.stored[SDLF_CONV2D_FORWARD], 0);
    reference->type = &storing;
    for (int i = 0; i < 3; i++) {
        wanted = types[i];
        train(&options, &found);
        double tolerance = types[i] == SDLF_BFLOAT16  ? 0.03
                           : types[i] == SDLF_FLOAT16 ? 0.004
                                                      : 1e-5; /* a few roundings of values near 1, amplified by steps */
        for (int step = 0; step < STEPS; step++)
            CHECK_CLOSE(found.loss[step], exact.loss[step], tolerance * (1 + exact.loss[0]));
        CHECK(found.loss[STEPS - 1] < 0.7 * found.loss[0]);
        CHECK_EQUAL(found.stored[SDLF_CONV2D_FORWARD], 4);
        CHECK_EQUAL(found.stored[SDLF_CONV2D_BACKWARD_INPUT], 3);
        if (types[i] == SDLF_FLOAT32) continue; /* of other kinds only the layout changes */
        CHECK_EQUAL(found.stored[SDLF_CONV2D_BACKWARD_WEIGHTS], 4);
        CHECK_EQUAL(found.stored[SDLF_BATCH_NORM2D_FORWARD], 3);
        CHECK_EQUAL(found.stored[SDLF_BATCH_NORM2D_BACKWARD], 3);
        CHECK_EQUAL(found.all[SDLF_ACTIVATION_FORWARD], exact.all[SDLF_ACTIVATION_FORWARD]);
        CHECK_EQUAL(found.stored[SDLF_MAX_POOL2D_BACKWARD], 1);
        CHECK_EQUAL(found.stored[SDLF_GEMM], 0);
        CHECK(found.arena < exact.arena * 3 / 4);
    }
    options.no_fusion = true;
    train(&options, &found);
    CHECK_EQUAL(found.stored[SDLF_CONV2D_FORWARD], 0);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

/* Inference: activations in 16 bits, weights unchanged. */
static void inference_stores_too(void)
{
    static float image[4 * IMAGE], found[2][4 * CLASSES];
    sdlf_calculator *reference = NULL;
    sdlf_model *net = network();
    int stored[SDLF_OPERATION_COUNT] = {0};
    fill_random(image, 4 * CHANNELS * SIDE * SIDE, 7);
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_calculator_class storing = *reference->type;
    const sdlf_calculator_class *plain = reference->type;
    storing.storage = storage_wanted;
    wanted = SDLF_FLOAT16;
    for (int i = 0; i < 2; i++) {
        sdlf_plan *plan = NULL;
        reference->type = i == 0 ? plain : &storing;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 4, .forward = reference}));
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "class", found[i]));
        for (int s = 0; i == 1 && plan != NULL && s < plan->step_count; s++) {
            const sdlf_operation *op = &plan->steps[s].operation;
            CHECK_OK(sdlf_operation_check(op));
            stored[op->kind] += sdlf_operation_storage(op) != SDLF_NONE;
            if (op->kind == SDLF_CONV2D_FORWARD) CHECK_EQUAL(op->in[1].dtype, SDLF_FLOAT32);
        }
        sdlf_plan_free(plan);
    }
    for (int i = 0; i < 4 * CLASSES; i++) CHECK_CLOSE(found[1][i], found[0][i], 0.004);
    CHECK_EQUAL(stored[SDLF_CONV2D_FORWARD], 4);
    CHECK_EQUAL(stored[SDLF_MAX_POOL2D_FORWARD], 1);
    reference->type = plain;
    sdlf_calculator_close(reference);
    sdlf_model_free(net);
}

/* y of two convolutions with a transposed one between, on images of SIDE x SIDE; *stored: transposed convolutions in 16 bits. */
static void transpose_between(sdlf_calculator *calculator, float *y, int *stored)
{
    static float image[8 * IMAGE];
    sdlf_plan *plan = NULL;
    sdlf_model *net = sdlf_model_create("transposed");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_relu(net, conv(net, x, "before", 16, 3, 1));
    x = sdlf_conv_transpose2d(net, x,
                              &(sdlf_conv_transpose2d_options){.filters = 8, .kernel = {2, 2}, .stride = {2, 2}});
    sdlf_output(net, "y", conv(net, sdlf_relu(net, x), "behind", 8, 3, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 3);
    fill_random(image, 8 * CHANNELS * SIDE * SIDE, 7);
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 8, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    *stored = 0;
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        CHECK_OK(sdlf_operation_check(op));
        *stored += op->kind == SDLF_CONV2D_BACKWARD_INPUT && sdlf_operation_storage(op) != SDLF_NONE;
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

/* Transposed convolutions, whose weights stay float32: on `reference`, and on a GPU in its own modes. */
static void transposed_convolutions_store_too(void)
{
    enum { COUNT = 8 * 8 * 4 * SIDE * SIDE };
    static float exact[COUNT], found[COUNT];
    static const sdlf_math modes[] = {SDLF_MATH_TF32, SDLF_MATH_BF16, SDLF_MATH_FP16};
    sdlf_calculator *reference = NULL, *cuda = NULL;
    int stored;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_wanted;
    wanted = SDLF_FLOAT16;
    transpose_between(reference, exact, &stored);
    CHECK_EQUAL(stored, 0);
    reference->type = &storing;
    transpose_between(reference, found, &stored);
    CHECK_EQUAL(stored, 1);
    for (int i = 0; i < COUNT; i++) CHECK_CLOSE(found[i], exact[i], 0.01 * (1 + fabs((double)exact[i])));
    reference->type = plain;
    sdlf_calculator_close(reference);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        sdlf_calculator_options options = {.math = modes[m]};
        if (sdlf_calculator_open(&cuda, "cuda", &options) != SDLF_OK) return;
        transpose_between(cuda, found, &stored);
        for (int i = 0; i < COUNT; i++) CHECK_CLOSE(found[i], exact[i], 0.06 * (1 + fabs((double)exact[i])));
        sdlf_calculator_close(cuda);
    }
}

/* Matrix products of rows of channels between two convolutions, through permutations: they read and write the images in place. */
static void rows_of_channels_are_no_copies(void)
{
    static float image[4 * IMAGE], found[2][4 * 8 * SIDE * SIDE];
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    const sdlf_calculator_class *plain = reference->type;
    sdlf_calculator_class storing = *plain;
    storing.storage = storage_wanted;
    wanted = SDLF_FLOAT16;
    sdlf_model *net = sdlf_model_create("rows");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_transpose(net, conv(net, x, "before", 16, 3, 1),
                       &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 3, 1)});
    x = sdlf_layer_norm(net, x, NULL);
    for (int i = 0; i < 2; i++)
        x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = i == 0 ? 24 : 16, .axis = -1});
    x = sdlf_transpose(net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 3, 1, 2)});
    sdlf_output(net, "y", conv(net, x, "behind", 8, 3, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 3);
    fill_random(image, 4 * CHANNELS * SIDE * SIDE, 7);
    for (int i = 0; i < 2; i++) {
        sdlf_plan *plan = NULL;
        reference->type = i == 0 ? plain : &storing;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 4, .forward = reference}));
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", found[i]));
        CHECK_EQUAL(count_steps(plan, "copy"), 2); /* stored: of the input, and to the output; else the permutations */
        sdlf_plan_free(plan);
    }
    for (int i = 0; i < 4 * 8 * SIDE * SIDE; i++) CHECK_CLOSE(found[1][i], found[0][i], 0.05);
    reference->type = plain;
    sdlf_calculator_close(reference);
    sdlf_model_free(net);
}

/* Forward in 16 bits on one calculator, backward in float32 on another: tensors that cross are converted. */
static void calculators_meet(void)
{
    static training exact, found;
    sdlf_calculator *storing = NULL, *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&storing, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_calculator_class type = *storing->type;
    const sdlf_calculator_class *plain = storing->type;
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = 4, .forward = storing, .backward = cpu, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    train(&options, &exact);
    type.storage = storage_wanted;
    storing->type = &type;
    wanted = SDLF_FLOAT16;
    train(&options, &found);
    for (int step = 0; step < STEPS; step++)
        CHECK_CLOSE(found.loss[step], exact.loss[step], 0.004 * (1 + exact.loss[0]));
    CHECK_EQUAL(found.stored[SDLF_CONV2D_FORWARD], 4);
    CHECK_EQUAL(found.stored[SDLF_CONV2D_BACKWARD_WEIGHTS], 0);
    storing->type = plain;
    sdlf_calculator_close(storing);
    sdlf_calculator_close(cpu);
}

/* On a GPU, in its own modes: float16, with a loss scale, is stored in the same places as bfloat16. */
static void a_gpu_trains_as_in_float32(void)
{
    static training exact, found[2];
    static const sdlf_math modes[] = {SDLF_MATH_BF16, SDLF_MATH_FP16};
    sdlf_calculator *reference = NULL, *any = NULL;
    if (sdlf_calculator_open(&any, "cuda", NULL) != SDLF_OK) {
        test_skip("no GPU");
        return;
    }
    sdlf_calculator_close(any);
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = 4, .forward = reference, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    train(&options, &exact);
    options.loss_scale = SDLF_LOSS_SCALE_DYNAMIC;
    for (int m = 0; m < 2; m++) {
        sdlf_calculator *cuda = NULL;
        if (sdlf_calculator_open(&cuda, "cuda", &(sdlf_calculator_options){.math = modes[m]}) != SDLF_OK) {
            test_skip("no GPU that has the mode");
            break;
        }
        options.forward = cuda;
        train(&options, &found[m]);
        double tolerance = modes[m] == SDLF_MATH_BF16 ? 0.05 : 0.01;
        for (int step = 0; step < STEPS; step++)
            CHECK_CLOSE(found[m].loss[step], exact.loss[step], tolerance * (1 + exact.loss[0]));
        CHECK_EQUAL(found[m].all[SDLF_CHECK_FINITE], found[0].all[SDLF_CHECK_FINITE]);
        for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++)
            CHECK_EQUAL(found[m].stored[kind], found[0].stored[kind]);
        sdlf_calculator_close(cuda);
    }
    sdlf_calculator_close(reference);
}

/* The weight gradient of the first convolution in one step, read from its velocity; *count elements. The weights of the
 * scores are so small that gradients of activations underflow in float16. */
static const float *small_gradient(const sdlf_plan_options *options, sdlf_model *net, int64_t *count)
{
    static float image[4 * IMAGE];
    sdlf_plan *plan = NULL;
    sdlf_parameter *scores = sdlf_model_find_parameter(net, "fully_connected.weight");
    const sdlf_parameter *stem = sdlf_model_find_parameter(net, "stem.weight");
    *count = 0;
    CHECK(scores != NULL && stem != NULL);
    if (scores == NULL || stem == NULL) return NULL;
    float *values = scores->value.data;
    for (int64_t i = 0; i < sdlf_tensor_count(&scores->value); i++) values[i] *= 1e-7f;
    fill_random(image, 4 * CHANNELS * SIDE * SIDE, 7);
    CHECK_OK(sdlf_plan_create(&plan, net, options));
    if (plan == NULL) return NULL;
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 3, 1, 4}));
    CHECK_OK(sdlf_plan_step(plan, 0.01f));
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    *count = sdlf_tensor_count(&stem->value);
    return stem->state[0].data;
}

static double relative_distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) difference += fabs((double)a[i] - (double)b[i]), size += fabs((double)b[i]);
    return difference / size;
}

static void a_loss_scale_keeps_small_gradients(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_calculator_class storing = *reference->type;
    const sdlf_calculator_class *plain = reference->type;
    storing.storage = storage_wanted;
    wanted = SDLF_FLOAT16;
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = 4, .forward = reference, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    enum { EXACT, LOST, KEPT, CASES };
    sdlf_model *net[CASES];
    const float *gradient[CASES];
    int64_t count = 0;
    for (int i = 0; i < CASES; i++) {
        net[i] = network();
        reference->type = i == EXACT ? plain : &storing;
        options.loss_scale = i == KEPT ? SDLF_LOSS_SCALE_DYNAMIC : 0;
        gradient[i] = small_gradient(&options, net[i], &count);
    }
    if (count > 0) {
        CHECK(relative_distance(gradient[LOST], gradient[EXACT], count) > 0.5);
        CHECK(relative_distance(gradient[KEPT], gradient[EXACT], count) < 0.02);
    }
    for (int i = 0; i < CASES; i++) sdlf_model_free(net[i]);
    reference->type = plain;
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(a_loss_scale_keeps_small_gradients);
    RUN(a_gpu_trains_as_in_float32);
    RUN(training_goes_as_in_float32);
    RUN(inference_stores_too);
    RUN(transposed_convolutions_store_too);
    RUN(rows_of_channels_are_no_copies);
    RUN(calculators_meet);
    return test_summary();
}
