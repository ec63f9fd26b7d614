/* SPDX-License-Identifier: MIT */
/* A file that the library writes by name, where the name may be standard output, "-", or a pipe.
 *
 * A stream cannot be written under a temporary name and renamed when complete: the library writes to a file in the
 * temporary folder, and its contents are then sent on. Any other target is written in place. */
#ifndef SDLF_APPS_OUTPUT_STREAM_H
#define SDLF_APPS_OUTPUT_STREAM_H

#include <sdlf/status.h>

typedef struct output_stream {
    const char *path; /* the path for the library to write */
    const char *target;
    char *folder, *staged; /* NULL: it is the target itself */
} output_stream;

/* Check that the target can be written. Errors: those of output_file_check. */
sdlf_status output_stream_check(const char *target);

/* Begin; `target` is borrowed. Whatever the status, end with output_stream_close. */
sdlf_status output_stream_open(output_stream *stream, const char *target);

/* Send what was written, if `status` is SDLF_OK, and end; else returns `status`. Errors: those of pipe_write;
 * SDLF_ERROR_IO. */
sdlf_status output_stream_close(output_stream *stream, sdlf_status status);

#endif
