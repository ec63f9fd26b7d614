/* SPDX-License-Identifier: MIT */
/* Prefetch: a thread that makes numbered items ahead of the one who takes them.
 *
 * Item n is made by `make(context, n, slot)` into one of a few slots and depends only on n, so what is taken does not
 * depend on how far ahead the thread is. Items are taken in order; sdlf_prefetch_seek goes elsewhere, and costs nothing
 * if that is where the queue stands already. `make` runs on the thread, never twice at a time. Nothing is allocated
 * between start and stop. */
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
    pid_t process; /* that has the thread: a child of fork() has not */
    pthread_t thread;
    pthread_mutex_t lock;  /* guards all below */
    pthread_cond_t made;   /* an item is ready, or making failed */
    pthread_cond_t wanted; /* a slot is free, or the place has changed, or it is time to stop */
    int64_t head;          /* number of the next item to take */
    int first;             /* slot of item `head` */
    int ready;             /* items from `head` on that are made */
    bool held;             /* the slot before `first` is in use by the one who took it */
    bool stop;
    int64_t moves;          /* seeks so far: an item that was begun before one is thrown away after it */
    sdlf_saved_error error; /* of the item after the ready ones; the thread rests until a seek if there is one */
} sdlf_prefetch;

/* Start the thread at item 0, with at least two slots. Errors: SDLF_ERROR_MEMORY (the system gives no thread). */
sdlf_status sdlf_prefetch_start(sdlf_prefetch *prefetch, int slots, sdlf_prefetch_make *make, void *context);

/* Stop the thread, once it is done with the item under way. (In a child of fork(), which has no such thread, this and
 * the others do nothing, and sdlf_prefetch_take fails with SDLF_ERROR_UNSUPPORTED.) */
void sdlf_prefetch_stop(sdlf_prefetch *prefetch);

/* Wait for the next item, and say which slot holds it; the slot is the caller's until the next call of any of these.
 * Where making it failed: that status and message, again on each call until a seek. */
sdlf_status sdlf_prefetch_take(sdlf_prefetch *prefetch, int *slot);

/* The next item to take is `number`. */
void sdlf_prefetch_seek(sdlf_prefetch *prefetch, int64_t number);

/* Give back the slot that was taken last, without taking another. */
void sdlf_prefetch_give_back(sdlf_prefetch *prefetch);

#endif
