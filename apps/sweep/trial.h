/* SPDX-License-Identifier: MIT */
/* One training run of a sweep: a process of its own, whose log says how it went. */
#ifndef SDLF_APPS_SWEEP_TRIAL_H
#define SDLF_APPS_SWEEP_TRIAL_H

#include <stdbool.h>

#include <sdlf/status.h>

typedef struct trial {
    char *log;    /* where it is told; owned */
    char **words; /* what 'sdlf' is called with, NULL-terminated; owned, and each */
    int count;
    int code; /* how it ended */
} trial;

/* "train" and these words; then trial_add. */
void trial_begin(trial *trial, const char *const *words, int count, const char *log);
void trial_add(trial *trial, const char *option, const char *value); /* value NULL: a flag */
void trial_release(trial *trial);

/* Would `sdlf train` understand the words? Where not, it has said why. Errors: SDLF_ERROR_ARGUMENT, or that a file of
 * options cannot be read. */
sdlf_status trial_check(const trial *trial);

/* Is it done already: does its log say how it ended, other than stopped? */
bool trial_is_done(const trial *trial);

/* Run this program with the words, and wait. Errors: SDLF_ERROR_IO (no process); SDLF_ERROR_ARGUMENT: the words are
 * wrong, which it has said; SDLF_ERROR_INTERRUPTED: a signal ended it. A run that failed by itself is SDLF_OK: its log
 * says so. */
sdlf_status trial_run(trial *trial);

#endif
