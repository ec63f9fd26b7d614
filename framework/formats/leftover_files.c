/* SPDX-License-Identifier: MIT */
#include "framework/formats/leftover_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/content_hash.h"

static const char infix[] = ".sdlf-tmp-";

enum { STEM = 96, HASH = 17 /* '-' and 16 digits */ };

/* The common prefix of the names of `name`'s temporary files. */
static void make_stem(char stem[STEM + 1], const char *name)
{
    size_t length = strlen(name), kept = STEM - HASH;
    if (length <= STEM) {
        memcpy(stem, name, length + 1);
        return;
    }
    while (kept > 0 && ((unsigned char)name[kept] & 0xC0) == 0x80) kept--; /* inside a character */
    memcpy(stem, name, kept);
    snprintf(stem + kept, HASH + 1, "-%016" PRIx64, content_hash(0, name, length));
}

void leftover_files_name(char temporary[LEFTOVER_NAME_SIZE], const char *name, int n)
{
    char stem[STEM + 1];
    make_stem(stem, name);
    snprintf(temporary, LEFTOVER_NAME_SIZE, "%s%s%ld-%d", stem, infix, (long)getpid(), n);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool leftover_files_lock(int file, const char *path)
{
    struct stat ours, there;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK; /* otherwise this file system has no locks */
    return fstat(file, &ours) == 0 && lstat(path, &there) == 0 && is_same_file(&ours, &there);
}

int leftover_files_hold(const char *path)
{
    for (;;) {
        struct stat locked, there;
        int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0) return -1;
        bool held = fstat(file, &locked) == 0 && S_ISREG(locked.st_mode) && flock(file, LOCK_EX) == 0;
        if (held && lstat(path, &there) == 0 && is_same_file(&locked, &there)) return file;
        int reason = errno;
        close(file);
        if (!held && reason != EINTR) return -1;
    }
}

/* Removes a file, unless a process has locked it. By the time it is locked, its name may belong to another file. */
static void remove_one(int folder, const char *found, leftover_files_test *is_left, void *context)
{
    struct stat locked, there;
    /* opened for writing, as some file systems require for locks; follows no link, and does not block on a pipe */
    int file = openat(folder, found, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &locked) == 0 && S_ISREG(locked.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(folder, found, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(&locked, &there) &&
        is_left(found, context))
        (void)unlinkat(folder, found, 0);
    close(file);
}

void leftover_files_remove_if(int folder, leftover_files_test *is_left, void *context)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with its own position */
    DIR *names = listed >= 0 ? fdopendir(listed) : NULL;
    if (names == NULL) {
        if (listed >= 0) close(listed);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;)
        if (is_left(entry->d_name, context)) remove_one(folder, entry->d_name, is_left, context);
    closedir(names);
}

/* True for "STEM.sdlf-tmp-PID-N". */
static bool is_temporary_of(const char *found, void *stem)
{
    static const char digits[] = "0123456789";
    size_t length = strlen(stem);
    if (strncmp(found, stem, length) != 0 || strncmp(found + length, infix, sizeof infix - 1) != 0) return false;
    const char *process = found + length + sizeof infix - 1;
    size_t first = strspn(process, digits);
    if (first == 0 || process[first] != '-') return false;
    size_t second = strspn(process + first + 1, digits);
    return second > 0 && process[first + 1 + second] == '\0';
}

void leftover_files_remove(int folder, const char *name)
{
    char stem[STEM + 1];
    make_stem(stem, name);
    leftover_files_remove_if(folder, is_temporary_of, stem);
}
