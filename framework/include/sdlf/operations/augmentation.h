/* SPDX-License-Identifier: MIT */
/* Random changes of training images, an option of the kind `gather_batch`.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by what takes them. */
#ifndef SDLF_OPERATIONS_AUGMENTATION_H
#define SDLF_OPERATIONS_AUGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

/* Random changes of a training image, drawn again each epoch; all zero: none. The output pixel (h, w) is read,
 * bilinearly and with the data set's background (0) outside, from
 *   centre + A (h - centre_h, w - centre_w) - (shift_h, shift_w) + displacement(h, w),
 * A = rotation by -angle, divided by scale. Uniform draws: angle in +-rotate, scale in 1 +- scale, shifts in +-shift.
 * The `crop` adds whole numbers of pixels in +-crop to the shifts, each as likely; `flip` negates A's second column in
 * half of the images. With only these two every pixel is one of the image's, or background. The
 * displacement is bilinear between the nodes of a 4x4 grid spread over the image corners, each node uniform in
 * +-elastic both ways. Words of Philox(seed, index = 16 i + j, SDLF_STREAM_AUGMENT, epoch) for image i: j = 0 gives
 * angle, scale, shift_h, shift_w; j = 1..8 give the nodes in row-major order, (dh, dw) each; j = 9 gives the crop's two
 * shifts (the high half of word (2 crop + 1)), and, by word 2's highest bit, the flip.
 *
 * `flip_alternate` flips in every second epoch instead, half of the images in the even ones: those of which that bit of
 * epoch 0 is set. `resized_crop` enlarges a part of the image to all of it: its area is uniform from this share to 1 (j
 * = 10, word 0), its proportions change by 3/4 to 4/3 (word 1), its place is uniform (words 2 and 3). `reflect` reads
 * beyond the image its mirror image, its edge not repeated, instead of background. Colours: of three channels, the hue
 * (of HSV: a pixel's largest and smallest value stay) turns by t circles, red towards green, t uniform in +-hue (j = 12,
 * word 3). Then, with b, k and s uniform in 1 +- brightness, contrast and saturation (words 0 to 2), a value v of a
 * pixel of brightness g = 0.299 red + 0.587 green + 0.114 blue (g = v unless there are three channels) becomes
 * m + ((g + (v - g) s) b - m) k, m being the normalisation's mean of its channel. `cutout` erases a square,
 * to what the mean is normalised to: 0; its centre is uniform in the image (j = 11, words 0 and 1), so that it may go beyond the edge. */
typedef struct sdlf_augmentation {
    bool flip;           /* left and right exchanged, of half of the images */
    bool flip_alternate; /* in every second epoch of an image, and not as chance will have it */
    bool reflect;        /* beyond the edges is the mirror image, and no background */
    /* pixels: moved by whole ones, up to that many both ways, as if cropped from the image with a border. */
    int crop;
    float shift;                            /* pixels */
    float rotate;                           /* degrees */
    float scale;                            /* 0.1: 0.9 to 1.1 */
    float elastic;                          /* pixels */
    float resized_crop;                     /* the smallest share of the area, in (0, 1]; 0: none */
    int cutout;                             /* pixels: side of a square that is erased */
    float brightness, contrast, saturation; /* 0.2: by factors of 0.8 to 1.2 */
    float hue;                              /* 0.1: by up to 36 degrees, either way; at most 0.5 */
    uint64_t seed;
} sdlf_augmentation;

/* Operations of a fixed list on each picture, of bytes (C,H,W), before the other augmentation: identity, shear across and down, move across
 * and down, rotate, brightness, saturation, contrast, sharpness, posterize, solarize, autocontrast, equalize. One of a strength m in [0, 1]
 *   shears by s m (the top row or the left column stays), moves by t m pixels, rotates by r m degrees (the nearest pixel, black beyond the edges),
 *   blends by 1 + b m, drops round(p m) bits, inverts values from 255 - 255 m on, of either sign where there are two.
 * trivial: TrivialAugment (https://arxiv.org/abs/2103.10158), the wide set: s = 0.99, t = 32, r = 135, b = 0.99, p = 6. With the words of
 *   Philox(seed, 16 image + 13, SDLF_STREAM_AUGMENT, epoch): operation floor(14 word[0] / 2^32), m = floor(31 word[1] / 2^32) / 30, the sign of
 *   word[2]'s highest bit.
 * rand_augment N: RandAugment (https://arxiv.org/abs/1909.13719): N operations, each drawn from all, of m = rand_magnitude / 30: s = 0.3,
 *   t = 150/331 of the width or height, r = 30, b = 0.9, p = 4. Operation i is floor(14 w / 2^32), its sign the lowest bit of w, word i mod 4 of
 *   Philox(seed, 16 image + 14 + floor(i / 4), ...). */
typedef struct sdlf_auto_augment {
    bool trivial;
    int rand_augment;   /* 0 to 8; not with `trivial` */
    int rand_magnitude; /* 1 to 30; default 9 */
} sdlf_auto_augment;

#endif
