/* SPDX-License-Identifier: MIT */
/* Fused training compared with unfused training: the same weights. */
#include <math.h>
#include <string.h>

#include "framework/plan/fuse/trained_networks.h"
#include "framework/plan/plan_internal.h"

enum { STEPS = 3 };

/* Batch normalisation, of images and of rows, before activations whose derivatives follow from their inputs; one has a
 * residual added, and one normalisation has two readers. */
static sdlf_model *normalized(void)
{
    sdlf_model *net = sdlf_model_create("normalized");
    sdlf_unary_options silu = {.function = SDLF_UNARY_SILU}, gelu = {.function = SDLF_UNARY_GELU};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    sdlf_conv2d_options window = {.filters = 8, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true};
    sdlf_fully_connected_options hidden = {.units = 6, .no_bias = true}; /* a normalisation cancels a bias */
    x = sdlf_conv2d(net, x, &window);
    x = sdlf_unary(net, sdlf_batch_norm2d(net, x, NULL), &gelu);
    sdlf_node more = sdlf_conv2d(net, x, &window);
    x = sdlf_unary(net, sdlf_add(net, sdlf_batch_norm2d(net, more, NULL), x), &silu);
    x = sdlf_batch_norm2d(net, sdlf_fully_connected(net, x, &hidden), NULL);
    x = sdlf_add(net, sdlf_unary(net, x, &silu), x);
    x = sdlf_batch_norm2d(net, sdlf_fully_connected(net, x, &hidden), NULL);
    x = sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_HARD_SWISH});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

static sdlf_model *(*const networks[])(void) = {deep, unbiased, activated, normalized, forked, weighted};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

/* ---- the same weights ---- */

/* Train a few steps; store the parameters afterwards, and the loss of each step. */
static void train(sdlf_model *net, const sdlf_plan_options *options, double loss[STEPS])
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return;
    bool wide = options->dtype == SDLF_FLOAT64;
    float image[BATCH * SIDE * SIDE], loss32;
    double image64[BATCH * SIDE * SIDE];
    fill_random(image, BATCH * SIDE * SIDE, 31);
    for (int i = 0; i < BATCH * SIDE * SIDE; i++) image64[i] = (double)image[i];
    CHECK_OK(test_plan_write(plan, "image", wide ? (void *)image64 : (void *)image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[BATCH]){0, 1, 2, 1, 0}));
    if (strcmp(sdlf_model_name(net), "weighted") == 0) {
        float weights[BATCH] = {0.25f, 0, 0.5f, 0.125f, 1};
        double weights64[BATCH] = {0.25, 0, 0.5, 0.125, 1};
        CHECK_OK(test_plan_write(plan, "weights", wide ? (void *)weights64 : (void *)weights));
    }
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(sdlf_plan_step(plan, 0.05f));
        CHECK_OK(test_plan_read(plan, "loss", wide ? (void *)&loss[i] : (void *)&loss32));
        if (!wide) loss[i] = (double)loss32;
    }
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
}

static void compare(sdlf_model *found, sdlf_model *expected, double tolerance)
{
    for (int p = 0; p < sdlf_model_parameter_count(expected); p++) {
        const sdlf_tensor *a = &sdlf_model_parameter(expected, p)->value, *b = &sdlf_model_parameter(found, p)->value;
        const float *x = a->data, *y = b->data;
        for (int64_t e = 0; e < sdlf_tensor_count(a); e++) {
            if (!CHECK_CLOSE((double)y[e], (double)x[e], tolerance * fmax(1, fabs((double)x[e])))) return;
        }
    }
}

static void check_pair(sdlf_model *(*make)(void), sdlf_plan_options options, double tolerance)
{
    sdlf_model *nets[2] = {make(), make()};
    double loss[2][STEPS] = {{0}};
    for (int fused = 0; fused < 2; fused++) {
        options.no_fusion = fused == 0;
        train(nets[fused], &options, loss[fused]);
    }
    for (int s = 0; s < STEPS; s++) CHECK_CLOSE(loss[1][s], loss[0][s], tolerance);
    compare(nets[1], nets[0], tolerance);
    sdlf_model_free(nets[0]);
    sdlf_model_free(nets[1]);
}

/* In float64 on reference the same bits: the sums have one order, and no gradient is rounded where it is stored. In
 * float32 gradients that are stored are rounded, and other calculators add in another order: a few roundings of numbers
 * around 1, or of larger ones in proportion, over three steps. */
static void fused_equals_unfused(void)
{
    const sdlf_optimizer optimizers[] = {
        sdlf_sgd(.momentum = 0),
        sdlf_sgd(.momentum = 0.9f, .weight_decay = 0.01f),
        sdlf_sgd(.momentum = 0.9f, .nesterov = true),
        sdlf_adam(.beta1 = 0.9f),
    };
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
        for (int n = 0; n < NETWORKS; n++) {
            for (int o = 0; o < 4; o++) {
                sdlf_plan_options options = {
                    .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = optimizers[o]};
                /* normalising by the deviation of a few samples amplifies rounding errors */
                const double tolerance = networks[n] == normalized ? 1e-4 : 1e-5;
                check_pair(networks[n], options, tolerance);
                options.label_smoothing = 0.1f;
                check_pair(networks[n], options, tolerance);
                if (strcmp(name, "reference") != 0) continue;
                options.dtype = SDLF_FLOAT64;
                check_pair(networks[n], options, 0);
            }
        }
        sdlf_calculator_close(calculator);
    }
}

/* Activations of `normalized` that are the only readers of a normalisation have no step of their own if the calculator
 * computes derivatives from x; the one after a sum and the one beside another reader remain. */
static void slopes_follow_from_x(void)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    sdlf_model *net = normalized();
    sdlf_plan_options options = {
        .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = sdlf_sgd(.momentum = 0)};
    int forward = 0, backward = 0, fused = 0;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        for (int i = 0; i < plan->step_count; i++) {
            const sdlf_operation *op = &plan->steps[i].operation;
            forward += op->kind == SDLF_ACTIVATION_FORWARD;
            backward += op->kind == SDLF_ACTIVATION_BACKWARD;
            fused += op->kind == SDLF_BATCH_NORM2D_BACKWARD && op->batch_norm.activation.function != SDLF_IDENTITY;
        }
    }
    CHECK_EQUAL(forward, 2);
    CHECK_EQUAL(backward, 2);
    CHECK_EQUAL(fused, 2);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(slopes_follow_from_x);
    RUN(fused_equals_unfused);
    return test_summary();
}
