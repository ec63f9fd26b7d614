/* SPDX-License-Identifier: MIT */
/* The decoders behind image.h. Each takes the `size` bytes of a whole file; `path` begins messages. */
#ifndef SDLF_DATASETS_IMAGES_DECODE_H
#define SDLF_DATASETS_IMAGES_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/image.h>

/* indices: for a palette image, return each pixel's palette index in one channel instead of its colour. */
sdlf_status image_decode_png(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path,
                             bool indices);
sdlf_status image_decode_jpeg(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path);
sdlf_status image_decode_bmp(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path);
sdlf_status image_decode_pnm(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path);

/* Like sdlf_image_read of image 0, but with palette indices. */
sdlf_status image_read_indices(sdlf_image *picture, const char *path);

/* Checks that an image of this size has 1 to SDLF_IMAGE_MAX_PIXELS pixels, and that a file of `stored` bytes may expand
 * to so many (framework/formats/budget.h). */
sdlf_status image_check_size(int64_t width, int64_t height, int channels, size_t stored, const char *path);

/* Checks a size and allocates memory for its pixels. */
sdlf_status image_allocate(sdlf_image *picture, int64_t width, int64_t height, int channels, size_t stored,
                           const char *path);

#endif
