/* SPDX-License-Identifier: MIT */
/* Quoting of file names in printed commands that users copy back into a shell. */
#ifndef SDLF_APPS_OUTPUT_QUOTE_H
#define SDLF_APPS_OUTPUT_QUOTE_H

/* Quote one word for a shell: unchanged if it has no special character, else in quotes. The caller frees the
 * result. */
char *quote_word(const char *word);

#endif
