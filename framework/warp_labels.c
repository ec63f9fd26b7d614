/* SPDX-License-Identifier: MIT */
/* The labels of the pixels of an augmented image. See warp_labels.h. */
#include "framework/warp_labels.h"

#include <string.h>

#include "framework/operations/warp.h"

void sdlf_warp_labels(int32_t *to, const int32_t *from, sdlf_shape shape, const sdlf_augmentation *augment,
                      int64_t image, int64_t epoch)
{
    int64_t height = shape.dim[0], width = shape.dim[1];
    if (!sdlf_augmentation_moves(augment)) {
        memcpy(to, from, (size_t)(height * width) * sizeof *to);
        return;
    }
    sdlf_warp warp = sdlf_warp_make(augment, image, epoch, height, width);
    for (int64_t h = 0; h < height; h++)
        for (int64_t w = 0; w < width; w++) {
            sdlf_warp_point at = sdlf_warp_at(&warp, h, w);
            int64_t row = sdlf_warp_source(at.h + (at.down >= 0.5f), height, warp.reflect);
            int64_t column = sdlf_warp_source(at.w + (at.right >= 0.5f), width, warp.reflect);
            to[h * width + w] = row >= 0 && column >= 0 ? from[row * width + column] : -1;
        }
}
