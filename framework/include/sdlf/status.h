/* SPDX-License-Identifier: MIT */
/* Status codes and the message of the last error.
 *
 * Every fallible function returns an sdlf_status; SDLF_OK is zero. A function that returns anything else has set one
 * readable message for the calling thread: the operation, what was expected, what was found, and, for faulty input, the
 * file and the byte or line. Library code never prints and never exits.
 *
 * NULL. A pointer must not be NULL unless its declaration says that it may be. If it is NULL,
 * - a function that returns a status returns SDLF_ERROR_ARGUMENT, with the message "sdlf_plan_create: options is NULL",
 *   and has no other effect; the object that it would have created is NULL. A NULL model gives SDLF_ERROR_MEMORY
 *   instead, since sdlf_model_create returns NULL when out of memory;
 * - any other function returns an empty value: 0, false, NULL, an absent tensor or node; a void function does nothing;
 * - functions that free, close or release accept NULL.
 * Arguments of class functions and kernels have been checked by their callers, and so have those of inline functions.
 *
 * Threads: any function may be called from any thread at any time; the message belongs to the thread whose call failed.
 * Ownership: returned texts belong to the library.
 * Errors: none of these functions fails. */
#ifndef SDLF_STATUS_H
#define SDLF_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sdlf_status {
    SDLF_OK = 0,
    SDLF_ERROR_ARGUMENT,    /* an argument or option is out of range */
    SDLF_ERROR_SHAPE,       /* shapes or dtypes do not match */
    SDLF_ERROR_MEMORY,      /* out of host or device memory */
    SDLF_ERROR_IO,          /* the operating system refused to read or write a file */
    SDLF_ERROR_FORMAT,      /* the content of a file does not follow its format */
    SDLF_ERROR_UNSUPPORTED, /* a calculator, layer or build lacks what was requested */
    SDLF_ERROR_NUMERIC,     /* a value became NaN or infinite */
    SDLF_ERROR_INTERRUPTED, /* the caller requested a stop */
    SDLF_ERROR_DEVICE,      /* a device reported a fault */
} sdlf_status;

/* Called by long-running functions from time to time, with the caller's pointer: returns whether to continue. After
 * false the function ends early, with the results so far. */
typedef bool sdlf_go_on(void *user);

/* The calling thread's last message; never NULL, valid until this thread's next failing call. */
const char *sdlf_error_message(void);

/* For programs that keep a log: sets a function that is called with each message, in the thread whose call fails, and
 * again when a caller prepends its context; the last call has the text of sdlf_error_message. The library may still
 * recover from the error and succeed. `message` is valid until the function returns. The function may call the library;
 * failures of such calls are not reported to it. NULL: no calls. Set it while no other thread uses the library. */
typedef void sdlf_message_function(sdlf_status status, const char *message, void *user);
void sdlf_set_message_function(sdlf_message_function *function, void *user);

/* A short lower-case name of a status, such as "shape". */
const char *sdlf_status_name(sdlf_status status);

#if defined(__GNUC__)
#define SDLF_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define SDLF_PRINTF(format_index, first)
#endif

/* For authors of layers, calculators and formats: stores a message and returns `status`. */
sdlf_status sdlf_fail(sdlf_status status, const char *format, ...) SDLF_PRINTF(2, 3);

/* Prepends "CONTEXT: " to the message of the failed callee; returns `status` unchanged. SDLF_OK passes through without
 * effect. */
sdlf_status sdlf_fail_context(sdlf_status status, const char *format, ...) SDLF_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
