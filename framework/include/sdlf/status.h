/* SPDX-License-Identifier: MIT */
/* Status codes and the message of the last error.
 *
 * Every fallible function returns an sdlf_status; SDLF_OK is zero. A function that returns anything else has left one
 * readable message for the calling thread: the operation, what was expected, what was found, and the file and the byte
 * or line where input was at fault. Library code never prints and never exits.
 *
 * NULL. A pointer must be there unless its declaration says that it may be NULL. To one that is missing,
 * - a function with a status answers SDLF_ERROR_ARGUMENT and "sdlf_plan_create: options is NULL", before it has done
 *   anything; what it would have made is NULL then. A model that is NULL is SDLF_ERROR_MEMORY: sdlf_model_create gives
 *   that when memory is out;
 * - a function without gives nothing: 0, false, NULL, an absent tensor or node; one that returns nothing does nothing;
 * - those that free, close and release accept NULL.
 * What a class's functions and kernels get has been checked; so have the arguments of inline functions.
 *
 * Threads: any function may be called from any thread at any time; the message belongs to the thread whose call failed.
 * Ownership: texts that are returned are the library's.
 * Errors: none of these functions fails. */
#ifndef SDLF_STATUS_H
#define SDLF_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sdlf_status {
    SDLF_OK = 0,
    SDLF_ERROR_ARGUMENT,    /* a caller's argument or option is out of range */
    SDLF_ERROR_SHAPE,       /* shapes or dtypes do not fit together */
    SDLF_ERROR_MEMORY,      /* host or device memory ran out */
    SDLF_ERROR_IO,          /* the operating system refused to read or write a file */
    SDLF_ERROR_FORMAT,      /* a file's content is not what its format says */
    SDLF_ERROR_UNSUPPORTED, /* a calculator, layer or build lacks what was requested */
    SDLF_ERROR_NUMERIC,     /* a value became NaN or infinite */
    SDLF_ERROR_INTERRUPTED, /* the caller asked for a stop */
    SDLF_ERROR_DEVICE,      /* a device reported a fault */
} sdlf_status;

/* Asked by long work from time to time, with the caller's own pointer: shall it go on? After false it ends early, with
 * what it has. */
typedef bool sdlf_go_on(void *user);

/* The calling thread's last message; never NULL, valid until this thread's next failing call. */
const char *sdlf_error_message(void);

/* For programs that keep a log: be called with each message when it is made, in the thread whose call fails, and again
 * when a caller puts its context before it; the last one is what sdlf_error_message says. The library may still deal
 * with what went wrong, and succeed. `message` is good until the function returns. It may call the library; it is not
 * called for failures in there. NULL: no more calls. To be set while no other thread is in the library. */
typedef void sdlf_message_function(sdlf_status status, const char *message, void *user);
void sdlf_set_message_function(sdlf_message_function *function, void *user);

/* A short lower-case name of a status, such as "shape". */
const char *sdlf_status_name(sdlf_status status);

#if defined(__GNUC__)
#define SDLF_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define SDLF_PRINTF(format_index, first)
#endif

/* For those who write layers, calculators and formats: store a message, return `status`. */
sdlf_status sdlf_fail(sdlf_status status, const char *format, ...) SDLF_PRINTF(2, 3);

/* Put "CONTEXT: " before the message that a callee left; returns `status` unchanged. SDLF_OK passes through
 * untouched. */
sdlf_status sdlf_fail_context(sdlf_status status, const char *format, ...) SDLF_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
