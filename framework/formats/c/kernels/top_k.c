/* SPDX-License-Identifier: MIT */
/* The k largest (or smallest) elements in order along the middle axis of outer x length x inner, and their indices;
 * among equal ones the first comes first, and NaN before all. y and index may be NULL. */
static void top_k(const float *x, float *y, int64_t *index, int outer, int length, int inner, int k, int smallest)
{
    for (int row = 0; row < outer * inner; row++) {
        const float *line = x + row / inner * length * inner + row % inner;
        int last = -1; /* the previous one */
        for (int rank = 0; rank < k; rank++) {
            const int at = row / inner * k * inner + row % inner + rank * inner;
            int best = -1;
            for (int side = 0; side < 2 && best < 0; side++) /* equal to the previous one and after it, then beyond */
                for (int i = 0; i < length; i++) {
                    const float v = line[i * inner];
                    if (last >= 0) {
                        const float before = line[last * inner];
                        const int equal = v == before || (v != v && before != before);
                        const int behind = before != before ? v == v : smallest ? v > before : v < before;
                        if (side == 0 ? !equal || i <= last : !behind) continue;
                    }
                    if (best >= 0) {
                        const float leader = line[best * inner];
                        if (leader != leader) continue;
                        if (v == v && !(smallest ? v < leader : v > leader)) continue;
                    }
                    best = i;
                }
            if (y != NULL) y[at] = line[best * inner];
            if (index != NULL) index[at] = best;
            last = best;
        }
    }
}
