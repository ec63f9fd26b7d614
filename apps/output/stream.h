/* SPDX-License-Identifier: MIT */
/* A file that the library writes by its name, where that may be standard output, "-", or a pipe.
 *
 * Those cannot take the library's file under another name, nor wait for it to be whole: it is written to a folder for
 * temporary files, and what it holds is sent on. Anything else is written where it belongs. */
#ifndef SDLF_APPS_OUTPUT_STREAM_H
#define SDLF_APPS_OUTPUT_STREAM_H

#include <sdlf/status.h>

typedef struct output_stream {
    const char *path; /* what the library is to write */
    const char *target;
    char *folder, *staged; /* NULL: it is the target itself */
} output_stream;

/* Can something be written there? Errors: those of output_file_check. */
sdlf_status output_stream_check(const char *target);

/* Begin; `target` is borrowed. Whatever the status, end with output_stream_close. */
sdlf_status output_stream_open(output_stream *stream, const char *target);

/* Send what was written, if `status` is SDLF_OK, and end; else returns `status`. Errors: those of pipe_write;
 * SDLF_ERROR_IO. */
sdlf_status output_stream_close(output_stream *stream, sdlf_status status);

#endif
