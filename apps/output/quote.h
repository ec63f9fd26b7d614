/* SPDX-License-Identifier: MIT */
/* Names of files inside commands that people copy from the terminal back into a shell. */
#ifndef SDLF_APPS_OUTPUT_QUOTE_H
#define SDLF_APPS_OUTPUT_QUOTE_H

/* One word as a shell reads it: as it is where no character means anything, else between quotes. The caller's to
 * free. */
char *quote_word(const char *word);

#endif
