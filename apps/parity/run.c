/* SPDX-License-Identifier: MIT */
/* One network on two calculators, tensor by tensor. */
#include "apps/parity/run.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/samples.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

const char *const parity_kind_names[] = {"output", "gradient", "parameter gradient", "statistic"};

typedef struct comparing {
    const parity_options *options;
    sdlf_plan *plan[2];
    parity_result *result;
    int capacity;
} comparing;

double parity_tolerance(sdlf_dtype dtype, sdlf_math a, sdlf_math b)
{
    static const double by_math[SDLF_MATH_COUNT] = {
        [SDLF_MATH_FP32] = 2e-5, [SDLF_MATH_TF32] = 1e-2, [SDLF_MATH_FP16] = 1e-2, [SDLF_MATH_BF16] = 8e-2};
    if (dtype == SDLF_FLOAT64) return 1e-10;
    return by_math[a] > by_math[b] ? by_math[a] : by_math[b];
}

static bool can_continue(sdlf_status status)
{
    return status == SDLF_OK && interrupt_signal() == 0;
}

/* ---- tensors ---- */

/* Copies the contents of a binding; the caller frees the copy. */
static sdlf_status fetch(const sdlf_binding *binding, void **values)
{
    int64_t bytes = sdlf_tensor_bytes(&binding->tensor);
    *values = memory_allocate((size_t)bytes + 1);
    if (binding->calculator) {
        return binding->calculator->type->download(binding->calculator, *values, binding->tensor.data, bytes);
    }
    memcpy(*values, binding->tensor.data, (size_t)bytes);
    return SDLF_OK;
}

static sdlf_status store(const sdlf_binding *binding, const void *values)
{
    int64_t bytes = sdlf_tensor_bytes(&binding->tensor);
    if (binding->calculator) {
        return binding->calculator->type->upload(binding->calculator, binding->tensor.data, values, bytes);
    }
    memcpy(binding->tensor.data, values, (size_t)bytes);
    return SDLF_OK;
}

static void add_entry(comparing *c, parity_entry entry)
{
    parity_result *r = c->result;
    if (r->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        r->entry = memory_resize(r->entry, (size_t)c->capacity * sizeof *r->entry);
    }
    entry.within = entry.error.largest <= c->options->tolerance;
    if (!entry.within && r->first < 0) r->first = r->count;
    r->entry[r->count++] = entry;
}

/* Compares the contents of two bindings; `entry` describes them, and its error's scale is the least scale. */
static sdlf_status compare(comparing *c, const sdlf_binding *pair, parity_entry entry)
{
    void *values[2] = {NULL};
    const sdlf_tensor *tensor = &pair[0].tensor;
    sdlf_status status = fetch(&pair[0], &values[0]);
    if (status == SDLF_OK) status = fetch(&pair[1], &values[1]);
    if (status == SDLF_OK) {
        entry.shape = tensor->shape;
        entry.error = parity_compare(tensor->dtype, values[0], values[1], sdlf_tensor_count(tensor), entry.error.scale);
        add_entry(c, entry);
    }
    free(values[0]);
    free(values[1]);
    return status;
}

/* ---- layers ---- */

/* Layer `index` of the model, or, at its end, the loss that training adds. */
static const char *layer_name(const comparing *c, int index)
{
    const sdlf_model *model = c->options->model[0];
    return index < sdlf_model_layer_count(model) ? sdlf_model_layer(model, index)->name : "loss";
}

static const sdlf_layer_class *layer_class(const comparing *c, int index)
{
    const sdlf_model *model = c->options->model[0];
    if (index < sdlf_model_layer_count(model)) return sdlf_model_layer(model, index)->type;
    return sdlf_layer_class_find("softmax_cross_entropy");
}

/* Finds the layer's output, or its gradient, on both sides. False: there is none, or it is not floating-point. */
static bool find_pair(const comparing *c, int index, bool gradient, sdlf_binding *pair)
{
    if (layer_class(c, index)->maximum_inputs == 0) return false; /* an input */
    if (gradient && layer_class(c, index)->is_loss) return false; /* it is 1 */
    for (int side = 0; side < 2; side++) {
        if (sdlf_plan_activation(c->plan[side], layer_name(c, index), gradient, &pair[side]) != SDLF_OK) return false;
    }
    return sdlf_dtype_is_float(pair[0].tensor.dtype);
}

/* A loss near zero is the difference of larger numbers: its scale is at least 1. */
static sdlf_status compare_outputs(comparing *c)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i <= sdlf_model_layer_count(c->options->model[0]) && can_continue(status); i++) {
        sdlf_binding pair[2];
        const sdlf_layer_class *type = layer_class(c, i);
        if (!find_pair(c, i, false, pair)) continue;
        status = compare(c, pair,
                         (parity_entry){.kind = PARITY_OUTPUT,
                                        .layer = layer_name(c, i),
                                        .type = type->name,
                                        .error.scale = type->is_loss ? 1 : 0});
    }
    return status;
}

