/* SPDX-License-Identifier: MIT */
/* A status with its message, saved while cleanup may fail with another one, or to pass it to another thread. */
#ifndef SDLF_FRAMEWORK_SAVED_ERROR_H
#define SDLF_FRAMEWORK_SAVED_ERROR_H

#include <stdio.h>

#include <sdlf/status.h>

/* Bytes of the longest message, with its terminator. */
enum { SDLF_MESSAGE_SIZE = 1024 };

typedef struct sdlf_saved_error {
    sdlf_status status; /* SDLF_OK: nothing is saved */
    char message[SDLF_MESSAGE_SIZE];
} sdlf_saved_error;

/* Saves `status`, with the calling thread's message if it is an error. */
static inline void sdlf_save_error(sdlf_saved_error *saved, sdlf_status status)
{
    saved->status = status;
    if (status != SDLF_OK) snprintf(saved->message, sizeof saved->message, "%s", sdlf_error_message());
}

/* Reports the saved error again in the calling thread; SDLF_OK if none is saved. */
static inline sdlf_status sdlf_restore_error(const sdlf_saved_error *saved)
{
    return saved->status == SDLF_OK ? SDLF_OK : sdlf_fail(saved->status, "%s", saved->message);
}

#endif
