/* SPDX-License-Identifier: MIT */
/* See grad_cam.h. */
#include "apps/report/grad_cam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

/* The node that holds the scores: the input of a final softmax, if there is one. */
static sdlf_node score_node(const sdlf_model *model)
{
    sdlf_node last = sdlf_model_output_count(model) > 0 ? sdlf_model_output(model, 0)
                                                        : (sdlf_node){.layer = sdlf_model_layer_count(model) - 1};
    bool logits = sdlf_model_layer(model, last.layer)->type->scores == SDLF_SCORES_LOGITS;
    return logits ? last : sdlf_model_layer_input(model, last.layer, 0);
}

static bool is_map(const sdlf_model *model, int layer)
{
    sdlf_shape shape = sdlf_model_node_shape(model, (sdlf_node){.layer = layer});
    return shape.rank == 4 && shape.dim[2] * shape.dim[3] > 1;
}

/* The last convolution on which the scores depend; -1 if there is none. */
static int last_convolution(const sdlf_model *model, sdlf_node scores)
{
    int count = sdlf_model_layer_count(model), found = -1;
    bool *wanted = memory_allocate((size_t)count * sizeof *wanted);
    wanted[scores.layer] = true;
    for (int i = count - 1; i >= 0 && found < 0; i--) {
        if (!wanted[i]) continue;
        if (strcmp(sdlf_model_layer(model, i)->type->name, "conv2d") == 0 && is_map(model, i)) found = i;
        for (int k = 0; k < sdlf_model_layer_input_count(model, i); k++)
            wanted[sdlf_model_layer_input(model, i, k).layer] = true;
    }
    free(wanted);
    return found;
}

/* The only layer that reads `layer`'s output; -1 if none or several do. */
static int only_reader(const sdlf_model *model, int layer)
{
    int reader = -1;
    for (int i = layer + 1; i < sdlf_model_layer_count(model); i++)
        for (int k = 0; k < sdlf_model_layer_input_count(model, i); k++) {
            if (sdlf_model_layer_input(model, i, k).layer != layer) continue;
            if (reader >= 0) return -1;
            reader = i;
        }
    return reader;
}

static bool keeps_places(const sdlf_model *model, int layer)
{
    static const char *const types[] = {"add",  "batch_norm2d", "clip",    "dropout", "leaky_relu",
                                        "relu", "relu6",        "sigmoid", "tanh",    "unary"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(sdlf_model_layer(model, layer)->type->name, types[i]) == 0) return true;
    return false;
}

/* Follows a convolution through normalisation, residual sum and activation, each read by one layer: values before a ReLU are mostly
 * negative and hide the evidence for a class. */
static int behind_activation(const sdlf_model *model, int layer, sdlf_node scores)
{
    sdlf_shape shape = sdlf_model_node_shape(model, (sdlf_node){.layer = layer});
    while (layer >= 0 && layer != scores.layer) {
        int next = only_reader(model, layer);
        if (next < 0 || !keeps_places(model, next) ||
            !sdlf_shape_equal(shape, sdlf_model_node_shape(model, (sdlf_node){.layer = next})))
            break;
        layer = next;
    }
    return layer;
}

/* Finds the layer. `trained`: the layer whose parameters must be trained for the gradient to reach `layer`. */
static sdlf_status find_layer(const sdlf_model *model, sdlf_node scores, const char *name, int *layer, int *trained)
{
    *trained = name ? -1 : last_convolution(model, scores);
    *layer = name ? -1 : behind_activation(model, *trained, scores);
    for (int i = 0; name && i < sdlf_model_layer_count(model); i++)
        if (strcmp(sdlf_model_layer(model, i)->name, name) == 0) *layer = *trained = i;
    if (*layer < 0 && name)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no layer '%s'", sdlf_model_name(model), name);
    if (*layer < 0)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "network '%s' has no convolution with an output larger than 1x1",
                         sdlf_model_name(model));
    if (is_map(model, *layer)) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_SHAPE, "layer '%s' has an output of %s, expected (C,H,W) larger than 1x1",
        sdlf_model_layer(model, *layer)->name,
        sdlf_shape_print(sdlf_shape_without(sdlf_model_node_shape(model, (sdlf_node){.layer = *layer}), 0)).text);
}

static bool thaw(sdlf_model *model, int layer)
{
    bool any = false;
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (parameter->layer == layer) any = sdlf_model_freeze(model, parameter->name, false) == SDLF_OK || any;
    }
    return any;
}

/* Gradients are computed only if something is trained: this keeps the parameters of the layer, or the nearest ones
 * before it, and freezes the rest. */
static sdlf_status freeze_rest(sdlf_model *model, int layer)
{
    for (int i = 0; i < sdlf_model_parameter_count(model); i++)
        sdlf_model_freeze(model, sdlf_model_parameter(model, i)->name, true); /* an error if it is never trained */
    bool *before = memory_allocate(((size_t)layer + 1) * sizeof *before), found = false;
    before[layer] = true;
    for (int i = layer; i >= 0 && !found; i--) {
        if (!before[i]) continue;
        found = thaw(model, i);
        for (int k = 0; k < sdlf_model_layer_input_count(model, i); k++)
            before[sdlf_model_layer_input(model, i, k).layer] = true;
    }
    free(before);
    return found ? SDLF_OK
                 : sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer '%s' has no parameters of its own or before it",
                             sdlf_model_layer(model, layer)->name);
}

