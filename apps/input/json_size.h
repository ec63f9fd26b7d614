/* SPDX-License-Identifier: MIT */
/* What reading JSON may take: an empty object of two bytes becomes some 250, and whoever opens a file has not asked for that. */
#ifndef SDLF_APPS_INPUT_JSON_SIZE_H
#define SDLF_APPS_INPUT_JSON_SIZE_H

#include <stddef.h>

#include <sdlf/status.h>

/* May the values in this text, one or one in each line, all be held at once? What they take is estimated from the text's signs, in one walk.
 * It may be 128 MB and 32 times the text, which no report or log of ours comes near, and half of the memory that the process can have
 * (SDLF_MEMORY sets that). Errors: SDLF_ERROR_MEMORY, with the name of the file; those of sdlf_machine_look. */
sdlf_status input_json_check(const char *path, const void *text, size_t size);

#endif
