/* SPDX-License-Identifier: MIT */
/* Threads that fetch items from a shared counter. */
#include "framework/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include <sdlf/machine.h>

enum { MOST_THREADS = 64 };

typedef struct shared_work {
    parallel_work *work;
    void *context;
    int64_t count;
    _Atomic int64_t next;
} shared_work;

static void *take_items(void *argument)
{
    shared_work *shared = argument;
    for (int64_t i; (i = atomic_fetch_add(&shared->next, 1)) < shared->count;) shared->work(shared->context, i);
    return NULL;
}

void parallel_for(int64_t count, int threads, parallel_work *work, void *context)
{
    pthread_t thread[MOST_THREADS];
    int64_t wanted = threads > 0 ? threads : sdlf_machine_processors();
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    if (wanted > count) wanted = count;
    shared_work shared = {.work = work, .context = context, .count = count};
    int started = 0;
    while (started + 1 < wanted && pthread_create(&thread[started], NULL, take_items, &shared) == 0) started++;
    take_items(&shared);
    for (int t = 0; t < started; t++) pthread_join(thread[t], NULL);
}
