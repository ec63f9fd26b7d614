/* SPDX-License-Identifier: MIT */
/* Text in XML. */
#ifndef SDLF_APPS_OUTPUT_XML_H
#define SDLF_APPS_OUTPUT_XML_H

#include <stdio.h>

/* Write `text` escaped for XML, in an element or between quotes: special characters are written as entities, and those
 * that XML cannot represent (control characters, invalid UTF-8) as '?'. */
void xml_text(FILE *file, const char *text);

/* The same as an SVG text element at (x,y). */
void xml_svg_text(FILE *file, double x, double y, const char *attributes, const char *text);

#endif
