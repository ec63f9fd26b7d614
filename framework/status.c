/* SPDX-License-Identifier: MIT */
/* Status codes and the calling thread's last message. */
#include <sdlf/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "framework/saved_error.h"

/* The message of the thread whose call failed. */
static _Thread_local char message[SDLF_MESSAGE_SIZE] = "no error";

const char *sdlf_error_message(void)
{
    return message;
}

static sdlf_message_function *told;
static void *told_user;
static _Thread_local bool telling;

void sdlf_set_message_function(sdlf_message_function *function, void *user)
{
    told = function;
    told_user = user;
}

static void call_message_hook(sdlf_status status)
{
    if (told == NULL || telling) return;
    char kept[sizeof message]; /* the function may itself fail and change the message */
    memcpy(kept, message, sizeof kept);
    telling = true;
    told(status, kept, told_user);
    telling = false;
    memcpy(message, kept, sizeof kept);
}

const char *sdlf_status_name(sdlf_status status)
{
    switch (status) {
    case SDLF_OK: return "ok";
    case SDLF_ERROR_ARGUMENT: return "argument";
    case SDLF_ERROR_SHAPE: return "shape";
    case SDLF_ERROR_MEMORY: return "memory";
    case SDLF_ERROR_IO: return "io";
    case SDLF_ERROR_FORMAT: return "format";
    case SDLF_ERROR_UNSUPPORTED: return "unsupported";
    case SDLF_ERROR_NUMERIC: return "numeric";
    case SDLF_ERROR_INTERRUPTED: return "interrupted";
    case SDLF_ERROR_DEVICE: return "device";
    }
    return "unknown";
}

sdlf_status sdlf_fail(sdlf_status status, const char *format, ...)
{
    char text[sizeof message]; /* arguments may point into the old message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    call_message_hook(status);
    return status;
}

sdlf_status sdlf_fail_context(sdlf_status status, const char *format, ...)
{
    if (status == SDLF_OK) return status;
    char text[sizeof message];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text - 2) return status;
    snprintf(text + length, sizeof text - (size_t)length, ": %.*s", (int)(sizeof text - (size_t)length - 3), message);
    memcpy(message, text, sizeof message);
    call_message_hook(status);
    return status;
}
