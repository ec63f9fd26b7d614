/* SPDX-License-Identifier: MIT */
/* Bounded memory for reading JSON: an empty object of two bytes becomes about 250, which the file's size does not show. */
#ifndef SDLF_APPS_INPUT_JSON_SIZE_H
#define SDLF_APPS_INPUT_JSON_SIZE_H

#include <stddef.h>

#include <sdlf/status.h>

/* Read a file with one JSON value, or one on each line, which may all be held at once: calls input_read, then checks the memory that the
 * values would take, estimated in one pass over the text's punctuation (sdlf_machine_check_reading). A regular file that is too large by
 * itself is not read. Errors: those of both, SDLF_ERROR_MEMORY with the file's name. */
sdlf_status input_json_read(unsigned char **bytes, size_t *size, const char *path, size_t limit);

#endif
