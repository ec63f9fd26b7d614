/* SPDX-License-Identifier: MIT */
/* A small, partly trained network for tests of weights files, and a comparison of two of them. */
#ifndef SDLF_TESTS_FRAMEWORK_FORMATS_WEIGHTS_NETWORK_H
#define SDLF_TESTS_FRAMEWORK_FORMATS_WEIGHTS_NETWORK_H

#include "testing.h"

#include <string.h>

#include <sdlf/formats.h>
#include <sdlf/layers.h>

/* conv2d.weight (2,1,3,3), conv2d.bias (2), batch_norm2d.* (2) of which two are not trainable, fc.weight (3,72),
 * fc.bias (3) */
static inline sdlf_model *make_network(const char *name, int units)
{
    sdlf_model *model = sdlf_model_create(name);
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 2, .kernel = {3, 3}});
    x = sdlf_batch_norm2d(model, x, NULL);
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "fc", .units = units});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static inline sdlf_model *make_built(uint64_t seed)
{
    sdlf_model *model = make_network("small", 3);
    CHECK_OK(sdlf_model_build(model, seed));
    return model;
}

/* A partly trained model. */
static inline sdlf_model *make_trained(uint64_t seed)
{
    sdlf_model *model = make_built(seed);
    CHECK_OK(sdlf_model_require_states(model, 2));
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        for (int s = 0; s < 2; s++)
            for (int64_t e = 0; sdlf_tensor_present(&parameter->state[s]) && e < sdlf_tensor_count(&parameter->value);
                 e++)
                ((float *)parameter->state[s].data)[e] =
                    (float)((i + 1) * 1000 + s * 100) + (float)e * 0.1f + (float)seed;
    }
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 0.1307f, .scale = 1 / 0.3081f, .known = true};
    sdlf_training_state *state = sdlf_model_training_state(model);
    *state = (sdlf_training_state){.present = true,
                                   .step = 123456789012,
                                   .epoch = 3,
                                   .epoch_step = 77,
                                   .loss_sum = 0.1 + 0.2,
                                   .correct = 4711,
                                   .samples = 4928,
                                   .seed = UINT64_MAX - 1,
                                   .batch = 64,
                                   .epochs = 5,
                                   .optimizer = "adam",
                                   .data = "digits (procedural, seed 1)",
                                   .settings = "{\"beta1\": 0.9}"};
    return model;
}

/* True if values, optimizer states, normalisation and training state of both are bitwise equal. */
static inline bool same_tensor(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (!sdlf_tensor_present(a) || !sdlf_tensor_present(b)) return sdlf_tensor_present(a) == sdlf_tensor_present(b);
    return sdlf_shape_equal(a->shape, b->shape) && memcmp(a->data, b->data, (size_t)sdlf_tensor_bytes(a)) == 0;
}

static inline bool same_training(const sdlf_training_state *a, const sdlf_training_state *b)
{
    return a->present == b->present && a->step == b->step && a->epoch == b->epoch && a->epoch_step == b->epoch_step &&
           memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0 && a->correct == b->correct &&
           a->samples == b->samples && a->seed == b->seed && a->batch == b->batch && a->epochs == b->epochs &&
           strcmp(a->optimizer, b->optimizer) == 0 && strcmp(a->data, b->data) == 0 &&
           strcmp(a->settings, b->settings) == 0;
}

static inline bool same(sdlf_model *a, sdlf_model *b)
{
    bool equal = sdlf_model_parameter_count(a) == sdlf_model_parameter_count(b) &&
                 same_training(sdlf_model_training_state(a), sdlf_model_training_state(b));
    const sdlf_normalization *left = sdlf_model_normalization(a), *right = sdlf_model_normalization(b);
    equal = equal && left->known == right->known && left->mean == right->mean && left->scale == right->scale;
    for (int i = 0; i < sdlf_model_parameter_count(a) && equal; i++) {
        const sdlf_parameter *p = sdlf_model_parameter(a, i), *q = sdlf_model_parameter(b, i);
        equal = strcmp(p->name, q->name) == 0 && same_tensor(&p->value, &q->value);
        for (int s = 0; s < 3; s++) equal = equal && same_tensor(&p->state[s], &q->state[s]);
    }
    return equal;
}

#endif
