/* SPDX-License-Identifier: MIT */
/* Files of a data set that cannot be read and are left out, each with its message. */
#ifndef SDLF_DATASETS_UNREAD_H
#define SDLF_DATASETS_UNREAD_H

#include <sdlf/dataset.h>

typedef struct unread_files {
    char **why;    /* of each file, owned; NULL: it is read */
    int64_t count; /* of files */
} unread_files;

/* For a set of `count` files; false: out of memory. */
bool unread_begin(unread_files *unread, int64_t count);

/* That file cannot be read, as this thread's message says (sdlf_error_message). Threads note different files at once.
 * False: out of memory. */
bool unread_note(unread_files *unread, int64_t file);

/* The message of the first such file; NULL: there is none. */
const char *unread_first(const unread_files *unread);

/* All messages become the set's; what is left is to be released. */
void unread_give(unread_files *unread, sdlf_dataset *dataset);

void unread_release(unread_files *unread);

#endif
