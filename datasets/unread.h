/* SPDX-License-Identifier: MIT */
/* The files of a data set that cannot be read and are skipped, each with its error message. */
#ifndef SDLF_DATASETS_UNREAD_H
#define SDLF_DATASETS_UNREAD_H

#include <sdlf/dataset.h>

typedef struct unread_files {
    char **why;    /* message per file, owned; NULL: it was read */
    int64_t count; /* of files */
} unread_files;

/* For a set of `count` files; false: out of memory. */
bool unread_begin(unread_files *unread, int64_t count);

/* Records that a file cannot be read, with this thread's sdlf_error_message(). Threads may note different files
 * concurrently. False: out of memory. */
bool unread_note(unread_files *unread, int64_t file);

/* The message of the first such file; NULL: there is none. */
const char *unread_first(const unread_files *unread);

/* Moves all messages to the data set; release the rest afterwards. */
void unread_give(unread_files *unread, sdlf_dataset *dataset);

void unread_release(unread_files *unread);

#endif
