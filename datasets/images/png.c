/* SPDX-License-Identifier: MIT */
/* PNG, through libpng's simplified interface. */
#include "datasets/images/decode.h"

#if defined SDLF_HAVE_PNG

#include <png.h>
#include <string.h>

sdlf_status image_decode_png(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path,
                             bool indices)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    sdlf_status status = SDLF_OK;
    if (!png_image_begin_read_from_memory(&png, bytes, size)) goto damaged;
    indices = indices && (png.format & PNG_FORMAT_FLAG_COLORMAP) != 0;
    int channels = (png.format & PNG_FORMAT_FLAG_COLOR) != 0 && !indices ? 3 : 1;
    png.format = indices ? PNG_FORMAT_RGB_COLORMAP : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    status = image_allocate(picture, png.width, png.height, channels, size, path);
    if (status != SDLF_OK) goto done;
    const png_color paper = {255, 255, 255};
    unsigned char palette[256 * 3]; /* discarded: pixels keep their palette indices */
    if (png_image_finish_read(&png, &paper, picture->pixels, 0, palette)) goto done;
damaged:
    status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: damaged PNG: %s", path, png.message);
done:
    png_image_free(&png);
    return status;
}

#else

sdlf_status image_decode_png(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path,
                             bool indices)
{
    (void)picture, (void)bytes, (void)size, (void)indices;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: this build reads no PNG: it was made without libpng (libpng-dev)",
                     path);
}

#endif
