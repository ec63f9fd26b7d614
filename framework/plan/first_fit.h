/* SPDX-License-Identifier: MIT */
/* First-fit memory planning: each block in an arena gets the lowest offset at which it overlaps no previously placed
 * block whose lifetime intersects its own.
 *
 * A segment tree over time holds, for each of its intervals, the memory spans that are occupied throughout the interval
 * and those occupied in parts of it. A lifetime covers about 2 log2(times) intervals, so neither placement nor lookup
 * visits individual blocks; and because blocks are adjacent, the spans are few. */
#ifndef SDLF_FRAMEWORK_PLAN_FIRST_FIT_H
#define SDLF_FRAMEWORK_PLAN_FIRST_FIT_H

#include <stdint.h>

#include <sdlf/status.h>

typedef struct first_fit first_fit;

/* Times are 0 .. times - 1. The caller frees the result with first_fit_free (accepts NULL); NULL: out of memory. */
first_fit *first_fit_create(int times);
void first_fit_free(first_fit *fit);

/* Finds space for `bytes` during times first .. last, both included. Offsets and bytes add up to less than 2^63. */
sdlf_status first_fit_place(first_fit *fit, int first, int last, int64_t bytes, int64_t *offset);

/* The number of spans examined so far. */
int64_t first_fit_looks(const first_fit *fit);

#endif
