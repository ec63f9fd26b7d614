/* SPDX-License-Identifier: MIT */
/* Image: a picture as a file holds it, decoded. PNG through libpng; JPEG, BMP, PGM and PPM through libturbojpeg; IDX,
 * and nothing else where the library was built without these.
 *
 * What a file is says its content, not its name. Grey PNG, grey JPEG, PGM and most IDX images have one channel, all
 * others three; transparent parts show white paper; samples of 16 bits become 8. JPEG and PNG images are turned upright
 * by their Exif orientation. Images of more than SDLF_IMAGE_MAX_PIXELS, or of more pixels than a file of its size
 * may become (docs/guides/program.md, memory), are refused before memory is taken.
 *
 * Threads: functions may be called from any thread, on different images at the same time.
 * Ownership: pixels are the caller's to release.
 * Errors: a status with a message (status.h) that names the file. */
#ifndef SDLF_IMAGE_H
#define SDLF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SDLF_IMAGE_MAX_PIXELS (INT64_C(1) << 26)

typedef struct sdlf_image {
    int width, height;
    int channels;    /* 1: grey; 3: red, green, blue */
    uint8_t *pixels; /* (height, width, channels), rows from the top; owned: sdlf_image_release */
} sdlf_image;

/* Decode image `index` of a file in memory; only IDX files have others than 0. `name` begins messages. Errors:
 * SDLF_ERROR_FORMAT (damaged, or no image), SDLF_ERROR_ARGUMENT (no such index), SDLF_ERROR_UNSUPPORTED (this build
 * lacks the library), SDLF_ERROR_MEMORY; there is nothing to release then. */
sdlf_status sdlf_image_decode(sdlf_image *image, const void *bytes, size_t size, const char *name, int64_t index);

/* The same from a file. Errors: SDLF_ERROR_IO, too. */
sdlf_status sdlf_image_read(sdlf_image *image, const char *path, int64_t index);

/* Accepts an image that is zeroed. */
void sdlf_image_release(sdlf_image *image);

/* The formats that this build reads: "PNG, JPEG, BMP, PGM, PPM, IDX". */
const char *sdlf_image_formats(void);

/* Resize a part of an image, height x width pixels from (top, left), real numbers, to `out` (channels, rows, columns),
 * floats from 0 to
 * 255. Each new pixel is the mean of what it covers, weighted by a triangle (bilinear with antialiasing): shrinking
 *      loses no lines, and
 * enlarging is smooth. Grey images are repeated for three channels; three become grey for one (ITU-R BT.601). Takes
 * time linear in the pixels of the part and of the result. Errors: SDLF_ERROR_ARGUMENT (a size or a part that is
 * empty), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_image_resize(float *out, int rows, int columns, int channels, const sdlf_image *image, double top,
                              double left, double height, double width);

#ifdef __cplusplus
}
#endif
#endif
