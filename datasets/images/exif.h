/* SPDX-License-Identifier: MIT */
/* The orientation of the camera, from an image's Exif data.
 *
 * Exif data are a TIFF file (TIFF 6.0) inside the image: in the APP1 segment of a JPEG, after "Exif\0\0" (CIPA DC-008, 4.7.2), or in the
 * eXIf chunk of a PNG. Only one entry of the first directory is read, which is found without following any offset but the directory's:
 * tag 0x0112, a number from 1 to 8 (orientation.h). */
#ifndef SDLF_DATASETS_IMAGES_EXIF_H
#define SDLF_DATASETS_IMAGES_EXIF_H

#include <stddef.h>

/* The orientation given by the bytes of a whole file, 1 to 8. Missing or malformed Exif data give 1 (upright) and are never an error:
 * the image can still be used. */
int exif_in_jpeg(const unsigned char *bytes, size_t size);
int exif_in_png(const unsigned char *bytes, size_t size);

#endif
