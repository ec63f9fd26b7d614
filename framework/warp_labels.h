/* SPDX-License-Identifier: MIT */
/* The labels of the pixels of an augmented image. */
#ifndef SDLF_FRAMEWORK_WARP_LABELS_H
#define SDLF_FRAMEWORK_WARP_LABELS_H

#include <sdlf/operation.h>

/* The label of each pixel is that of the pixel nearest to the position that gather_batch reads (sdlf_augmentation), and
 * -1 outside the image. Labels are (H,W). Colours and cutout do not change them. */
void sdlf_warp_labels(int32_t *to, const int32_t *from, sdlf_shape shape, const sdlf_augmentation *augment,
                      int64_t image, int64_t epoch);

#endif