/* Side b's activations become those of side a. */
static sdlf_status share_activations(comparing *c)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i <= sdlf_model_layer_count(c->options->model[0]) && status == SDLF_OK; i++) {
        sdlf_binding pair[2];
        void *values = NULL;
        if (!find_pair(c, i, false, pair)) continue;
        status = fetch(&pair[0], &values);
        if (status == SDLF_OK) status = store(&pair[1], values);
        free(values);
    }
    return status;
}

/* Compares the parameters of layer `index`: gradients, or statistics that the forward pass stores. */
static sdlf_status compare_parameters(comparing *c, int index, parity_kind kind, double least_scale)
{
    sdlf_model *const *model = c->options->model;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_parameter_count(model[0]) && status == SDLF_OK; i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model[0], i);
        bool gradient = kind == PARITY_PARAMETER, found = true;
        if (parameter->layer != index || parameter->spec.trainable != gradient) continue;
        sdlf_binding pair[2];
        for (int side = 0; side < 2 && gradient; side++)
            found = found && sdlf_plan_gradient(c->plan[side], parameter->name, &pair[side]) == SDLF_OK;
        for (int side = 0; side < 2 && !gradient; side++)
            pair[side] = (sdlf_binding){.tensor = sdlf_model_parameter(model[side], i)->value};
        if (!found) continue; /* no gradient reaches it */
        status = compare(c, pair,
                         (parity_entry){.kind = kind,
                                        .layer = layer_name(c, index),
                                        .type = layer_class(c, index)->name,
                                        .parameter = parameter->name,
                                        .error.scale = least_scale});
    }
    return status;
}

/* A parameter's gradient is a sum over its layer's output gradient, and cannot be more exact: that of a convolution's
 * bias before batch normalisation is only rounding. So its scale is at least the output gradient's. */
static sdlf_status compare_gradients(comparing *c)
{
    sdlf_status status = SDLF_OK;
    for (int i = sdlf_model_layer_count(c->options->model[0]); i >= 0 && can_continue(status); i--) {
        sdlf_binding pair[2];
        double scale = 0;
        if (find_pair(c, i, true, pair)) {
            status = compare(
                c, pair,
                (parity_entry){.kind = PARITY_GRADIENT, .layer = layer_name(c, i), .type = layer_class(c, i)->name});
            if (status == SDLF_OK) scale = c->result->entry[c->result->count - 1].error.scale;
        }
        if (status == SDLF_OK) status = compare_parameters(c, i, PARITY_PARAMETER, scale);
    }
    return status;
}

static sdlf_status compare_statistics(comparing *c)
{
    sdlf_status status = SDLF_OK;
    for (int side = 0; side < 2 && status == SDLF_OK; side++) status = sdlf_plan_store_parameters(c->plan[side]);
    for (int i = 0; i < sdlf_model_layer_count(c->options->model[0]) && status == SDLF_OK; i++)
        status = compare_parameters(c, i, PARITY_STATISTIC, 0);
    return status;
}

/* ---- the whole run ---- */

static sdlf_status run_both(comparing *c, bool backward)
{
    sdlf_status status = SDLF_OK;
    for (int side = 0; side < 2 && can_continue(status); side++) {
        status = backward ? sdlf_plan_backward(c->plan[side]) : sdlf_plan_forward(c->plan[side]);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(c->plan[side]);
    }
    return status;
}

static sdlf_status compare_all(comparing *c)
{
    const parity_options *o = c->options;
    sdlf_status status = run_both(c, false);
    interrupt_waits(); /* from here on there is something to show */
    if (status == SDLF_OK) status = compare_outputs(c);
    if (can_continue(status) && o->mode == SDLF_TRAIN) {
        if (!o->own_activations) status = share_activations(c);
        if (can_continue(status)) status = run_both(c, true);
        if (can_continue(status)) status = compare_gradients(c);
        if (can_continue(status)) status = compare_statistics(c);
    }
    c->result->all = can_continue(status);
    return status;
}

sdlf_status parity_run(parity_result *result, const parity_options *o)
{
    *result = (parity_result){.first = -1};
    comparing c = {.options = o, .result = result};
    sdlf_status status = SDLF_OK;
    for (int side = 0; side < 2 && status == SDLF_OK; side++) {
        sdlf_plan_options options = {
            .batch = o->batch,
            .mode = o->mode,
            .dtype = o->dtype,
            .forward = o->calculator[side],
            .keep_activations = true,
            .gradients_only = o->mode == SDLF_TRAIN,
            .seed = o->seed,
        };
        status = sdlf_plan_create(&c.plan[side], o->model[side], &options);
        if (status == SDLF_OK) {
            status = o->data ? samples_write(c.plan[side], o->model[side], o->data, o->batch, o->mode)
                             : samples_write_random(c.plan[side], o->model[side], o->mode, o->seed);
        }
    }
    if (status == SDLF_OK) status = compare_all(&c);
    sdlf_plan_free(c.plan[0]);
    sdlf_plan_free(c.plan[1]);
    return status;
}

void parity_release(parity_result *result)
{
    free(result->entry);
    *result = (parity_result){.first = -1};
}
