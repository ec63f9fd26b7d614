/* SPDX-License-Identifier: MIT */
#include "framework/formats/overwrite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/portable.h"

enum { AT_ONCE = 16384 };

/* Extends the target to at least `size`; on failure it is unchanged, or *touched is set if it could not be
 * restored. */
static bool reserve(int target, off_t size, bool *touched)
{
    struct stat old;
    if (fstat(target, &old) != 0) return false;
    if (old.st_size >= size) return true;
    int reason = portable_reserve(target, size);
    if (reason == 0 || reason == EOPNOTSUPP || reason == EINVAL)
        return true; /* the last two: unsupported by this file system */
    *touched = ftruncate(target, old.st_size) != 0;
    errno = reason;
    return false;
}

static bool write_all(int target, const char *bytes, ssize_t count)
{
    while (count > 0) {
        ssize_t done = write(target, bytes, (size_t)count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        bytes += done;
        count -= done;
    }
    return true;
}

static bool copy_all(int target, int source, off_t size)
{
    char bytes[AT_ONCE];
    for (;;) {
        ssize_t count = read(source, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) return ftruncate(target, size) == 0 && fsync(target) == 0;
        if (count < 0 || !write_all(target, bytes, count)) return false;
    }
}

sdlf_status overwrite_file(const char *target, const char *source, bool *touched)
{
    *touched = false;
    struct stat new;
    bool done = false;
    int from = open(source, O_RDONLY | O_CLOEXEC), to = open(target, O_RDWR | O_CLOEXEC);
    if (from >= 0 && to >= 0 && fstat(from, &new) == 0 && reserve(to, new.st_size, touched)) {
        *touched = true;
        done = copy_all(to, from, new.st_size);
    }
    int reason = errno;
    if (from >= 0) close(from);
    if (to >= 0 && close(to) != 0 && done) {
        reason = errno;
        done = false;
    }
    if (done) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "cannot write over '%s': %s", target, strerror(reason));
}
