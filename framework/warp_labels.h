/* SPDX-License-Identifier: MIT */
/* The labels of an augmented picture's pixels. */
#ifndef SDLF_FRAMEWORK_WARP_LABELS_H
#define SDLF_FRAMEWORK_WARP_LABELS_H

#include <sdlf/operation.h>

/* Each pixel's label is that of the pixel nearest to where gather_batch reads it (sdlf_augmentation), and -1 beyond the
 * picture. Labels are (H,W). Colours and cutout change none. */
void sdlf_warp_labels(int32_t *to, const int32_t *from, sdlf_shape shape, const sdlf_augmentation *augment,
                      int64_t image, int64_t epoch);

#endif
