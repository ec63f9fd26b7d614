/* SPDX-License-Identifier: MIT */
/* The check at the head of public functions: a pointer that must not be NULL. See "NULL" in <sdlf/status.h>. */
#ifndef SDLF_FRAMEWORK_REQUIRE_H
#define SDLF_FRAMEWORK_REQUIRE_H

#include <stddef.h>

#include <sdlf/status.h>

/* Of an argument, or a member that one points to: the message has its name as the header writes it. */
#define SDLF_REQUIRE(pointer)                                                                                          \
    do {                                                                                                               \
        if ((pointer) == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: %s is NULL", __func__, #pointer);            \
    } while (0)

#endif
