/* SPDX-License-Identifier: MIT */
/* The moving average of the weights, and the weights themselves; and the start of Lookahead's slow weights. During
 * training, the values of parameters are the weights, and the average is a state; between runs, and for tests and
 * files, it is the other way round. */
#include <string.h>

#include "framework/model_internal.h"
#include "framework/trainer_internal.h"

/* The index of the state that is the average, after the optimizer's. */
static int state_of(const sdlf_trainer *trainer)
{
    const sdlf_optimizer *optimizer = &trainer->options.optimizer;
    return optimizer->type->state_count(optimizer);
}

static void exchange(float *a, float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static void swap_all(sdlf_trainer *trainer)
{
    sdlf_model *model = trainer->model;
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        sdlf_tensor *average = &parameter->state[state_of(trainer)];
        if (parameter->spec.trainable && sdlf_tensor_present(average))
            exchange(parameter->value.data, average->data, sdlf_tensor_count(average));
    }
    model_note_change(model);
}

sdlf_status sdlf_trainer_prepare_average(sdlf_trainer *trainer)
{
    sdlf_model *model = trainer->model;
    int first = state_of(trainer), end = first + (trainer->options.ema > 0) + (trainer->options.lookahead > 0);
    trainer->at_rest = true;
    if (trainer->options.resume || end == first) return SDLF_OK;
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        for (int state = first; parameter->spec.trainable && state < end; state++)
            if (sdlf_tensor_present(&parameter->state[state]))
                memcpy(parameter->state[state].data, parameter->value.data,
                       (size_t)sdlf_tensor_bytes(&parameter->value));
    }
    return sdlf_plan_load_parameters(trainer->full);
}

sdlf_status sdlf_trainer_take_weights(sdlf_trainer *trainer)
{
    if (trainer->options.ema <= 0 || !trainer->at_rest) return SDLF_OK;
    swap_all(trainer);
    trainer->at_rest = false;
    return sdlf_plan_load_parameters(trainer->full);
}

sdlf_status sdlf_trainer_rest(sdlf_trainer *trainer)
{
    sdlf_status status = sdlf_plan_store_parameters(trainer->full);
    if (status == SDLF_OK) status = sdlf_plan_loss_scale(trainer->full, &trainer->scale);
    if (status != SDLF_OK || trainer->options.ema <= 0 || trainer->at_rest) return status;
    swap_all(trainer);
    trainer->at_rest = true;
    return sdlf_plan_load_parameters(trainer->full); /* whose copies on devices are used by tests */
}
