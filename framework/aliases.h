/* SPDX-License-Identifier: MIT */
/* Names in other frameworks: words that their users write, with SDLF's word for the same thing, for layers, fields of
 * layers, functions, commands of the program and their options. They are only suggested, never accepted instead. */
#ifndef SDLF_FRAMEWORK_ALIASES_H
#define SDLF_FRAMEWORK_ALIASES_H

/* Lower case, without '-' and '_', as sdlf_suggest compares them; NULL ends the table. A word may have several
 * meanings, of which only those that are valid candidates count. */
typedef struct sdlf_alias {
    const char *written, *meant;
} sdlf_alias;

extern const sdlf_alias sdlf_aliases[];

#endif
