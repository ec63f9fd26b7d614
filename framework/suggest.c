/* SPDX-License-Identifier: MIT */
/* Nearest words: words that other frameworks use for the same thing, then the Damerau-Levenshtein distance (insertions,
 * deletions, substitutions, and transpositions of neighbours). */
#include <sdlf/suggest.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/aliases.h"

enum {
    LONGEST = 40,
    ROOT = 4, /* "convolution" stands for "conv2d" */
    MEANT = -1,
    ABBREVIATED = 0,
    NONE = INT_MAX,
};

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The character that is compared. */
static int letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c == '_' ? '-' : c;
}

/* True if the first `length` characters agree. */
static bool agree(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (a[i] == '\0' || letter(a[i]) != letter(b[i])) return false;
    }
    return true;
}

static int distance_between(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST) return INT_MAX / 8;
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int change = d[i - 1][j - 1] + (letter(a[i - 1]) != letter(b[j - 1]));
            d[i][j] = smaller(change, smaller(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1])) {
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[n][m];
}

static int common_prefix(const char *a, const char *b)
{
    int length = 0;
    while (a[length] && letter(a[length]) == letter(b[length])) length++;
    return length;
}

/* True if the candidate is a whole word of what was written: "batch" in "batch-size", "epochs" in "num-epochs", "net"
 * in "network". */
static bool contains(const char *word, const char *candidate)
{
    size_t length = strlen(word), part = strlen(candidate);
    if (part < 3 || length <= part) return false;
    if (agree(word, candidate, part)) return true;
    return letter(word[length - part - 1]) == '-' && agree(word + length - part, candidate, part);
}

/* True if they are equal except for case and separators. */
static bool same(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "-_");
        b += strspn(b, "-_");
        if (*a == '\0' || letter(*a) != letter(*b)) return *a == *b;
    }
}

/* True if the word ("Linear" in "nn.Linear") is the candidate, or another framework's name for it. */
static bool means(const char *word, const char *candidate)
{
    const char *dot = strrchr(word, '.'), *last = dot != NULL ? dot + 1 : word;
    if (same(last, candidate)) return true;
    for (const sdlf_alias *alias = sdlf_aliases; alias->written != NULL; alias++)
        if (strcmp(alias->meant, candidate) == 0 && same(last, alias->written)) return true;
    return false;
}

/* The distance of the candidate from the word; NONE if it is too large. Nearest is one that means the same, then an
 * abbreviation. One wrong letter is allowed in a short word, a third of the letters in a long one; words with a common
 * beginning are nearer. */
static int rank_of(const char *word, const char *candidate)
{
    size_t length = strlen(word);
    if (means(word, candidate)) return MEANT;
    if (length >= 3 && agree(word, candidate, length)) return ABBREVIATED;
    int distance = distance_between(word, candidate), limit = length < 6 ? 1 : (int)length / 3;
    if (distance <= limit) return 4 * distance - smaller(common_prefix(word, candidate), 3);
    if (contains(word, candidate)) return 6;
    return common_prefix(word, candidate) >= ROOT ? 7 : NONE;
}

void sdlf_suggest(sdlf_suggestion *s, const char *candidate)
{
    if (s == NULL || s->word == NULL || candidate == NULL) return;
    int rank = rank_of(s->word, candidate), difference = abs((int)strlen(s->word) - (int)strlen(candidate));
    if (rank == NONE) return;
    if (s->best && (s->rank < rank || (s->rank == rank && s->difference <= difference))) return;
    s->best = candidate;
    s->rank = rank;
    s->difference = difference;
}

sdlf_suggestion_text sdlf_suggestion_print(const sdlf_suggestion *suggestion)
{
    sdlf_suggestion_text text = {""};
    if (suggestion != NULL && suggestion->best != NULL)
        snprintf(text.text, sizeof text.text, " (did you mean '%s'?)", suggestion->best);
    return text;
}
