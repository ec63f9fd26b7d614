/* SPDX-License-Identifier: MIT */
/* "Did you mean ...?": of the words that could stand somewhere, the one that is nearest to what was written there. For
 * messages of layers, data sets, formats and programs.
 *
 * Threads: a suggestion is a value: one thread at a time uses one.
 * Ownership: words are borrowed for as long as the suggestion is used.
 * Errors: none. */
#ifndef SDLF_SUGGEST_H
#define SDLF_SUGGEST_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_suggestion {
    const char *word;     /* what was written; borrowed */
    const char *best;     /* the nearest candidate near enough, borrowed; NULL: none */
    int rank, difference; /* its: the smaller the nearer; of equal ranks, the one whose length is nearer counts */
} sdlf_suggestion;

/* Begin with {.word = word}, then offer every candidate. Case, and what of '-' and '_' stands between words, count for
 * nothing. Nearest of all is what the word means in other frameworks, "fully_connected" for "Linear"
 * (framework/aliases.c). */
void sdlf_suggest(sdlf_suggestion *suggestion, const char *candidate);

/* " (did you mean 'relu'?)", or nothing. */
typedef struct sdlf_suggestion_text {
    char text[128];
} sdlf_suggestion_text;
sdlf_suggestion_text sdlf_suggestion_print(const sdlf_suggestion *suggestion);

#ifdef __cplusplus
}
#endif
#endif
