/* SPDX-License-Identifier: MIT */
/* What reading JSON may take: an empty object of two bytes becomes some 250, and whoever opens a file has not asked for that. */
#ifndef SDLF_APPS_INPUT_JSON_SIZE_H
#define SDLF_APPS_INPUT_JSON_SIZE_H

#include <stddef.h>

#include <sdlf/status.h>

/* Read a file of JSON values, one or one in each line, which may all be held at once: input_read, and what the values take, estimated from the
 * text's signs in one walk, is what reading may take (sdlf_machine_check_reading). A regular file that is too large by itself is not
 * read. Errors: those of the two, SDLF_ERROR_MEMORY with the file's name. */
sdlf_status input_json_read(unsigned char **bytes, size_t *size, const char *path, size_t limit);

#endif
