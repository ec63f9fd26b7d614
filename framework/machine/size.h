/* SPDX-License-Identifier: MIT */
/* Amounts of memory as text. */
#ifndef SDLF_FRAMEWORK_MACHINE_SIZE_H
#define SDLF_FRAMEWORK_MACHINE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Parses "1048576", "512M", "4G" to bytes, at least 1, with K = 1024; false: not such an amount. */
bool size_read(const char *text, int64_t *bytes);

typedef struct size_shown {
    char text[24];
} size_shown;

/* "300.0 MB", with M = 10^6. */
size_shown size_show(int64_t bytes);

#endif
