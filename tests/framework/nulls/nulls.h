/* SPDX-License-Identifier: MIT */
/* How public functions respond to a NULL pointer that must not be NULL: see "NULL" in <sdlf/status.h>. */
#ifndef SDLF_TESTS_FRAMEWORK_NULLS_H
#define SDLF_TESTS_FRAMEWORK_NULLS_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "testing.h"

/* Checks that the call returns SDLF_ERROR_ARGUMENT and that its message names the function and the argument. */
#define REFUSED(call, argument)                                                                                        \
    (nulls_begin(#call), check_refused((call), SDLF_ERROR_ARGUMENT, #call, argument, __FILE__, __LINE__))
/* The same for a model, which is NULL if memory ran out. */
#define NO_MODEL(call) (nulls_begin(#call), check_refused((call), SDLF_ERROR_MEMORY, NULL, "model", __FILE__, __LINE__))
/* Checks that a function without a status returns `nothing`. */
#define GIVES(call, nothing) (nulls_begin(#call), test_check((call) == (nothing), __FILE__, __LINE__, #call))
#define DOES_NOTHING(call)   (nulls_begin(#call), (call), test_check(true, __FILE__, __LINE__, #call))

static const char *volatile nulls_call = "";

/* Signal handler: reports the call that was running. */
static void nulls_died(int number)
{
    (void)!write(STDOUT_FILENO, "died in ", 8);
    (void)!write(STDOUT_FILENO, nulls_call, strlen(nulls_call));
    (void)!write(STDOUT_FILENO, "\n", 1);
    signal(number, SIG_DFL);
    raise(number);
}

static inline void nulls_begin(const char *call)
{
    if (*nulls_call == '\0') {
        signal(SIGSEGV, nulls_died);
        signal(SIGABRT, nulls_died);
    }
    nulls_call = call;
}

static inline void check_refused(sdlf_status found, sdlf_status expected, const char *call, const char *argument,
                                 const char *file, int line)
{
    char text[160];
    if (call != NULL)
        snprintf(text, sizeof text, "%.*s: %s is NULL", (int)strcspn(call, "("), call, argument);
    else
        snprintf(text, sizeof text, "%s", argument);
    test_check_status(found, expected, text, file, line, call != NULL ? call : argument);
}

#endif
