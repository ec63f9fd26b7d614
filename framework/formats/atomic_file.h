/* SPDX-License-Identifier: MIT */
/* A file that appears whole or not at all.
 *
 * Bytes go to a temporary file in the target's folder (leftover_files.h has its name). Committing writes it through to
 * the disk, renames it over the target and writes the folder through. Until the rename the target is what it was: a
 * full disk, an error or a killed process leaves an old file whole. A killed process leaves its temporary file too,
 * until the same target is next written.
 *
 * What takes the place of an existing file has its permissions, and its owner and group where this process may give
 * files away (root may) or is in that group; else they are the process's, and the group's members may do what everybody
 * may. Access control lists and extended attributes are not kept. The file is a new one: other hard links keep the old
 * content.
 *
 * A target that is a symbolic link keeps being one: the file it points to is replaced, or made. A target that is no
 * regular file (/dev/null, a pipe) is written to directly, since renaming would replace it. Over a mount point (a
 * single file that a container is given) nothing can be renamed: the whole temporary file is copied over it, and stays
 * where that fails on the way, so that one of the two is whole at any time. */
#ifndef SDLF_FORMATS_ATOMIC_FILE_H
#define SDLF_FORMATS_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdlf/status.h>

typedef struct atomic_file {
    char *target;    /* owned; symbolic links resolved */
    char *temporary; /* owned; NULL when the target is written to directly */
    int descriptor;
    int folder; /* the target's folder, opened to be synced; -1 when it may not be read, or with no temporary */
    uint64_t written;
    bool has_kin;
} atomic_file;

/* Start a file. On success end it with commit or abandon; after a failure there is nothing to end. Every failure here
 * and below is SDLF_ERROR_IO with the path and the system's reason, or SDLF_ERROR_MEMORY. */
sdlf_status atomic_file_open(atomic_file *file, const char *path);

/* The same, with a temporary file that is called as one of `kin` would be, a name in the target's folder, and so goes
 * with that file's leftovers. Committing waits for whoever has locked a file with the target's name
 * (leftover_files.h). */
sdlf_status atomic_file_open_with(atomic_file *file, const char *path, const char *kin);

/* Append bytes. After a failure the file can only be abandoned. */
sdlf_status atomic_file_write(atomic_file *file, const void *bytes, size_t count);

/* Make the file what was written. Ends it, also after a failure; the message tells of a temporary file that stays. */
sdlf_status atomic_file_commit(atomic_file *file);

/* The same, and the file stays locked (leftover_files.h) until *lock is closed, which is the caller's to do, also after
 * a failure; -1: there is no lock. */
sdlf_status atomic_file_commit_locked(atomic_file *file, int *lock);

/* Remove the temporary file and end. */
void atomic_file_abandon(atomic_file *file);

/* Would atomic_file_open succeed? Leaves nothing behind, even when killed, where the file system has files without
 * names (O_TMPFILE); elsewhere a file is opened and abandoned. A target that is no regular file is not opened. */
sdlf_status atomic_file_check(const char *path);

#endif
