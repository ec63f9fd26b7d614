/* SPDX-License-Identifier: MIT */
/* Gradients of one layer against finite differences.
 *
 * Every element of the layer's input becomes a parameter: an input "eye" holds the identity matrix, so that a fully
 * connected layer without bias outputs its own weights, x[n,e] = weight[e,n], which are reshaped to the input's shape.
 * A fully connected "readout" of three classes and the cross-entropy that training adds turn the layer's output into a
 * scalar loss. The gradients of all parameters, and so of the layer's inputs too, are then compared with central
 * differences of the loss: the five-point formula, on `reference` in float64.
 *
 * Kinks are avoided: the elements of the inputs are all different, odd multiples of half of `unit`, in random order.
 * Parameters are multiples of 2^-8, so that they and their neighbours at distances of STEP are exact in
 * float32. */
#ifndef SDLF_TESTS_LAYERS_GRADIENTS_H
#define SDLF_TESTS_LAYERS_GRADIENTS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

#define STEP 0x1p-10

typedef sdlf_node layer_builder(sdlf_model *model, const sdlf_node *inputs, const void *options);

typedef struct layer_case {
    const char *what; /* for messages */
    layer_builder *build;
    const void *options;
    sdlf_shape input[2];                    /* with the batch, at least 2 */
    int input_count;                        /* 0 means 1 */
    double unit;                            /* distance between neighbouring input values; 0 means 2^-5 */
    const sdlf_plan_constant *constants[2]; /* inputs created by `build`, in float32 and in float64 */
    int constant_count;
} layer_case;

/* ---- building the network ---- */

static inline sdlf_model *case_model(const layer_case *c)
{
    sdlf_model *model = sdlf_model_create(c->what);
    sdlf_node x[2], eye = sdlf_input(model, "eye", SDLF_FLOAT32, sdlf_shape(c->input[0].dim[0]));
    static const char *const names[2] = {"x0", "x1"};
    for (int index = 0; index < (c->input_count == 0 ? 1 : c->input_count); index++) {
        sdlf_shape shape = c->input[index];
        int units = (int)sdlf_shape_span(shape, 1, shape.rank);
        x[index] = sdlf_fully_connected(
            model, eye, &(sdlf_fully_connected_options){.name = names[index], .units = units, .no_bias = true});
        x[index] = sdlf_reshape(model, x[index], &(sdlf_reshape_options){.shape = sdlf_shape_without(shape, 0)});
    }
    sdlf_node y = c->build(model, x, c->options);
    CHECK_OK(sdlf_model_status(model));
    if (sdlf_model_status(model) == SDLF_OK && !sdlf_model_layer(model, y.layer)->type->is_loss) {
        y = sdlf_fully_connected(model, y, &(sdlf_fully_connected_options){.name = "readout", .units = 3});
        sdlf_output(model, "logits", y);
    }
    CHECK_OK(sdlf_model_build(model, 3));
    return model;
}

/* Set the parameters to values on the grid: inputs all different, others random. */
static inline void set_parameters(const layer_case *c, sdlf_model *model)
{
    double unit = c->unit > 0 ? c->unit : 0x1p-5;
    for (int index = 0; index < sdlf_model_parameter_count(model); index++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, index);
        int64_t count = sdlf_tensor_count(&parameter->value);
        float *value = parameter->value.data;
        bool input = parameter->name[0] == 'x';
        if (!parameter->spec.trainable) continue;
        for (int64_t e = 0; e < count; e++) {
            uint32_t word = sdlf_philox4x32(17, (uint64_t)e, (uint32_t)index, 0).word[0];
            value[e] =
                input ? (float)((double)(e - count / 2) * unit + unit / 2) : (float)((int)(word % 257) - 128) * 0x1p-8f;
            int64_t other = input ? word % (e + 1) : e; /* Fisher-Yates shuffle */
            float kept = value[other];
            value[other] = value[e];
            value[e] = kept;
        }
    }
}

