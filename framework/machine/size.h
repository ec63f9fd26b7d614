/* SPDX-License-Identifier: MIT */
/* Amounts of memory as people write and read them. */
#ifndef SDLF_FRAMEWORK_MACHINE_SIZE_H
#define SDLF_FRAMEWORK_MACHINE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "1048576", "512M", "4G": bytes, 1 at least, K being 1024; false: none such. */
bool size_read(const char *text, int64_t *bytes);

typedef struct size_shown {
    char text[24];
} size_shown;

/* "300.0 MB", M being a million. */
size_shown size_show(int64_t bytes);

#endif
