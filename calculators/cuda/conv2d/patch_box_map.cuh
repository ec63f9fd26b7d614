/* SPDX-License-Identifier: MIT */
/* Maps of what a convolution over boxes in tf32 reads (conv2d/patch_box.cuh). */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_MAP_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_MAP_CUH

#include "calculators/cuda/boxes.cuh"
#include "calculators/cuda/conv2d/patch.h"

/* A map of x, a box of which is a remainder's part of the patch, or a group's part of a row. False: there is none. */
static inline bool patch_box_map(CUtensorMap *map, const cuda_patch &p, int group_pixels)
{
    box_shape x = {p.x, p.images, p.height, p.width, p.channels, {1, group_pixels}, {1, 1}, true};
    for (int i = 0; i < 2 && p.tile_down > 1; i++) {
        x.stride[i] = p.source_step[i] * p.pixel_step[i];
        x.size[i] = (i == 0 ? p.patch_down : p.patch_across) * x.stride[i];
    }
    return make_box_map(map, x);
}

#endif