static inline sdlf_plan *case_plan(const layer_case *c, sdlf_model *model, sdlf_calculator *calculator,
                                   sdlf_dtype dtype, bool no_fusion)
{
    sdlf_plan *plan = NULL;
    int64_t batch = c->input[0].dim[0];
    if (!CHECK_OK(sdlf_plan_create(&plan, model,
                                   &(sdlf_plan_options){.batch = batch,
                                                        .mode = SDLF_TRAIN,
                                                        .dtype = dtype,
                                                        .forward = calculator,
                                                        .no_fusion = no_fusion,
                                                        .gradients_only = true,
                                                        .constants = c->constants[dtype == SDLF_FLOAT64],
                                                        .constant_count = c->constant_count,
                                                        .seed = 11})))
        return NULL;
    double *eye = calloc((size_t)(batch * batch), sizeof *eye);
    float *narrow = calloc((size_t)(batch * batch), sizeof *narrow);
    int32_t *labels = calloc((size_t)batch, sizeof *labels);
    for (int64_t n = 0; n < batch; n++) {
        eye[n * batch + n] = 1;
        narrow[n * batch + n] = 1;
        labels[n] = (int32_t)(n % 3);
    }
    CHECK_OK(test_plan_write(plan, "eye", dtype == SDLF_FLOAT64 ? (void *)eye : (void *)narrow));
    sdlf_binding binding; /* a layer with its own loss may have no labels */
    if (sdlf_plan_input(plan, "labels", &binding) == SDLF_OK) CHECK_OK(test_plan_write(plan, "labels", labels));
    free(eye);
    free(narrow);
    free(labels);
    return plan;
}

/* ---- the expected gradients: finite differences ---- */

static inline double loss_now(sdlf_plan *plan)
{
    double loss = NAN;
    CHECK_OK(sdlf_plan_load_parameters(plan));
    CHECK_OK(sdlf_plan_set_step_number(plan, 0)); /* so that dropout drops the same elements */
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "loss", &loss));
    return loss;
}

/* The gradients of all trainable parameters of the model, in order. The caller frees them. */
static inline double *difference_gradients(sdlf_plan *plan, sdlf_model *model)
{
    double *gradients = malloc((size_t)sdlf_model_trainable_count(model) * sizeof *gradients), *next = gradients;
    for (int index = 0; index < sdlf_model_parameter_count(model); index++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, index);
        float *value = parameter->value.data;
        for (int64_t e = 0; parameter->spec.trainable && e < sdlf_tensor_count(&parameter->value); e++) {
            float kept = value[e];
            double loss[5];
            for (int at = -2; at <= 2; at++) {
                value[e] = kept + (float)at * (float)STEP;
                loss[at + 2] = at == 0 ? 0 : loss_now(plan);
            }
            value[e] = kept;
            *next++ = (8 * (loss[3] - loss[1]) - (loss[4] - loss[0])) / (12 * STEP);
        }
    }
    return gradients;
}

/* ---- the layer's own gradients ---- */

