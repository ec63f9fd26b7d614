/* SPDX-License-Identifier: MIT */
/* Counting calls that change files. See killed_calls.h. */
#include "framework/formats/killed_calls.h"

#include <signal.h>
#include <sys/types.h>

static int calls, killed_at;

void killed_calls_begin(int n)
{
    calls = 0;
    killed_at = n;
}

static void count_call(void)
{
    if (++calls == killed_at) raise(SIGKILL);
}

ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count)
{
    count_call();
    return __real_write(file, bytes, count);
}

int __real_fsync(int file);
int __wrap_fsync(int file);
int __wrap_fsync(int file)
{
    count_call();
    return __real_fsync(file);
}

int __real_fchmod(int file, mode_t mode);
int __wrap_fchmod(int file, mode_t mode);
int __wrap_fchmod(int file, mode_t mode)
{
    count_call();
    return __real_fchmod(file, mode);
}

int __real_fchown(int file, uid_t owner, gid_t group);
int __wrap_fchown(int file, uid_t owner, gid_t group);
int __wrap_fchown(int file, uid_t owner, gid_t group)
{
    count_call();
    return __real_fchown(file, owner, group);
}

int __real_flock(int file, int operation);
int __wrap_flock(int file, int operation);
int __wrap_flock(int file, int operation)
{
    count_call();
    return __real_flock(file, operation);
}

int __real_rename(const char *old, const char *new);
int __wrap_rename(const char *old, const char *new);
int __wrap_rename(const char *old, const char *new)
{
    count_call();
    return __real_rename(old, new);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    count_call();
    return __real_unlink(path);
}

int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags)
{
    count_call();
    return __real_unlinkat(folder, name, flags);
}
