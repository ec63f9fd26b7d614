/* SPDX-License-Identifier: MIT */
/* The index of the largest (or smallest) element along the middle axis of outer x length x inner; among equal ones the
 * first, or the last. NaN wins over all. */
static void arg_reduce(const float *x, int64_t *y, int outer, int length, int inner, int smallest, int last)
{
    for (int row = 0; row < outer * inner; row++) {
        const float *line = x + row / inner * length * inner + row % inner;
        int best = 0;
        for (int i = 1; i < length; i++) {
            const float now = line[i * inner], then = line[best * inner];
            const int equal = now == then || (now != now && then != then);
            const int better = then == then && (now != now || (smallest ? now < then : now > then));
            if (equal ? last : better) best = i;
        }
        y[row] = best;
    }
}
