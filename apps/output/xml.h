/* SPDX-License-Identifier: MIT */
/* Text inside XML. */
#ifndef SDLF_APPS_OUTPUT_XML_H
#define SDLF_APPS_OUTPUT_XML_H

#include <stdio.h>

/* Write `text` so that XML takes it for text, in an element or between quotes: characters that mean something are
 * written as entities, and what XML cannot hold (control characters, bytes that are no UTF-8) as '?'. */
void xml_text(FILE *file, const char *text);

/* The same as an element of SVG, at that place. */
void xml_svg_text(FILE *file, double x, double y, const char *attributes, const char *text);

#endif
