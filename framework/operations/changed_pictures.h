/* SPDX-License-Identifier: MIT */
/* gather_batch of pictures that TrivialAugment or RandAugment changes first: these are made in the workspace, and the
 * rest is a gather_batch from there. */
#ifndef SDLF_OPERATIONS_CHANGED_PICTURES_H
#define SDLF_OPERATIONS_CHANGED_PICTURES_H

#include <sdlf/operation.h>

/* Where in the workspace what lies, in bytes; N pictures, and as many for steps in between. */
typedef struct sdlf_changed_pictures {
    int64_t pictures, scratch, places, numbers, bytes;
} sdlf_changed_pictures;

static inline sdlf_changed_pictures sdlf_changed_layout(const sdlf_operation *gather)
{
    const int64_t rows = gather->out[0].shape.dim[0], row_bytes = (rows * (int64_t)sizeof(int32_t) + 63) / 64 * 64;
    const int64_t bytes = (sdlf_tensor_count(&gather->out[0]) + 63) / 64 * 64;
    const sdlf_changed_pictures at = {0, bytes, 2 * bytes, 2 * bytes + row_bytes, 2 * bytes + 2 * row_bytes};
    return at;
}

/* What is left to do once the workspace holds the pictures, their places there (0, 1, ...) and their images' numbers. */
static inline sdlf_operation sdlf_changed_rest(const sdlf_operation *gather)
{
    const sdlf_changed_pictures at = sdlf_changed_layout(gather);
    const sdlf_auto_augment none = {.trivial = false};
    const sdlf_tensor absent = {.dtype = SDLF_NONE};
    char *room = (char *)gather->workspace.data;
    sdlf_operation rest = *gather;
    rest.in[0] = sdlf_tensor_view(SDLF_UINT8, gather->out[0].shape, room + at.pictures);
    rest.in[1] = sdlf_tensor_view(SDLF_INT32, gather->in[1].shape, room + at.places);
    rest.in[3] = sdlf_tensor_view(SDLF_INT32, gather->in[1].shape, room + at.numbers);
    rest.gather.automatic = none;
    rest.workspace = absent;
    return rest;
}

/* Of a slot: bytes of the workspace; none where nothing is changed. */
int64_t sdlf_changed_workspace(const sdlf_calculator *calculator, const sdlf_operation *gather);

/* In the host's memory: make the pictures; returns what is left to do. */
sdlf_operation sdlf_changed_make(const sdlf_operation *gather);

/* Change a picture (C,H,W) in place; `scratch` is of its size. */
void sdlf_auto_augment_picture(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, const sdlf_auto_augment *policy,
                               uint64_t seed, int64_t image, int64_t epoch);

/* The same by one operation, see sdlf_augment_step_make. */
void sdlf_augment_apply(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, int operation, float m, bool negative,
                        bool wide);

#endif
