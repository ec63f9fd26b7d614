/* Nearest words: the Damerau-Levenshtein distance (insertions, deletions, changes, and exchanges of neighbours). */
#include "apps/arguments/suggest.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 40 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int distance_between(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST) return 2 * LONGEST;
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = smaller(change, smaller(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[n][m];
}

static int common_prefix(const char *a, const char *b)
{
    int length = 0;
    while (a[length] && a[length] == b[length]) length++;
    return length;
}

/* Is the candidate a whole word of what was written: "batch" of "batch-size", "epochs" of "num-epochs", "net" of "network"? */
static bool contains(const char *word, const char *candidate)
{
    size_t length = strlen(word), part = strlen(candidate);
    if (part < 3 || length <= part) return false;
    if (strncasecmp(word, candidate, part) == 0) return true;
    return word[length - part - 1] == '-' && strcasecmp(word + length - part, candidate) == 0;
}

/* How far the candidate is from the word, and -1 where it is none. An abbreviation is nearest. Of letters that are wrong, one
 * may be in a short word and a third in a long one; words that begin alike are nearer. */
static int rank_of(const char *word, const char *candidate)
{
    size_t length = strlen(word);
    if (length >= 3 && strncasecmp(word, candidate, length) == 0) return 0;
    int distance = distance_between(word, candidate), limit = length < 6 ? 1 : (int)length / 3;
    if (distance <= limit) return 4 * distance - smaller(common_prefix(word, candidate), 3);
    return contains(word, candidate) ? 6 : -1;
}

void suggest_offer(suggestion *s, const char *candidate)
{
    int rank = rank_of(s->word, candidate), difference = abs((int)strlen(s->word) - (int)strlen(candidate));
    if (rank < 0) return;
    if (s->best && (s->rank < rank || (s->rank == rank && s->difference <= difference))) return;
    s->best = candidate;
    s->rank = rank;
    s->difference = difference;
}
