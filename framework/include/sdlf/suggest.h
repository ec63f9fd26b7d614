/* SPDX-License-Identifier: MIT */
/* "Did you mean ...?": finds the valid word that is nearest to the one that was written. For messages of layers, data
 * sets, formats and programs.
 *
 * Threads: a suggestion is a value, used by one thread at a time.
 * Ownership: words are borrowed for as long as the suggestion is used.
 * Errors: none. */
#ifndef SDLF_SUGGEST_H
#define SDLF_SUGGEST_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_suggestion {
    const char *word;     /* what was written; borrowed */
    const char *best;     /* the nearest candidate, if near enough; borrowed; NULL: none */
    int rank, difference; /* of `best`: smaller is nearer; among equal ranks the nearest length wins */
} sdlf_suggestion;

/* Begin with {.word = word}, then offer every candidate. Case and the separators '-' and '_' are ignored. The nearest
 * candidate of all is the one that the word means in other frameworks, such as "fully_connected" for "Linear"
 * (framework/aliases.c). */
void sdlf_suggest(sdlf_suggestion *suggestion, const char *candidate);

/* " (did you mean 'relu'?)", or an empty text. */
typedef struct sdlf_suggestion_text {
    char text[128];
} sdlf_suggestion_text;
sdlf_suggestion_text sdlf_suggestion_print(const sdlf_suggestion *suggestion);

#ifdef __cplusplus
}
#endif
#endif
