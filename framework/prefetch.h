/* SPDX-License-Identifier: MIT */
/* Prefetch: a thread that makes numbered items ahead of their consumer.
 *
 * Item n is made by `make(context, n, slot)` in one of a few slots and depends only on n, so the items do not depend
 * on how far ahead the thread is. Items are taken in order; sdlf_prefetch_seek jumps to another one, at no cost if that
 * is the next one anyway. `make` runs on the thread, one call at a time. Nothing is allocated between start and
 * stop. */
#ifndef SDLF_FRAMEWORK_PREFETCH_H
#define SDLF_FRAMEWORK_PREFETCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "framework/saved_error.h"

typedef sdlf_status sdlf_prefetch_make(void *context, int64_t number, int slot);

typedef struct sdlf_prefetch {
    sdlf_prefetch_make *make;
    void *context;
    int slots;
    pid_t process; /* process that has the thread: a child of fork() does not */
    pthread_t thread;
    pthread_mutex_t lock;  /* guards all below */
    pthread_cond_t made;   /* an item is ready, or making it failed */
    pthread_cond_t wanted; /* a slot is free, or a seek or a stop was requested */
    int64_t head;          /* number of the next item to take */
    int first;             /* slot of item `head` */
    int ready;             /* number of items from `head` on that are ready */
    bool held;             /* the consumer is using the slot before `first` */
    bool stop;
    int64_t moves;          /* seeks so far: an item begun before a seek is discarded after it */
    sdlf_saved_error error; /* of the item after the ready ones; the thread then rests until a seek */
} sdlf_prefetch;

/* Starts the thread at item 0, with at least two slots. Errors: SDLF_ERROR_MEMORY (no thread can be created). */
sdlf_status sdlf_prefetch_start(sdlf_prefetch *prefetch, int slots, sdlf_prefetch_make *make, void *context);

/* Stops the thread after the item in progress. (In a child of fork(), which has no such thread, this and the other
 * functions do nothing, and sdlf_prefetch_take fails with SDLF_ERROR_UNSUPPORTED.) */
void sdlf_prefetch_stop(sdlf_prefetch *prefetch);

/* Waits for the next item and returns its slot, which is the caller's until the next call of any of these functions. If
 * making the item failed: that status and message, again on each call until a seek. */
sdlf_status sdlf_prefetch_take(sdlf_prefetch *prefetch, int *slot);

/* Makes `number` the next item to take. */
void sdlf_prefetch_seek(sdlf_prefetch *prefetch, int64_t number);

/* Returns the slot that was taken last, without taking another. */
void sdlf_prefetch_give_back(sdlf_prefetch *prefetch);

#endif
