/* SPDX-License-Identifier: MIT */
/* A network file being read, and its error messages: "FILE:LINE: what is wrong". */
#ifndef SDLF_FORMATS_NETWORK_TEXT_H
#define SDLF_FORMATS_NETWORK_TEXT_H

#include <jansson.h>

#include <sdlf/status.h>

#include "framework/formats/json_locate.h"
#include "framework/formats/text.h"

typedef struct network_text {
    const char *origin; /* the file's name */
    const char *text;
    size_t length;
} network_text;

/* Fails with SDLF_ERROR_FORMAT and the line of `place`. */
sdlf_status network_fail(const network_text *file, const json_place *place, const char *format, ...) SDLF_PRINTF(3, 4);

/* A value as shown in a message: "seven", 7, true, [5, true], "a list" if that is long, "an object". */
typedef struct network_shown {
    char text[sizeof(text_shown) + 2];
} network_shown;
network_shown network_show(const json_t *value);

/* Checks a name: a string of 1 to NETWORK_MAX_NAME bytes. Messages start with `what`: "layer", "output". */
#define NETWORK_MAX_NAME 128
sdlf_status network_check_name(const network_text *file, const json_place *place, const json_t *name, const char *what);

#endif
