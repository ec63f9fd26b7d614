/* SPDX-License-Identifier: MIT */
/* A thread that makes numbered items ahead of their consumer. */
#include "framework/prefetch.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void *run(void *argument)
{
    sdlf_prefetch *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->error.status != SDLF_OK || p->ready + p->held >= p->slots) {
            pthread_cond_wait(&p->wanted, &p->lock);
            continue;
        }
        int64_t number = p->head + p->ready, moves = p->moves;
        int slot = (p->first + p->ready) % p->slots;
        pthread_mutex_unlock(&p->lock);
        sdlf_status status = p->make(p->context, number, slot);
        pthread_mutex_lock(&p->lock);
        if (moves != p->moves) continue;
        if (status == SDLF_OK)
            p->ready++;
        else
            sdlf_save_error(&p->error, status);
        pthread_cond_signal(&p->made);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

sdlf_status sdlf_prefetch_start(sdlf_prefetch *prefetch, int slots, sdlf_prefetch_make *make, void *context)
{
    assert(slots >= 2);
    *prefetch = (sdlf_prefetch){.make = make, .context = context, .slots = slots, .process = getpid()};
    pthread_mutex_init(&prefetch->lock, NULL);
    pthread_cond_init(&prefetch->made, NULL);
    pthread_cond_init(&prefetch->wanted, NULL);

    sigset_t all, before; /* the thread blocks all signals, which are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&prefetch->thread, NULL, run, prefetch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) return SDLF_OK;

    pthread_cond_destroy(&prefetch->wanted);
    pthread_cond_destroy(&prefetch->made);
    pthread_mutex_destroy(&prefetch->lock);
    return sdlf_fail(SDLF_ERROR_MEMORY, "prefetch: cannot start a thread: %s", strerror(error));
}

/* True in a child of the process that has the thread. The lock may have been held at the fork, and stays so. */
static bool is_forked(const sdlf_prefetch *prefetch)
{
    return prefetch->process != getpid();
}

void sdlf_prefetch_stop(sdlf_prefetch *prefetch)
{
    if (is_forked(prefetch)) return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->stop = true;
    pthread_cond_signal(&prefetch->wanted);
    pthread_mutex_unlock(&prefetch->lock);
    pthread_join(prefetch->thread, NULL);
    pthread_cond_destroy(&prefetch->wanted);
    pthread_cond_destroy(&prefetch->made);
    pthread_mutex_destroy(&prefetch->lock);
}

/* Called with the lock held. */
static void release_held(sdlf_prefetch *prefetch)
{
    if (!prefetch->held) return;
    prefetch->held = false;
    pthread_cond_signal(&prefetch->wanted);
}

sdlf_status sdlf_prefetch_take(sdlf_prefetch *prefetch, int *slot)
{
    sdlf_status status = SDLF_OK;
    if (is_forked(prefetch))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "a loader's thread stays in the process that made it: this child of fork() needs a loader of "
                         "its own, or one with no_prefetch");
    pthread_mutex_lock(&prefetch->lock);
    release_held(prefetch);
    while (prefetch->ready == 0 && prefetch->error.status == SDLF_OK)
        pthread_cond_wait(&prefetch->made, &prefetch->lock);
    if (prefetch->ready > 0) {
        *slot = prefetch->first;
        prefetch->first = (prefetch->first + 1) % prefetch->slots;
        prefetch->head++;
        prefetch->ready--;
        prefetch->held = true;
    } else {
        status = sdlf_restore_error(&prefetch->error);
    }
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

void sdlf_prefetch_seek(sdlf_prefetch *prefetch, int64_t number)
{
    if (is_forked(prefetch)) return;
    pthread_mutex_lock(&prefetch->lock);
    release_held(prefetch);
    if (number != prefetch->head || prefetch->error.status != SDLF_OK) {
        prefetch->head = number;
        prefetch->ready = 0;
        prefetch->error.status = SDLF_OK;
        prefetch->moves++;
        pthread_cond_signal(&prefetch->wanted);
    }
    pthread_mutex_unlock(&prefetch->lock);
}

void sdlf_prefetch_give_back(sdlf_prefetch *prefetch)
{
    if (is_forked(prefetch)) return;
    pthread_mutex_lock(&prefetch->lock);
    release_held(prefetch);
    pthread_mutex_unlock(&prefetch->lock);
}
