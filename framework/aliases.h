/* SPDX-License-Identifier: MIT */
/* What other frameworks call things: the words that their users write, and SDLF's for the same. For suggestions only:
 * none of them is taken for the other. Layers, fields of layers, functions, options of the program and its commands. */
#ifndef SDLF_FRAMEWORK_ALIASES_H
#define SDLF_FRAMEWORK_ALIASES_H

/* Lower case, without '-' and '_', as sdlf_suggest compares them; what ends the table has a NULL. One word may mean
 * several things, of which those that could stand in its place count. */
typedef struct sdlf_alias {
    const char *written, *meant;
} sdlf_alias;

extern const sdlf_alias sdlf_aliases[];

#endif
