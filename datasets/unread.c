/* SPDX-License-Identifier: MIT */
#include "datasets/unread.h"

#include <stdlib.h>
#include <string.h>

bool unread_begin(unread_files *unread, int64_t count)
{
    unread->why = calloc((size_t)count + 1, sizeof *unread->why);
    unread->count = unread->why != NULL ? count : 0;
    return unread->why != NULL;
}

bool unread_note(unread_files *unread, int64_t file)
{
    unread->why[file] = strdup(sdlf_error_message());
    return unread->why[file] != NULL;
}

const char *unread_first(const unread_files *unread)
{
    for (int64_t i = 0; i < unread->count; i++)
        if (unread->why[i] != NULL) return unread->why[i];
    return NULL;
}

void unread_give(unread_files *unread, sdlf_dataset *dataset)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < unread->count; i++)
        if (unread->why[i] != NULL) unread->why[kept++] = unread->why[i];
    if (kept == 0) return;
    dataset->unread = kept;
    dataset->unread_files = unread->why;
    dataset->unread_why = unread->why[0];
    unread->why = NULL;
    unread->count = 0;
}

void unread_release(unread_files *unread)
{
    for (int64_t i = 0; i < unread->count; i++) free(unread->why[i]);
    free(unread->why);
    *unread = (unread_files){.count = 0};
}
