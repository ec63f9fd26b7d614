/* SPDX-License-Identifier: MIT */
/* See portable.h. */
#include "framework/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- processors ---- */

#ifdef __linux__
#include <sched.h>
#include <sys/mman.h>

typedef struct processor_set {
    cpu_set_t bits[8]; /* 8192 processors */
} processor_set;

int portable_processors(void)
{
    processor_set usable;
    if (sched_getaffinity(0, sizeof usable, usable.bits) == 0) return CPU_COUNT_S(sizeof usable, usable.bits);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT_MAX ? (int)online : 1;
}

void portable_bind(pthread_t thread, int index)
{
    processor_set usable, one;
    if (sched_getaffinity(0, sizeof usable, usable.bits) != 0) return;
    for (size_t i = 0; i < 8 * sizeof usable; i++) {
        if (!CPU_ISSET_S(i, sizeof usable, usable.bits) || index-- > 0) continue;
        CPU_ZERO_S(sizeof one, one.bits);
        CPU_SET_S(i, sizeof one, one.bits);
        pthread_setaffinity_np(thread, sizeof one, one.bits);
        return;
    }
}
#else
int portable_processors(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT_MAX ? (int)online : 1;
}

void portable_bind(pthread_t thread, int index)
{
    (void)thread, (void)index;
}
#endif

/* ---- files ---- */

int portable_rename_new(const char *from, const char *to)
{
#ifdef RENAME_NOREPLACE
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
#else
    if (link(from, to) != 0) {
        if (errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP) errno = ENOSYS; /* no hard links here */
        return -1;
    }
    (void)unlink(from);
    return 0;
#endif
}

int portable_open_nameless(const char *folder)
{
#ifdef O_TMPFILE
    return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR);
#else
    (void)folder;
    errno = EOPNOTSUPP;
    return -1;
#endif
}

int portable_memory_file(const char *name)
{
#ifdef MFD_CLOEXEC
    return memfd_create(name, MFD_CLOEXEC);
#else
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s-XXXXXX", folder != NULL ? folder : "/tmp", name);
    int file = mkstemp(path);
    if (file < 0) return -1;
    (void)unlink(path);
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    return file;
#endif
}

void portable_descriptor_path(char *path, size_t size, int descriptor)
{
#ifdef __linux__
    snprintf(path, size, "/proc/self/fd/%d", descriptor);
#else
    (void)lseek(descriptor, 0, SEEK_SET); /* the opened file shares this file position */
    snprintf(path, size, "/dev/fd/%d", descriptor);
#endif
}

int portable_reserve(int file, off_t size)
{
#ifdef __APPLE__
    (void)file, (void)size;
    return EOPNOTSUPP;
#else
    return posix_fallocate(file, 0, size);
#endif
}

struct timespec portable_modified(const struct stat *file)
{
#ifdef __APPLE__
    return file->st_mtimespec;
#else
    return file->st_mtim;
#endif
}
