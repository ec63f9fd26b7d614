/* SPDX-License-Identifier: MIT */
/* Rotating and mirroring images. See orientation.h. */
#include "datasets/images/orientation.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

sdlf_status image_orient(sdlf_image *picture, int orientation)
{
    if (orientation < 2 || orientation > 8) return SDLF_OK;
    bool swapped = orientation >= 5; /* rows become columns */
    /* whether the stored rows run from the bottom (or the right), and the columns from the right (or the bottom) */
    bool row_backwards = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    bool column_backwards = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    size_t width = (size_t)picture->width, height = (size_t)picture->height, bytes = (size_t)picture->channels;
    size_t new_width = swapped ? height : width;
    uint8_t *turned = malloc(width * height * bytes);
    if (turned == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory to rotate a picture of %dx%d", picture->width,
                         picture->height);
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            size_t row = row_backwards ? height - 1 - y : y, column = column_backwards ? width - 1 - x : x;
            size_t to = swapped ? column * new_width + row : row * new_width + column;
            memcpy(turned + to * bytes, picture->pixels + (y * width + x) * bytes, bytes);
        }
    }
    free(picture->pixels);
    picture->pixels = turned;
    picture->width = (int)new_width;
    picture->height = (int)(swapped ? width : height);
    return SDLF_OK;
}
