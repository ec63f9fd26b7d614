/* Pictures from files: PNG through libpng; JPEG, BMP, PGM and PPM through libturbojpeg; IDX through the framework.
 *
 * What a file is says its content, not its name. Grey PNG, grey JPEG, PGM and most IDX pictures have one channel, all
 * others three; transparent parts show white paper; samples of 16 bits become 8. JPEG and PNG pictures stand as their Exif data say that
 * the camera was held. Pictures of more than IMAGE_MAX_PIXELS are refused before memory is taken. */
#ifndef SDLF_APPS_PICTURES_IMAGE_H
#define SDLF_APPS_PICTURES_IMAGE_H

#include <stdint.h>

#include <sdlf/status.h>

#define IMAGE_MAX_PIXELS (INT64_C(1) << 26)

typedef struct image {
    int width, height;
    int channels;    /* 1: grey; 3: red, green, blue */
    uint8_t *pixels; /* (height, width, channels), rows from the top; owned */
} image;

/* Read picture `index` of a file; only IDX files have others than 0. The image is the caller's: image_release. Errors, with
 * the file's name: those of input_read, SDLF_ERROR_FORMAT (damaged, or no picture), SDLF_ERROR_ARGUMENT (no such index),
 * SDLF_ERROR_UNSUPPORTED (this build lacks the library), SDLF_ERROR_MEMORY. */
sdlf_status image_read(image *picture, const char *path, int64_t index);
void image_release(image *picture);

/* The formats that this build reads: "PNG, JPEG, BMP, PGM, PPM, IDX". */
const char *image_formats(void);

#endif
