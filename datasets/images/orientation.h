/* SPDX-License-Identifier: MIT */
/* Pictures turned and mirrored. */
#ifndef SDLF_DATASETS_IMAGES_ORIENTATION_H
#define SDLF_DATASETS_IMAGES_ORIENTATION_H

#include <sdlf/image.h>

/* Bring a picture that is stored with this orientation (Exif's) upright. Its first row and first column are what the viewer sees at the
 *
 *     1 top, left     2 top, right     3 bottom, right     4 bottom, left
 *     5 left, top     6 right, top     7 right, bottom     8 left, bottom
 *
 * Any other number is 1, and changes nothing. Errors: SDLF_ERROR_MEMORY; the picture is as it was. */
sdlf_status image_orient(sdlf_image *picture, int orientation);

#endif