static inline void compare_gradients(const layer_case *c, sdlf_model *model, sdlf_calculator *calculator,
                                     sdlf_dtype dtype, bool no_fusion, const double *expected)
{
    /* float32: the loss is near 1 and sums are short, so a few roundings; float64: the differences' truncation error */
    double absolute = dtype == SDLF_FLOAT64 ? 2e-9 : 4e-6, relative = dtype == SDLF_FLOAT64 ? 1e-8 : 2e-5;
    sdlf_plan *plan = case_plan(c, model, calculator, dtype, no_fusion);
    if (plan == NULL) return;
    CHECK_OK(sdlf_plan_step(plan, 0));
    for (int index = 0; index < sdlf_model_parameter_count(model); index++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, index);
        sdlf_binding binding;
        double largest = 0;
        if (!parameter->spec.trainable) continue;
        if (!CHECK_OK(sdlf_plan_gradient(plan, parameter->name, &binding))) continue;
        int64_t count = sdlf_tensor_count(&parameter->value), wrong = -1;
        void *values = malloc((size_t)sdlf_tensor_bytes(&binding.tensor));
        double found = 0;
        test_download(&binding, values);
        for (int64_t e = 0; e < count && wrong < 0; e++) {
            found = dtype == SDLF_FLOAT64 ? ((double *)values)[e] : (double)((float *)values)[e];
            if (!(fabs(found - expected[e]) <= absolute + relative * fabs(expected[e]))) wrong = e;
            largest = fmax(largest, fabs(expected[e]));
        }
        free(values);
        if (!CHECK(wrong < 0))
            printf("  %s on %s, %s, %s: gradient %lld of %s is %.9g, expected %.9g\n", c->what, calculator->type->name,
                   sdlf_dtype_name(dtype), no_fusion ? "unfused" : "fused", (long long)wrong, parameter->name, found,
                   expected[wrong]);
        if (!CHECK(wrong >= 0 || largest > 1e-4))
            printf("  %s: %s has no gradient to speak of\n", c->what, parameter->name);
        expected += count;
    }
    sdlf_plan_free(plan);
}

/* Check one case on every calculator. */
static inline void check_gradients(const layer_case *c)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *model = case_model(c);
    set_parameters(c, model);
    sdlf_plan *plan = case_plan(c, model, reference, SDLF_FLOAT64, true);
    double *expected = plan != NULL ? difference_gradients(plan, model) : NULL;
    sdlf_plan_free(plan);
    if (expected != NULL) compare_gradients(c, model, reference, SDLF_FLOAT64, true, expected);
    for (int index = 0; expected != NULL && test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name,
                                      &(sdlf_calculator_options){.threads = 2}));
        compare_gradients(c, model, calculator, SDLF_FLOAT32, true, expected);
        compare_gradients(c, model, calculator, SDLF_FLOAT32, false, expected);
        sdlf_calculator_close(calculator);
    }
    free(expected);
    sdlf_model_free(model);
    sdlf_calculator_close(reference);
}

static inline void check_all_gradients(const layer_case *cases, int count)
{
    for (int index = 0; index < count; index++) check_gradients(&cases[index]);
}

/* ---- shapes ---- */

/* Build a model with inputs of that shape (without the batch) and the layer; returns the status. */
static inline sdlf_status build_layer(sdlf_model **model, layer_builder *build, const void *options, sdlf_dtype dtype,
                                      sdlf_shape a, sdlf_shape b, sdlf_node *y)
{
    *model = sdlf_model_create("shapes");
    sdlf_node x[2] = {sdlf_input(*model, "a", dtype, a), sdlf_input(*model, "b", dtype, b)};
    *y = build(*model, x, options);
    return sdlf_model_build(*model, 1);
}

/* Check the output's shape, and that a model that could not be created gives no node. */
static inline void check_output(layer_builder *build, const void *options, sdlf_shape input, sdlf_shape expected)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK(build(NULL, (const sdlf_node[2]){{0, 0}, {0, 0}}, options).layer < 0);
    if (CHECK_OK(build_layer(&model, build, options, SDLF_FLOAT32, input, input, &y)))
        CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(model, y)).text,
                   sdlf_shape_print(sdlf_shape_prepend(1, expected)).text);
    sdlf_model_free(model);
}

static inline void check_refused(layer_builder *build, const void *options, sdlf_shape input, sdlf_status status,
                                 const char *text)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_FAILS(build_layer(&model, build, options, SDLF_FLOAT32, input, input, &y), status, text);
    sdlf_model_free(model);
}

/* Check that an int32 input is rejected. */
static inline void check_integers_refused(layer_builder *build, const void *options, sdlf_shape input)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_FAILS(build_layer(&model, build, options, SDLF_INT32, input, input, &y), SDLF_ERROR_SHAPE,
                "expected a floating-point input, found int32");
    sdlf_model_free(model);
}

#endif
