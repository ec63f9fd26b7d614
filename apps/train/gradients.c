/* SPDX-License-Identifier: MIT */
/* See gradients.h. */
#include "apps/train/gradients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

struct training_gradients {
    sdlf_model *model;
    sdlf_plan *plan;
    float *values; /* of the largest gradient */
};

static const char *input_name(const sdlf_model *model, int index)
{
    return sdlf_model_layer(model, sdlf_model_input(model, index).layer)->name;
}

/* Finds the inputs of the samples and of the labels. */
static sdlf_status find_inputs(const sdlf_model *model, const char **samples, const char **labels)
{
    int inputs = sdlf_model_input_count(model), losses = 0;
    *samples = input_name(model, 0);
    *labels = "labels"; /* of the loss that the plan adds */
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        if (!sdlf_model_layer(model, i)->type->is_loss) continue;
        *labels = sdlf_model_layer(model, sdlf_model_layer_input(model, i, 1).layer)->name;
        losses++;
    }
    if (inputs != 1 + (losses > 0) || losses > 1)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "network '%s' has %d inputs and %d losses, expected samples, labels and one loss",
                         sdlf_model_name(model), inputs, losses);
    for (int i = 0; i < inputs; i++)
        if (strcmp(input_name(model, i), *labels) != 0) *samples = input_name(model, i);
    return SDLF_OK;
}

/* Writes the first samples of the data, without augmentation. */
static sdlf_status write_batch(sdlf_plan *plan, const sdlf_model *model, const sdlf_dataset *train, int64_t count)
{
    const char *samples, *labels;
    sdlf_loader *loader = NULL;
    sdlf_batch batch = {.count = 0};
    sdlf_status status = find_inputs(model, &samples, &labels);
    if (status == SDLF_OK)
        status = sdlf_loader_create(&loader, train, &(sdlf_loader_options){.batch = count, .no_prefetch = true});
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    if (status == SDLF_OK)
        status = sdlf_plan_write_converted(plan, samples, batch.samples.data, batch.samples.dtype,
                                           sdlf_tensor_count(&batch.samples));
    if (status == SDLF_OK)
        status = sdlf_plan_write_converted(plan, labels, batch.labels.data, batch.labels.dtype,
                                           sdlf_tensor_count(&batch.labels));
    sdlf_loader_free(loader);
    return status;
}

sdlf_status training_gradients_create(training_gradients **gradients, sdlf_model *model, const sdlf_dataset *train,
                                      const sdlf_trainer_options *options, sdlf_calculator *calculator)
{
    training_gradients *made = memory_allocate(sizeof *made);
    int64_t samples = train->samples.shape.dim[0], count = options->batch < samples ? options->batch : samples;
    int64_t largest = 0;
    *gradients = NULL;
    made->model = model;
    sdlf_status status = sdlf_plan_create(&made->plan, model,
                                          &(sdlf_plan_options){.batch = count,
                                                               .mode = SDLF_TRAIN,
                                                               .forward = calculator,
                                                               .loss = options->loss,
                                                               .label_smoothing = options->label_smoothing,
                                                               .gradients_only = true,
                                                               .eval_mode = true});
    if (status == SDLF_OK) status = write_batch(made->plan, model, train, count);
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        int64_t values = sdlf_tensor_count(&sdlf_model_parameter(model, i)->value);
        if (values > largest) largest = values;
    }
    made->values = memory_allocate((size_t)largest * sizeof *made->values);
    if (status == SDLF_OK)
        *gradients = made;
    else
        training_gradients_free(made);
    return status;
}

void training_gradients_free(training_gradients *gradients)
{
    if (!gradients) return;
    sdlf_plan_free(gradients->plan);
    free(gradients->values);
    free(gradients);
}

static sdlf_status read_gradient(const training_gradients *gradients, const sdlf_binding *binding)
{
    const sdlf_tensor *t = &binding->tensor;
    int64_t bytes = sdlf_tensor_bytes(t);
    if (t->dtype != SDLF_FLOAT32)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "a gradient of %s, expected float32", sdlf_dtype_name(t->dtype));
    if (!sdlf_calculator_is_on_host(binding->calculator))
        return binding->calculator->type->download(binding->calculator, gradients->values, t->data, bytes);
    memcpy(gradients->values, t->data, (size_t)bytes);
    return SDLF_OK;
}

sdlf_status training_gradients_write(training_gradients *gradients, event_file *file, int64_t step)
{
    sdlf_status status = sdlf_plan_load_parameters(gradients->plan);
    if (status == SDLF_OK) status = sdlf_plan_forward(gradients->plan);
    if (status == SDLF_OK) status = sdlf_plan_backward(gradients->plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(gradients->plan);
    for (int i = 0; i < sdlf_model_parameter_count(gradients->model) && status == SDLF_OK; i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(gradients->model, i);
        sdlf_binding binding;
        /* statistics and frozen parameters have none */
        if (sdlf_plan_gradient(gradients->plan, parameter->name, &binding) != SDLF_OK) continue;
        status = read_gradient(gradients, &binding);
        char *tag = memory_print("gradients/%s", parameter->name);
        if (status == SDLF_OK) event_histogram(file, tag, step, gradients->values, sdlf_tensor_count(&binding.tensor));
        free(tag);
    }
    return status;
}
