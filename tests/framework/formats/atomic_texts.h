/* SPDX-License-Identifier: MIT */
/* Writing short files whole or not at all, and looking at what came of it. */
#ifndef SDLF_TESTS_ATOMIC_TEXTS_H
#define SDLF_TESTS_ATOMIC_TEXTS_H

#include <stdbool.h>

#include <sdlf/status.h>

/* The text as an atomic file, committed, or abandoned where that fails. */
sdlf_status write_text(const char *path, const char *text);

/* The file's text, in static storage; NULL if there is no file. */
const char *text_of(const char *path);

/* How many files a folder has; -1: there is no such folder. */
int files_in(const char *folder);

/* A fresh folder below the test's own. */
const char *make_folder(const char *name);

/* Run a check in a process of its own, whose limits and rights it may change; it returns 0 for success, 77 to skip. */
void in_child(int (*check)(void *), void *argument);

/* Is it an SDLF_ERROR_IO with this reason in its message? Prints both where not. */
bool fails_with(sdlf_status status, const char *reason);

#endif
