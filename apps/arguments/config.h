/* SPDX-License-Identifier: MIT */
/* Options from files: '@run.conf', or '--config run.conf', is replaced by the contents of that file. A line is one
 * of
 *
 *     name = value       --name=value; the value is the rest of the line
 *     name               --name, a flag
 *     # ... a comment; empty lines are ignored too
 *
 * Each of these words is preceded by one that gives its origin for messages, CONFIG_ORIGIN and FILE:LINE.
 *
 * If an option is given twice, the later one counts, so words that follow on the command line override the file. */
#ifndef SDLF_APPS_ARGUMENTS_CONFIG_H
#define SDLF_APPS_ARGUMENTS_CONFIG_H

#include <sdlf/status.h>

#define CONFIG_ORIGIN "--@="

/* The expanded words, which the parser may reorder. config_release frees them. */
typedef struct config_words {
    char **word, **owned; /* the same words; `owned` keeps its order */
    int count;
} config_words;

/* Expand the files among words[from .. count - 1]; words after "--" are unchanged. Errors: SDLF_ERROR_IO;
 * SDLF_ERROR_FORMAT with "FILE:LINE: ". End with config_release, whatever the status. */
sdlf_status config_expand(config_words *expanded, int count, char *const *words, int from);
void config_release(config_words *expanded);

#endif
