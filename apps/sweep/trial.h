/* SPDX-License-Identifier: MIT */
/* One training run of a sweep: a process of its own, whose log records the result. */
#ifndef SDLF_APPS_SWEEP_TRIAL_H
#define SDLF_APPS_SWEEP_TRIAL_H

#include <stdbool.h>

#include <sdlf/status.h>

typedef struct trial {
    char *log;    /* path of its log; owned */
    char **words; /* the arguments of 'sdlf', NULL-terminated; all owned */
    int count;
    int code; /* how it ended */
} trial;

/* Start with "train" and these words; add more with trial_add. */
void trial_begin(trial *trial, const char *const *words, int count, const char *log);
void trial_add(trial *trial, const char *option, const char *value); /* value NULL: a flag */
void trial_release(trial *trial);

/* Check that `sdlf train` accepts the words; if not, it has printed why. Errors: SDLF_ERROR_ARGUMENT, or a file of
 * options that cannot be read. */
sdlf_status trial_check(const trial *trial);

/* True if it is done already: its log records an end other than being stopped. */
bool trial_is_done(const trial *trial);

/* Run this program with the words, and wait. Errors: SDLF_ERROR_IO (no process); SDLF_ERROR_ARGUMENT: the words are
 * wrong, and it has printed why; SDLF_ERROR_INTERRUPTED: a signal ended it. A run that failed by itself is SDLF_OK: its
 * log records it. */
sdlf_status trial_run(trial *trial);

#endif
