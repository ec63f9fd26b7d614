/* SPDX-License-Identifier: MIT */
/* Rotating and mirroring images. */
#ifndef SDLF_DATASETS_IMAGES_ORIENTATION_H
#define SDLF_DATASETS_IMAGES_ORIENTATION_H

#include <sdlf/image.h>

/* Turns an image stored with this Exif orientation upright. The stored first row and first column are the sides that the viewer sees at the
 *
 *     1 top, left     2 top, right     3 bottom, right     4 bottom, left
 *     5 left, top     6 right, top     7 right, bottom     8 left, bottom
 *
 * Any other number counts as 1 and changes nothing. Errors: SDLF_ERROR_MEMORY; the image is then unchanged. */
sdlf_status image_orient(sdlf_image *picture, int orientation);

#endif
