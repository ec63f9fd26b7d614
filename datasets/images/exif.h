/* SPDX-License-Identifier: MIT */
/* How the camera was held: the orientation in a picture's Exif data.
 *
 * Exif data are a TIFF file (TIFF 6.0) inside of the picture: in the APP1 segment of a JPEG, behind "Exif\0\0" (CIPA DC-008, 4.7.2), or in
 * the eXIf chunk of a PNG. Of all that they may hold, one entry of their first directory is looked for, which is found without following
 * anything else: tag 0x0112, a number from 1 to 8 (orientation.h). */
#ifndef SDLF_DATASETS_IMAGES_EXIF_H
#define SDLF_DATASETS_IMAGES_EXIF_H

#include <stddef.h>

/* The orientation that the bytes of a whole file give, 1 to 8. 1, upright, is also that of files which say nothing, or nothing that can be
 * understood: a picture is no worse for it. */
int exif_in_jpeg(const unsigned char *bytes, size_t size);
int exif_in_png(const unsigned char *bytes, size_t size);

#endif
