/* SPDX-License-Identifier: MIT */
/* Waiting for the other end of a pipe, which may never open: a signal ends the wait. */
#ifndef SDLF_APPS_SYSTEM_PIPE_H
#define SDLF_APPS_SYSTEM_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/status.h>

/* Wait until there is something to read, or end of file. False: a signal came (interrupt.h). */
bool pipe_wait_to_read(int file);

/* Write all `size` bytes to a named pipe or a device at `path`, once it has a reader, or, if `path` is "-", to standard
 * output. After a signal the reader has one second to accept the next part. Errors: SDLF_ERROR_IO,
 * SDLF_ERROR_INTERRUPTED. */
sdlf_status pipe_write(const char *path, const void *bytes, size_t size);

#endif
