/* SPDX-License-Identifier: MIT */
/* Random augmentation of training images, an option of the kind `gather_batch`.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used. */
#ifndef SDLF_OPERATIONS_AUGMENTATION_H
#define SDLF_OPERATIONS_AUGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

/* Random augmentation of a training image, drawn anew each epoch; all zero: none. The output pixel (h, w) is sampled
 * bilinearly, with the data set's background (0) outside the image, at
 *   centre + A (h - centre_h, w - centre_w) - (shift_h, shift_w) + displacement(h, w),
 * A = rotation by -angle, divided by scale. Uniform draws: angle in +-rotate, scale in 1 +- scale, shifts in +-shift.
 * `crop` adds a whole number of pixels, uniform in +-crop, to each shift; `flip` negates A's second column in half of
 * the images. With only these two nothing is interpolated: every pixel is one of the image's, or background. The
 * displacement is bilinear between the nodes of a 4x4 grid spread over the image corners; each node is uniform in
 * +-elastic both ways. Words of Philox(seed, index = 16 i + j, SDLF_STREAM_AUGMENT, epoch) for image i: j = 0 gives
 * angle, scale, shift_h, shift_w; j = 1..8 give the nodes in row-major order, (dh, dw) each; j = 9 gives the crop's two
 * shifts (the high half of word (2 crop + 1)) and, by word 2's highest bit, the flip.
 *
 * `flip_alternate` instead flips each image in every second epoch: half of the images, those for which that bit of epoch 0 is set,
 * in even epochs, the others in odd ones. `resized_crop` enlarges a part of the image to the full size: its area is uniform from
 * this share to 1 (j = 10, word 0), its aspect ratio changes by 3/4 to 4/3 (word 1), its position is uniform (words 2 and 3).
 * `reflect` continues the image beyond its edges with its mirror image, without repeating the edge pixel, instead of background.
 * Colours: with three channels, the hue (of HSV: a pixel's largest and smallest values stay) turns by t circles, red towards
 * green, t uniform in +-hue (j = 12, word 3). Then, with b, k and s uniform in 1 +- brightness, contrast and saturation (words 0
 * to 2), a value v of a pixel of brightness g = 0.299 red + 0.587 green + 0.114 blue (g = v unless there are three channels)
 * becomes m + ((g + (v - g) s) b - m) k, where m is the normalisation's mean of its channel. `cutout` sets a square to 0, the
 * normalised mean; its centre is uniform in the image (j = 11, words 0 and 1), so the square may extend beyond the edge. */
typedef struct sdlf_augmentation {
    bool flip;           /* mirror half of the images horizontally */
    bool flip_alternate; /* mirror each image in every second epoch instead of at random */
    bool reflect;        /* pad with the mirror image instead of background */
    /* pixels: shift by up to this many whole pixels in each direction, as if cropped from a padded image. */
    int crop;
    float shift;                            /* pixels */
    float rotate;                           /* degrees */
    float scale;                            /* 0.1: 0.9 to 1.1 */
    float elastic;                          /* pixels */
    float resized_crop;                     /* the smallest share of the area, in (0, 1]; 0: none */
    int cutout;                             /* pixels: side of the square that is erased */
    float brightness, contrast, saturation; /* 0.2: by factors of 0.8 to 1.2 */
    float hue;                              /* 0.1: by up to 36 degrees, either way; at most 0.5 */
    uint64_t seed;
} sdlf_augmentation;

/* Operations from a fixed list, applied to each image, of bytes (C,H,W), before the other augmentation: identity, horizontal and vertical
 * shear, horizontal and vertical translation, rotate, brightness, saturation, contrast, sharpness, posterize, solarize, autocontrast, equalize.
 * With strength m in [0, 1] an operation shears by s m (the top row or the left column stays), translates by t m pixels, rotates by r m degrees
 * (nearest pixel, black beyond the edges), blends by 1 + b m, drops round(p m) bits, inverts values from 255 - 255 m on; signs are drawn.
 * trivial: TrivialAugment (https://arxiv.org/abs/2103.10158), the wide set: s = 0.99, t = 32, r = 135, b = 0.99, p = 6. With the words of
 *   Philox(seed, 16 image + 13, SDLF_STREAM_AUGMENT, epoch): operation floor(14 word[0] / 2^32), m = floor(31 word[1] / 2^32) / 30, the sign
 *   word[2]'s highest bit.
 * rand_augment N: RandAugment (https://arxiv.org/abs/1909.13719): N operations, each drawn from all, with m = rand_magnitude / 30: s = 0.3,
 *   t = 150/331 of the width or height, r = 30, b = 0.9, p = 4. Operation i is floor(14 w / 2^32), its sign the lowest bit of w, word i mod 4
 *   of Philox(seed, 16 image + 14 + floor(i / 4), ...). */
typedef struct sdlf_auto_augment {
    bool trivial;
    int rand_augment;   /* 0 to 8; not with `trivial` */
    int rand_magnitude; /* 1 to 30; default 9 */
} sdlf_auto_augment;

#endif
