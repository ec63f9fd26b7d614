/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648), for the inline images of a page. */
#ifndef SDLF_APPS_OUTPUT_BASE64_H
#define SDLF_APPS_OUTPUT_BASE64_H

#include <stddef.h>
#include <stdio.h>

void base64_print(FILE *file, const void *bytes, size_t length);

#endif
