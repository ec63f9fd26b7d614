/* SPDX-License-Identifier: MIT */
/* A part of a resized image, in bytes. */
#ifndef SDLF_DATASETS_IMAGES_RESIZE_H
#define SDLF_DATASETS_IMAGES_RESIZE_H

#include <sdlf/dataset.h>
#include <sdlf/image.h>

/* Computes the result of sdlf_image_resize, rounded to bytes: planes (C,H,W) of 1 or 3 channels. Only the part's rows and columns (at least
 * one each) are written, with the values they have in the whole; only the source pixels they need are read. Errors: SDLF_ERROR_MEMORY. */
sdlf_status image_resize_part(uint8_t *out, sdlf_shape shape, const sdlf_sample_part *part, const sdlf_image *image,
                              double top, double left, double height, double width);

#endif
