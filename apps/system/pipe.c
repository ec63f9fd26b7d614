/* SPDX-License-Identifier: MIT */
/* Waiting for the other end of a pipe. */
#include "apps/system/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "apps/system/interrupt.h"

/* A signal directly before a wait does not end it, so each wait is short. */
enum { MOMENT = 100 /* ms */, MOMENTS = 10 };

bool pipe_wait_to_read(int file)
{
    struct pollfd wait = {.fd = file, .events = POLLIN};
    while (interrupt_signal() == 0)
        if (poll(&wait, 1, MOMENT) != 0 && wait.revents != 0) return true;
    return false;
}

/* Waits a moment for `file` to accept more, or, if it is negative, for a reader. False: a signal came, and enough
 * moments have passed since. */
static bool wait_to_write(int file, int *moments)
{
    struct pollfd wait = {.fd = file, .events = POLLOUT};
    if (poll(&wait, 1, MOMENT) > 0) *moments = 0;
    if (interrupt_signal() != 0) ++*moments;
    return *moments < MOMENTS;
}

static sdlf_status fail_without_reader(const char *name)
{
    return sdlf_fail(SDLF_ERROR_INTERRUPTED, "nothing reads %s", name);
}

/* Opens a pipe; without blocking, that succeeds only once it has a reader. */
static sdlf_status open_to_write(int *file, const char *path)
{
    int moments = 0;
    while ((*file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
        if (errno != ENXIO && errno != EINTR)
            return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
        if (!wait_to_write(-1, &moments)) return fail_without_reader(path);
    }
    return SDLF_OK;
}

sdlf_status pipe_write(const char *path, const void *bytes, size_t size)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard output" : path, *at = bytes;
    int file = STDOUT_FILENO, moments = 0;
    sdlf_status status = standard ? SDLF_OK : open_to_write(&file, path);
    while (status == SDLF_OK && size > 0) {
        if (!wait_to_write(file, &moments)) {
            status = fail_without_reader(name);
            break;
        }
        /* a blocking standard output may wait on a write of more than PIPE_BUF bytes: whether it blocks was set by our
         * parent */
        ssize_t count = write(file, at, standard && size > PIPE_BUF ? PIPE_BUF : size);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (count < 0) {
            bool left = errno == EPIPE && interrupt_signal() == SIGPIPE;
            status = left ? fail_without_reader(name)
                          : sdlf_fail(SDLF_ERROR_IO, "cannot write '%s': %s", name, strerror(errno));
            break;
        }
        at += count;
        size -= (size_t)count;
    }
    if (!standard && file >= 0 && close(file) != 0 && status == SDLF_OK)
        status = sdlf_fail(SDLF_ERROR_IO, "cannot write '%s': %s", name, strerror(errno));
    return status;
}
