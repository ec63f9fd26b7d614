/* Random changes of training images, an option of the kind `gather_batch`.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by what takes them. */
#ifndef SDLF_OPERATIONS_AUGMENTATION_H
#define SDLF_OPERATIONS_AUGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

/* Random changes of a training image, drawn anew each epoch; all zero: none. The output pixel (h, w) is read, bilinearly
 * and with the data set's background (0) outside, from
 *   centre + A (h - centre_h, w - centre_w) - (shift_h, shift_w) + displacement(h, w),
 * A = rotation by -angle, divided by scale. Uniform draws: angle in +-rotate, scale in 1 +- scale, shifts in +-shift. The
 * `crop` adds whole numbers of pixels in +-crop to the shifts, each as likely; `flip` negates A's second column in half of the images.
 * With these two alone every pixel is one of the image's, or background. The
 * displacement is bilinear between the nodes of a 4x4 grid spread over the image corners, each node uniform in +-elastic
 * both ways. Words of Philox(seed, index = 16 i + j, SDLF_STREAM_AUGMENT, epoch) for image i: j = 0 gives angle, scale,
 * shift_h, shift_w; j = 1..8 give the nodes in row-major order, (dh, dw) each; j = 9 gives the crop's two
 * shifts (the high half of word (2 crop + 1)), and, by word 2's highest bit, the flip. */
typedef struct sdlf_augmentation {
    bool flip;    /* left and right exchanged, of half of the images */
    int crop;     /* pixels: moved by whole ones, up to so many both ways, as if cropped from the image with a border */
    float shift;  /* pixels */
    float rotate; /* degrees */
    float scale;  /* 0.1: 0.9 to 1.1 */
    float elastic; /* pixels */
    uint64_t seed;
} sdlf_augmentation;

#endif
