/* Nearest words: the Damerau-Levenshtein distance (insertions, deletions, changes, and exchanges of neighbours). */
#include "apps/suggest.h"

#include <stddef.h>
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

void suggest_offer(suggestion *s, const char *candidate)
{
    size_t length = strlen(s->word);
    int distance = distance_between(s->word, candidate);
    /* an abbreviation is always near; otherwise a third of the letters may be wrong */
    if (length >= 3 && strncasecmp(s->word, candidate, length) == 0) {
        distance = 1;
    } else if (distance > 1 + (int)length / 4) {
        return;
    }
    if (s->best && s->distance <= distance) return;
    s->best = candidate;
    s->distance = distance;
}
