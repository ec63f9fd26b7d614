/* SPDX-License-Identifier: MIT */
/* See png.h. */
#include "apps/pictures/png.h"

#include <stdlib.h>

#include "apps/system/memory.h"

#ifdef SDLF_HAVE_PNG
#include <png.h>

sdlf_status png_write(png_picture *picture, const unsigned char *pixels, int height, int width)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
    image.width = (png_uint_32)width;
    image.height = (png_uint_32)height;
    png_alloc_size_t length = PNG_IMAGE_PNG_SIZE_MAX(image);
    *picture = (png_picture){.width = width, .height = height, .bytes = memory_allocate(length)};
    bool written = png_image_write_to_memory(&image, picture->bytes, &length, 0, pixels, 0, NULL);
    picture->length = length;
    if (written) return SDLF_OK;
    png_release(picture);
    return sdlf_fail(SDLF_ERROR_MEMORY, "a picture of %dx%d could not be made: %s", height, width, image.message);
}
#else
sdlf_status png_write(png_picture *picture, const unsigned char *pixels, int height, int width)
{
    (void)pixels;
    *picture = (png_picture){.bytes = NULL};
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "this build cannot make the picture of %dx%d: it has no libpng", height,
                     width);
}
#endif

void png_release(png_picture *picture)
{
    free(picture->bytes);
    *picture = (png_picture){.bytes = NULL};
}
