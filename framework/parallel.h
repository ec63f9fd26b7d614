/* SPDX-License-Identifier: MIT */
/* Work on numbered items, shared among threads. */
#ifndef SDLF_FRAMEWORK_PARALLEL_H
#define SDLF_FRAMEWORK_PARALLEL_H

#include <stdint.h>

typedef void parallel_work(void *context, int64_t item);

/* Call `work` once for each item of [0, count), on the caller's thread and on as many others as make up `threads` (0:
 * one for each processor). The next free thread takes the next item, so that the order is not defined; all calls have
 * ended on return. A thread that the system does not give is done without. */
void parallel_for(int64_t count, int threads, parallel_work *work, void *context);

#endif
