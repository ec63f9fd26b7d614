/* SPDX-License-Identifier: MIT */
/* Bytes as text (RFC 4648), as a page holds its pictures. */
#ifndef SDLF_APPS_OUTPUT_BASE64_H
#define SDLF_APPS_OUTPUT_BASE64_H

#include <stddef.h>
#include <stdio.h>

void base64_print(FILE *file, const void *bytes, size_t length);

#endif
