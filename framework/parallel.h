/* SPDX-License-Identifier: MIT */
/* A parallel loop over numbered items. */
#ifndef SDLF_FRAMEWORK_PARALLEL_H
#define SDLF_FRAMEWORK_PARALLEL_H

#include <stdint.h>

typedef void parallel_work(void *context, int64_t item);

/* Calls `work` once for each item of [0, count), on the caller's thread and on as many others as make up `threads` (0:
 * one per CPU core). Free threads take the next item, so the order is undefined; all calls have finished on return. If
 * the system refuses to create a thread, the loop runs with fewer. */
void parallel_for(int64_t count, int threads, parallel_work *work, void *context);

#endif
