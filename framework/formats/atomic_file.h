/* SPDX-License-Identifier: MIT */
/* Atomic creation and replacement of a file.
 *
 * Bytes go to a temporary file in the target's folder (leftover_files.h has its name). Committing writes it through to
 * the disk, renames it over the target and writes the folder through. Until the rename the target is unchanged: a full
 * disk, an error or a killed process leaves an old file intact. A killed process also leaves its temporary file, until
 * the same target is next written.
 *
 * A file that replaces an existing one gets its permissions, and its owner and group if this process may give files
 * away (root may) or is in that group; otherwise they are the process's, and the group's members get the permissions of
 * others. Access control lists and extended attributes are not kept. The file is a new one: other hard links keep the
 * old content.
 *
 * A target that is a symbolic link remains one: the file it points to is replaced, or created. A target that is no
 * regular file (/dev/null, a pipe) is written to directly, since renaming would replace it. A mount point (a single
 * file bound into a container) cannot be renamed over: the complete temporary file is copied over it, and is kept if
 * that fails halfway, so that one of the two is intact at any time. */
#ifndef SDLF_FORMATS_ATOMIC_FILE_H
#define SDLF_FORMATS_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdlf/status.h>

typedef struct atomic_file {
    char *target;    /* owned; symbolic links resolved */
    char *temporary; /* owned; NULL if the target is written to directly */
    int descriptor;
    int folder; /* the target's folder, opened to be synced; -1 if it cannot be read, or without a temporary */
    uint64_t written;
    bool has_kin;
} atomic_file;

/* Starts a file. On success end it with commit or abandon; after a failure there is nothing to end. Every failure here
 * and below is SDLF_ERROR_IO with the path and the system's reason, or SDLF_ERROR_MEMORY. */
sdlf_status atomic_file_open(atomic_file *file, const char *path);

/* The same, with the temporary file named as for `kin`, a name in the target's folder, so that it is
 * removed with that file's leftovers. Committing waits for the owner of a lock on the target
 * (leftover_files.h). */
sdlf_status atomic_file_open_with(atomic_file *file, const char *path, const char *kin);

/* Appends bytes. After a failure the file can only be abandoned. */
sdlf_status atomic_file_write(atomic_file *file, const void *bytes, size_t count);

/* Replaces the target. Ends the file, also after a failure; the message names a temporary file that was kept. */
sdlf_status atomic_file_commit(atomic_file *file);

/* The same, and the file stays locked (leftover_files.h) until the caller closes *lock, also after a failure; -1: there
 * is no lock. */
sdlf_status atomic_file_commit_locked(atomic_file *file, int *lock);

/* Removes the temporary file and ends. */
void atomic_file_abandon(atomic_file *file);

/* Checks whether atomic_file_open would succeed. Leaves nothing behind, even when killed, if the file system has
 * unnamed files (O_TMPFILE); otherwise opens and abandons a file. A target that is no regular file is not opened. */
sdlf_status atomic_file_check(const char *path);

#endif
