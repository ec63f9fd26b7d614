/* SPDX-License-Identifier: MIT */
/* a^b with wraparound; for negative b it is 0, except for a = 1 and -1. */
static int64_t integer_power(int64_t a, int64_t b)
{
    uint64_t power = 1, square = (uint64_t)a;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    for (; b > 0; b /= 2, square *= square)
        if (b % 2 == 1) power *= square;
    return (int64_t)power;
}
