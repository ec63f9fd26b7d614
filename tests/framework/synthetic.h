/* SPDX-License-Identifier: MIT */
/* A tiny data set and network for tests that train. */
#ifndef SDLF_TESTS_SYNTHETIC_H
#define SDLF_TESTS_SYNTHETIC_H

#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

enum { SYNTHETIC_CLASSES = 3, SYNTHETIC_SIDE = 8 };

/* `count` images of 8x8 in three classes: a bright horizontal bar, a vertical one, a diagonal one, with noise. The
 * caller releases it with synthetic_release. */
static inline sdlf_dataset synthetic_dataset(int64_t count, uint64_t seed)
{
    static char name[] = "synthetic";
    sdlf_dataset dataset = {.name = name, .class_count = SYNTHETIC_CLASSES, .mean = 60, .scale = 1.0f / 64};
    CHECK_OK(
        sdlf_tensor_create(&dataset.samples, NULL, SDLF_UINT8, sdlf_shape(count, 1, SYNTHETIC_SIDE, SYNTHETIC_SIDE)));
    CHECK_OK(sdlf_tensor_create(&dataset.labels, NULL, SDLF_INT32, sdlf_shape(count)));
    uint8_t *pixel = dataset.samples.data;
    int32_t *label = dataset.labels.data;
    for (int64_t n = 0; n < count; n++) {
        sdlf_philox draw = sdlf_philox4x32(seed, (uint64_t)n, SDLF_STREAM_DATASET, 0);
        label[n] = (int32_t)(draw.word[0] % SYNTHETIC_CLASSES);
        int at = (int)(draw.word[1] % SYNTHETIC_SIDE);
        for (int h = 0; h < SYNTHETIC_SIDE; h++)
            for (int w = 0; w < SYNTHETIC_SIDE; w++) {
                uint32_t noise =
                    sdlf_philox4x32(seed, (uint64_t)n, SDLF_STREAM_DATASET, 1 + (uint32_t)(h * 8 + w)).word[0];
                bool bright = label[n] == 0 ? h == at : label[n] == 1 ? w == at : (h + w) % SYNTHETIC_SIDE == at;
                *pixel++ = (uint8_t)(noise % 90 + (bright ? 120 : 0));
            }
    }
    return dataset;
}

static inline void synthetic_release(sdlf_dataset *dataset)
{
    sdlf_tensor_release(&dataset->samples, NULL);
    sdlf_tensor_release(&dataset->labels, NULL);
}

/* Convolution, batch normalisation, ReLU, pooling, dropout, a fully connected layer and softmax. */
static inline sdlf_model *synthetic_model(void)
{
    sdlf_model *model = sdlf_model_create("synthetic");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 6, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_batch_norm2d(model, x, NULL);
    x = sdlf_relu(model, x);
    x = sdlf_max_pool2d(model, x, &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_dropout(model, x, &(sdlf_dropout_options){.probability = 0.1f});
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

/* The fastest available calculator. */
static inline const char *synthetic_calculator(void)
{
    for (int index = 0; sdlf_calculator_class_at(index) != NULL; index++)
        if (strcmp(sdlf_calculator_class_at(index)->name, "cpu") == 0) return "cpu";
    return "reference";
}

#endif
