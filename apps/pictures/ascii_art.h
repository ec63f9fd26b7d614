/* SPDX-License-Identifier: MIT */
/* An image drawn with characters. */
#ifndef SDLF_APPS_PICTURES_ASCII_ART_H
#define SDLF_APPS_PICTURES_ASCII_ART_H

#include "apps/output/terminal.h"

/* Draw height x width values from 0 (black) to 255, row by row, indented by `indent` columns: two rows a line, in greys
 * on a terminal with colours and UTF-8, in half blocks of one shade with only UTF-8; else in ASCII, light to dark. */
void ascii_art_print(const terminal *out, const float *values, int height, int width, int indent);

#endif
