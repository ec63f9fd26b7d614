/* SPDX-License-Identifier: MIT */
/* The check at the start of public functions that a pointer is not NULL. See "NULL" in <sdlf/status.h>. */
#ifndef SDLF_FRAMEWORK_REQUIRE_H
#define SDLF_FRAMEWORK_REQUIRE_H

#include <stddef.h>

#include <sdlf/status.h>

/* For an argument, or a member that an argument points to: the message names it as the header does. */
#define SDLF_REQUIRE(pointer)                                                                                          \
    do {                                                                                                               \
        if ((pointer) == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: %s is NULL", __func__, #pointer);            \
    } while (0)

#endif
