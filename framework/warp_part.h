/* SPDX-License-Identifier: MIT */
/* The part of an image that its augmented version needs. */
#ifndef SDLF_FRAMEWORK_WARP_PART_H
#define SDLF_FRAMEWORK_WARP_PART_H

#include <stdbool.h>

#include <sdlf/dataset.h>

/* The rows and columns of `image`, a sample (C,H,W), that gather_batch reads in this epoch. False: perhaps all. */
bool sdlf_warp_part(sdlf_sample_part *part, sdlf_shape shape, const sdlf_augmentation *augment, int64_t image,
                    int64_t epoch);

#endif
