/* SPDX-License-Identifier: MIT */
/* Writing short files atomically, and inspecting the result. */
#ifndef SDLF_TESTS_ATOMIC_TEXTS_H
#define SDLF_TESTS_ATOMIC_TEXTS_H

#include <stdbool.h>

#include <sdlf/status.h>

/* Write the text as an atomic file; commits it, or abandons it after a failure. */
sdlf_status write_text(const char *path, const char *text);

/* The file's text, in static storage; NULL if there is no file. */
const char *text_of(const char *path);

/* The number of files in a folder; -1: there is no such folder. */
int files_in(const char *folder);

/* Create a fresh folder below the test's own. */
const char *make_folder(const char *name);

/* Run a check in a child process, whose limits and rights it may change; it returns 0 for success, 77 to skip. */
void in_child(int (*check)(void *), void *argument);

/* True for an SDLF_ERROR_IO with this reason in its message. Prints both otherwise. */
bool fails_with(sdlf_status status, const char *reason);

#endif
