/* SPDX-License-Identifier: MIT */
/* gather_batch of images that TrivialAugment or RandAugment changes first: the changed images are computed in the
 * workspace, and a second gather_batch reads from there. */
#ifndef SDLF_OPERATIONS_CHANGED_PICTURES_H
#define SDLF_OPERATIONS_CHANGED_PICTURES_H

#include <sdlf/operation.h>

/* The layout of the workspace, in bytes: N images, and as many for intermediate steps. */
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

/* The gather_batch that remains once the workspace has the images, their indices there and those in the data set. */
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

/* A slot's `workspace`: its bytes; 0 if no image is changed. */
int64_t sdlf_changed_workspace(const sdlf_calculator *calculator, const sdlf_operation *gather);

/* In the host's memory: computes the images and returns the remaining operation. */
sdlf_operation sdlf_changed_make(const sdlf_operation *gather);

/* Changes an image (C,H,W) in place; `scratch` has the same size. */
void sdlf_auto_augment_picture(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, const sdlf_auto_augment *policy,
                               uint64_t seed, int64_t image, int64_t epoch);

/* The same for a single operation, see sdlf_augment_step_make. */
void sdlf_augment_apply(uint8_t *picture, uint8_t *scratch, sdlf_shape sample, int operation, float m, bool negative,
                        bool wide);

#endif
