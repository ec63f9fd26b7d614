/* SPDX-License-Identifier: MIT */
/* Shared by the trainer's tests of weight averages and parameter groups: a plain network and watched training of it. */
#ifndef SDLF_TESTS_TRAINER_PLAIN_H
#define SDLF_TESTS_TRAINER_PLAIN_H

#include "framework/trainer_history.h"

enum { SAMPLES = 24, HIDDEN = 5 };

/* Has no layer that depends on the whole batch, and no random one. */
static sdlf_model *plain_model(void)
{
    sdlf_model *model = sdlf_model_create("plain");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_relu(model, sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "h", .units = HIDDEN}));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static sdlf_trainer_options options_of(history *seen, const char *calculator)
{
    return (sdlf_trainer_options){.batch = SAMPLES,
                                  .epochs = 1,
                                  .optimizer = sdlf_sgd(.momentum = 0.9),
                                  .schedule = sdlf_constant(.peak = 0.1f),
                                  .forward = calculator,
                                  .callback = watch,
                                  .user = seen};
}

static const float *weights_of(sdlf_model *model, const char *name)
{
    return sdlf_model_find_parameter(model, name)->value.data;
}

#endif
