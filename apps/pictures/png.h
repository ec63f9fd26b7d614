/* SPDX-License-Identifier: MIT */
/* An image encoded as a PNG file in memory, by libpng. */
#ifndef SDLF_APPS_PICTURES_PNG_H
#define SDLF_APPS_PICTURES_PNG_H

#include <stddef.h>

#include <sdlf/status.h>

typedef struct png_picture {
    int width, height;
    unsigned char *bytes; /* owned; png_release */
    size_t length;
} png_picture;

/* Encode height x width RGB pixels, row by row. Errors: SDLF_ERROR_UNSUPPORTED in a build without libpng,
 * SDLF_ERROR_MEMORY. */
sdlf_status png_write(png_picture *picture, const unsigned char *pixels, int height, int width);
void png_release(png_picture *picture);

#endif
