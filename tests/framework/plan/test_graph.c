/* SPDX-License-Identifier: MIT */
/* Plans of branching networks: gradients compared with finite differences, fused with unfused plans; memory reuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/branching_inputs.h"
#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

static double loss_of(sdlf_plan *plan)
{
    double loss = NAN;
    CHECK_OK(sdlf_plan_load_parameters(plan)); /* the plan computes in double on copies */
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "loss", &loss));
    return loss;
}

static void gradients_match_finite_differences(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = branching_net(0.25f);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = BATCH, .mode = SDLF_TRAIN, .dtype = SDLF_FLOAT64, .forward = reference, .gradients_only = true}));
    if (plan != NULL) {
        write_inputs(plan, SDLF_FLOAT64);
        CHECK_OK(sdlf_plan_step(plan, 0));
        CHECK_OK(sdlf_plan_set_step_number(plan, 0)); /* the same dropout in every run below */
        for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
            sdlf_parameter *parameter = sdlf_model_parameter(net, i);
            if (!parameter->spec.trainable) continue;
            sdlf_binding gradient;
            CHECK_OK(sdlf_plan_gradient(plan, parameter->name, &gradient));
            float *value = parameter->value.data;
            int64_t count = sdlf_tensor_count(&parameter->value);
            double *values = malloc((size_t)count * sizeof *values);
            test_download(&gradient, values);
            for (int64_t e = 0; e < count; e += 1 + count / 7) {
                float kept = value[e];
                double h = 1.0 / 1024; /* exact in float32 steps around values of this size */
                value[e] = kept + (float)h;
                double up_at = value[e], up = loss_of(plan);
                value[e] = kept - (float)h;
                double down_at = value[e], down = loss_of(plan);
                value[e] = kept;
                double expected = (up - down) / (up_at - down_at);
                CHECK_CLOSE(values[e], expected, 1e-5 * (1 + fabs(expected)));
            }
            free(values);
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Three training steps with and without fusion, on every calculator: equal up to rounding. */
static void train_a_little(const char *name, bool no_fusion, sdlf_model *net, float *loss)
{
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = 4,
                                                   .mode = SDLF_TRAIN,
                                                   .forward = calculator,
                                                   .no_fusion = no_fusion,
                                                   .optimizer = sdlf_sgd(.momentum = 0.9f, .weight_decay = 0.01f)}));
    if (plan != NULL) {
        float image[4 * 36];
        fill_random(image, 144, 21);
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1, 2, 1}));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(sdlf_plan_step(plan, 0.1f));
            CHECK_OK(test_plan_read(plan, "loss", &loss[i]));
        }
        CHECK_OK(sdlf_plan_store_parameters(plan));
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
}

static void fused_training_equals_unfused(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_model *nets[2] = {small_cnn(), small_cnn()};
        float loss[2][3];
        for (int fused = 0; fused < 2; fused++)
            train_a_little(test_calculator_class_at(i)->name, fused == 0, nets[fused], loss[fused]);
        for (int s = 0; s < 3; s++) CHECK_CLOSE(loss[1][s], loss[0][s], 1e-5);
        for (int p = 0; p < sdlf_model_parameter_count(nets[0]); p++) {
            const float *a = sdlf_model_parameter(nets[0], p)->value.data;
            const float *b = sdlf_model_parameter(nets[1], p)->value.data;
            for (int64_t e = 0; e < sdlf_tensor_count(&sdlf_model_parameter(nets[0], p)->value); e++)
                CHECK_CLOSE(b[e], a[e], 1e-5);
        }
        sdlf_model_free(nets[0]);
        sdlf_model_free(nets[1]);
    }
}

/* Check that fusions happen, or the test above would compare a plan with itself. */
static void fusions_happen(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 2, .mode = SDLF_TRAIN, .forward = reference};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        CHECK(count_steps(plan, "conv2d_relu_max_pool_forward") > 0);
        CHECK(count_steps(plan, "conv2d_relu_max_pool_backward_sgd") > 0);
        CHECK(count_steps(plan, "gemm_backward_sgd") > 0);
        CHECK(count_steps(plan, "activation_forward") == 0); /* in the products' epilogues */
        CHECK(count_steps(plan, "conv2d_forward") == 0);
        sdlf_layer_info info = sdlf_plan_layer_info(plan, 0);
        CHECK_TEXT(info.type, "conv2d+relu+max_pool2d");
        CHECK_EQUAL(info.parameters, 40);
        CHECK(sdlf_shape_equal(info.shape, sdlf_shape(2, 4, 3, 3)));
        sdlf_plan_free(plan);
    }
    options.clip_norm = 1; /* the update must wait for all gradients */
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        CHECK(count_steps(plan, "gemm_backward_sgd") == 0);
        CHECK(count_steps(plan, "clip_scale") > 0);
        sdlf_plan_free(plan);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* No two simultaneously live buffers overlap, unless one is computed in place of the other. */
static void live_buffers_do_not_overlap(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = branching_net(0.5f);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference, .clip_norm = 1}));
    int in_place = 0, apart = 0;
    for (int i = 1; plan != NULL && i < plan->buffer_count; i++) {
        const plan_buffer *a = &plan->buffers[i];
        in_place += a->alias >= 0;
        for (int j = 1; j < i; j++) {
            const plan_buffer *b = &plan->buffers[j];
            if (a->offset < 0 || b->offset < 0 || a->alias >= 0 || b->alias >= 0 || a->space != b->space) continue;
            if (a->first_use > b->last_use || b->first_use > a->last_use) continue;
            apart++;
            CHECK(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
        }
    }
    CHECK(in_place > 0 && apart > 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* A plan that reuses memory computes the same as one that keeps everything. */
static void reuse_changes_nothing(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(c)->name, NULL));
        uint32_t hash[2] = {0, 1};
        for (int keep = 0; keep < 2; keep++) {
            sdlf_model *net = branching_net(0.25f);
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(&plan, net,
                                      &(sdlf_plan_options){.batch = BATCH,
                                                           .mode = SDLF_TRAIN,
                                                           .forward = calculator,
                                                           .no_fusion = true,
                                                           .keep_activations = keep == 1}));
            if (plan != NULL) {
                write_inputs(plan, SDLF_FLOAT32);
                for (int i = 0; i < 3; i++) CHECK_OK(sdlf_plan_step(plan, 0.1f));
                CHECK_OK(sdlf_plan_store_parameters(plan));
                hash[keep] = sdlf_model_hash(net);
                sdlf_binding binding;
                if (keep == 1) {
                    CHECK_OK(sdlf_plan_activation(plan, "add", false, &binding));
                    CHECK_OK(sdlf_plan_activation(plan, "add", true, &binding));
                } else {
                    CHECK_FAILS(sdlf_plan_activation(plan, "add", false, &binding), SDLF_ERROR_ARGUMENT,
                                "keep_activations");
                }
            }
            sdlf_plan_free(plan);
            sdlf_model_free(net);
        }
        CHECK_EQUAL(hash[0], hash[1]);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(gradients_match_finite_differences);
    RUN(fused_training_equals_unfused);
    RUN(fusions_happen);
    RUN(live_buffers_do_not_overlap);
    RUN(reuse_changes_nothing);
    return test_summary();
}
