/* SPDX-License-Identifier: MIT */
/* TrivialAugment and RandAugment in the host's memory. See changed_pictures.h and auto_augment.h. */
#include "framework/operations/changed_pictures.h"

#include <string.h>

#include "framework/operations/augmented.h"
#include "framework/operations/auto_augment.h"

static void move(uint8_t *to, const sdlf_augment_picture *p, const sdlf_augment_step *step)
{
    const int64_t area = p->height * p->width;
    for (int64_t h = 0; h < p->height; h++)
        for (int64_t w = 0; w < p->width; w++) {
            int64_t from = sdlf_augment_source(step, h, w, p->height, p->width);
            for (int64_t c = 0; c < p->channels; c++)
                to[c * area + h * p->width + w] = from >= 0 ? p->pixels[c * area + from] : 0;
        }
}

static void blend(uint8_t *to, const sdlf_augment_picture *p, sdlf_augment_step *step)
{
    const int64_t area = p->height * p->width;
    uint64_t sum = 0;
    for (int64_t i = 0; i < area && step->operation == SDLF_AUGMENT_CONTRAST; i++)
        sum += sdlf_augment_byte(sdlf_augment_grey(p, i));
    step->mean = sdlf_augment_mean(sum, area);
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t i = 0; i < area; i++)
            to[c * area + i] = sdlf_augment_blend(step, p, c, i / p->width, i % p->width);
}

static void look_up(uint8_t *to, const sdlf_augment_picture *p, const sdlf_augment_step *step)
{
    const int64_t area = p->height * p->width;
    for (int64_t c = 0; c < p->channels; c++) {
        const uint8_t *from = p->pixels + c * area;
        uint8_t table[256];
        if (step->operation <= SDLF_AUGMENT_SOLARIZE) {
            for (int v = 0; v < 256; v++) table[v] = sdlf_augment_value(step, v);
        } else {
            uint32_t count[256] = {0};
            for (int64_t i = 0; i < area; i++) count[from[i]]++;
            sdlf_augment_stretch(step, table, count, area);
        }
        for (int64_t i = 0; i < area; i++) to[c * area + i] = table[from[i]];
    }
}

static void apply(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, sdlf_augment_step step)
{
    if (step.operation == SDLF_AUGMENT_IDENTITY) return;
    memcpy(scratch, picture, (size_t)sdlf_shape_count(sample));
    const sdlf_augment_picture from = {scratch, sample.dim[0], sample.dim[1], sample.dim[2]};
    if (step.operation <= SDLF_AUGMENT_ROTATE)
        move(picture, &from, &step);
    else if (step.operation <= SDLF_AUGMENT_SHARPNESS)
        blend(picture, &from, &step);
    else
        look_up(picture, &from, &step);
}

void sdlf_augment_apply(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, int operation, float m, bool negative,
                        bool wide)
{
    apply(picture, scratch, sample, sdlf_augment_step_make(operation, m, negative, wide, sample.dim[1], sample.dim[2]));
}

void sdlf_auto_augment_picture(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, const sdlf_auto_augment *policy,
                               uint64_t seed, int64_t image, int64_t epoch)
{
    for (int i = 0; i < sdlf_auto_augment_steps(policy); i++)
        apply(picture, scratch, sample,
              sdlf_auto_augment_draw(policy, seed, image, epoch, i, sample.dim[1], sample.dim[2]));
}

int64_t sdlf_changed_workspace(const sdlf_calculator *calculator, const sdlf_operation *gather)
{
    (void)calculator;
    return sdlf_auto_augment_wanted(&gather->gather.automatic) ? sdlf_changed_layout(gather).bytes : 0;
}

sdlf_operation sdlf_changed_make(const sdlf_operation *gather)
{
    const sdlf_changed_pictures at = sdlf_changed_layout(gather);
    const sdlf_shape sample = sdlf_shape_without(gather->in[0].shape, 0);
    const int32_t *index = gather->in[1].data, *number = gather->in[3].data;
    const int64_t size = sdlf_shape_count(sample), epoch = *(const int64_t *)gather->in[2].data;
    char *room = gather->workspace.data;
    int32_t *places = (int32_t *)(void *)(room + at.places), *numbers = (int32_t *)(void *)(room + at.numbers);
    for (int64_t n = 0; n < gather->in[1].shape.dim[0]; n++) {
        uint8_t *picture = (uint8_t *)room + at.pictures + n * size;
        places[n] = (int32_t)n;
        numbers[n] = number != NULL ? number[index[n]] : index[n];
        memcpy(picture, (const uint8_t *)gather->in[0].data + index[n] * size, (size_t)size);
        sdlf_auto_augment_picture(picture, (uint8_t *)room + at.scratch + n * size, sample, &gather->gather.automatic,
                                  gather->gather.augment.seed, numbers[n], epoch);
    }
    return sdlf_changed_rest(gather);
}
