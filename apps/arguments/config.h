/* SPDX-License-Identifier: MIT */
/* Options from files: '@run.conf', or '--config run.conf', stands for what is in that file, at the place where it
 * stands. A line is
 *
 *     name = value       --name=value; the value is the rest of the line
 *     name               --name, a flag
 *     # ...              a remark; so are empty lines
 *
 * Before each of these words stands one that says where it comes from, CONFIG_ORIGIN and FILE:LINE, for messages.
 *
 * As everywhere, of an option that is given twice the later counts: what follows on the command line. */
#ifndef SDLF_APPS_ARGUMENTS_CONFIG_H
#define SDLF_APPS_ARGUMENTS_CONFIG_H

#include <sdlf/status.h>

#define CONFIG_ORIGIN "--@="

/* Words in the place of those given, to be read and moved about. config_release frees them. */
typedef struct config_words {
    char **word, **owned; /* the same, of which the second stays in order */
    int count;
} config_words;

/* Replace the files among words[from .. count - 1]; what follows "--" stays. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT
 * with "FILE:LINE: ". End with config_release, whatever the status. */
sdlf_status config_expand(config_words *expanded, int count, char *const *words, int from);
void config_release(config_words *expanded);

#endif
