/* "did you mean ...?" */
#ifndef SDLF_APPS_ARGUMENTS_SUGGEST_H
#define SDLF_APPS_ARGUMENTS_SUGGEST_H

#include <stdbool.h>

typedef struct suggestion {
    const char *word;     /* what the user wrote; borrowed */
    const char *best;     /* the nearest candidate near enough, borrowed; NULL: none */
    int rank, difference; /* its: the smaller the nearer; of equal ranks, the one whose length is nearer counts */
} suggestion;

/* Begin with {.word = word}, then offer every candidate. */
void suggest_offer(suggestion *suggestion, const char *candidate);

#endif
