/* SPDX-License-Identifier: MIT */
/* First fit: blocks in an arena, each at the lowest offset at which it overlaps no block placed before that lives at
 * the same time.
 *
 * A tree over time holds, for each of its stretches, the spans of memory that are taken throughout it, and those that
 * are taken in parts of it. A lifetime is some 2 log2(times) stretches, so that neither placing nor asking looks at
 * single blocks; and as blocks lie side by side, the spans are few. */
#ifndef SDLF_FRAMEWORK_PLAN_FIRST_FIT_H
#define SDLF_FRAMEWORK_PLAN_FIRST_FIT_H

#include <stdint.h>

#include <sdlf/status.h>

typedef struct first_fit first_fit;

/* Times are 0 .. times - 1. The caller's, NULL when memory is out; free with first_fit_free (accepts NULL). */
first_fit *first_fit_create(int times);
void first_fit_free(first_fit *fit);

/* Room for `bytes` in times first .. last, both included. Offsets and bytes add up to less than 2^63. */
sdlf_status first_fit_place(first_fit *fit, int first, int last, int64_t bytes, int64_t *offset);

/* How many spans have been looked at so far. */
int64_t first_fit_looks(const first_fit *fit);

#endif