static sdlf_status make_plan(grad_cam *cam, sdlf_model *model, sdlf_calculator *calculator, sdlf_node scores)
{
    sdlf_binding binding;
    sdlf_model_clear_outputs(model);
    sdlf_output(model, "score", scores);
    sdlf_status status = sdlf_plan_create(&cam->plan, model,
                                          &(sdlf_plan_options){.batch = 1,
                                                               .mode = SDLF_TRAIN,
                                                               .forward = calculator,
                                                               .loss = SDLF_LOSS_MAE,
                                                               .keep_activations = true,
                                                               .gradients_only = true,
                                                               .eval_mode = true});
    if (status == SDLF_OK) status = sdlf_plan_input(cam->plan, cam->input, &binding);
    if (status != SDLF_OK) return status;
    cam->values = sdlf_tensor_count(&binding.tensor);
    if (binding.tensor.dtype != SDLF_FLOAT32)
        return sdlf_fail(SDLF_ERROR_SHAPE, "input '%s' is %s, expected one picture of float32", cam->input,
                         sdlf_dtype_name(binding.tensor.dtype));
    status = sdlf_plan_output(cam->plan, "score", &binding);
    if (status != SDLF_OK) return status;
    int64_t classes = sdlf_tensor_count(&binding.tensor);
    if (binding.tensor.dtype != SDLF_FLOAT32 || classes < 1 || classes > 1 << 24)
        return sdlf_fail(SDLF_ERROR_SHAPE, "the network outputs %s, expected scores of classes",
                         sdlf_shape_print(binding.tensor.shape).text);
    cam->class_count = (int)classes;
    cam->scores = memory_allocate((size_t)classes * sizeof *cam->scores);
    cam->targets = memory_allocate((size_t)classes * sizeof *cam->targets);
    return SDLF_OK;
}

sdlf_status grad_cam_open(grad_cam *cam, sdlf_model *model, sdlf_calculator *calculator, const char *name)
{
    *cam = (grad_cam){.class_count = 0};
    int layer, trained;
    if (sdlf_model_input_count(model) != 1)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "network '%s' has %d inputs, expected one for a picture",
                         sdlf_model_name(model), sdlf_model_input_count(model));
    for (int i = 0; i < sdlf_model_layer_count(model); i++)
        if (sdlf_model_layer(model, i)->type->is_loss)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "network '%s' has a loss of its own, '%s'", sdlf_model_name(model),
                             sdlf_model_layer(model, i)->name);
    sdlf_node scores = score_node(model);
    sdlf_status status = find_layer(model, scores, name, &layer, &trained);
    if (status == SDLF_OK) status = freeze_rest(model, trained);
    if (status != SDLF_OK) return status;
    sdlf_shape shape = sdlf_model_node_shape(model, (sdlf_node){.layer = layer});
    cam->input = sdlf_model_layer(model, sdlf_model_input(model, 0).layer)->name;
    cam->layer = sdlf_model_layer(model, layer)->name;
    cam->channels = shape.dim[1];
    cam->rows = shape.dim[2];
    cam->columns = shape.dim[3];
    return make_plan(cam, model, calculator, scores);
}

void grad_cam_release(grad_cam *cam)
{
    sdlf_plan_free(cam->plan);
    free(cam->scores);
    free(cam->targets);
    *cam = (grad_cam){.class_count = 0};
}

/* An element of a tensor (1,C,H,W), by its strides. */
static float element(const sdlf_tensor *t, int64_t k, int64_t y, int64_t x)
{
    return ((const float *)t->data)[k * t->stride[1] + y * t->stride[2] + x * t->stride[3]];
}

static void weigh(const grad_cam *cam, const sdlf_tensor *a, const sdlf_tensor *gradient, float *map)
{
    int64_t size = cam->rows * cam->columns;
    for (int64_t i = 0; i < size; i++) map[i] = 0;
    for (int64_t k = 0; k < cam->channels; k++) {
        double sum = 0;
        for (int64_t i = 0; i < size; i++) sum += (double)element(gradient, k, i / cam->columns, i % cam->columns);
        float weight = (float)(sum * cam->class_count / (double)size); /* the loss is a mean over the classes */
        for (int64_t i = 0; i < size; i++) map[i] += weight * element(a, k, i / cam->columns, i % cam->columns);
    }
    for (int64_t i = 0; i < size; i++) map[i] = map[i] > 0 ? map[i] : 0;
}

static sdlf_status run(grad_cam *cam)
{
    int64_t bytes = cam->class_count * (int64_t)sizeof *cam->targets;
    sdlf_status status = sdlf_plan_write(cam->plan, "labels", cam->targets, SDLF_FLOAT32, bytes);
    if (status == SDLF_OK) status = sdlf_plan_forward(cam->plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(cam->plan);
    return status == SDLF_OK ? sdlf_plan_read(cam->plan, "score", cam->scores, SDLF_FLOAT32, bytes) : status;
}

sdlf_status grad_cam_make(grad_cam *cam, const float *sample, int class, float *map)
{
    sdlf_binding a, gradient;
    sdlf_status status =
        sdlf_plan_write(cam->plan, cam->input, sample, SDLF_FLOAT32, cam->values * (int64_t)sizeof *sample);
    if (status == SDLF_OK) status = run(cam);
    if (status != SDLF_OK) return status;
    memcpy(cam->targets, cam->scores, (size_t)cam->class_count * sizeof *cam->targets);
    cam->targets[class] -= 1 + fabsf(cam->scores[class]);
    status = run(cam);
    if (status == SDLF_OK) status = sdlf_plan_backward(cam->plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(cam->plan);
    if (status == SDLF_OK) status = sdlf_plan_activation(cam->plan, cam->layer, false, &a);
    if (status == SDLF_OK) status = sdlf_plan_activation(cam->plan, cam->layer, true, &gradient);
    if (status == SDLF_OK) weigh(cam, &a.tensor, &gradient.tensor, map);
    return status;
}
