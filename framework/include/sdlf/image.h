/* SPDX-License-Identifier: MIT */
/* Image: a decoded image file. PNG is read with libpng; JPEG, BMP, PGM and PPM with libturbojpeg. A build without these
 * libraries reads only IDX.
 *
 * The format is detected from the file's content, not its name. Grey PNG, grey JPEG, PGM and most IDX images have one
 * channel, all others three. Transparent pixels are blended with white; 16-bit samples become 8-bit. JPEG and PNG
 * images are rotated upright by their Exif orientation. Images with more than SDLF_IMAGE_MAX_PIXELS, or more pixels
 * than the file's size permits (docs/guides/program.md, memory), are rejected before memory is allocated.
 *
 * Threads: functions may be called from any thread, concurrently for different images.
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
    uint8_t *pixels; /* (height, width, channels), rows from top to bottom; owned: sdlf_image_release */
} sdlf_image;

/* Decode image `index` of a file in memory; only IDX files have indices other than 0. Messages begin with `name`.
 * Errors: SDLF_ERROR_FORMAT (damaged, or not an image), SDLF_ERROR_ARGUMENT (no such index), SDLF_ERROR_UNSUPPORTED
 * (this build lacks the library), SDLF_ERROR_MEMORY. After an error there is nothing to release. */
sdlf_status sdlf_image_decode(sdlf_image *image, const void *bytes, size_t size, const char *name, int64_t index);

/* The same from a file. Errors: also SDLF_ERROR_IO. */
sdlf_status sdlf_image_read(sdlf_image *image, const char *path, int64_t index);

/* Release the pixels. Accepts a zeroed image. */
void sdlf_image_release(sdlf_image *image);

/* The formats that this build reads: "PNG, JPEG, BMP, PGM, PPM, IDX". */
const char *sdlf_image_formats(void);

/* Resize a region of an image, height x width pixels from (top, left), which may be fractional,
 * to `out` (channels, rows, columns), floats from 0 to 255. Each output pixel is the mean of the
 * area that it covers, with triangle weights (bilinear with antialiasing): downscaling loses no
 * lines, and upscaling is smooth. A grey image is replicated to three channels; three channels
 * are converted to one by ITU-R BT.601 luma. The running time is linear in the pixels of the
 * region and of the result. Errors: SDLF_ERROR_ARGUMENT (an empty size or region),
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_image_resize(float *out, int rows, int columns, int channels, const sdlf_image *image, double top,
                              double left, double height, double width);

#ifdef __cplusplus
}
#endif
#endif
