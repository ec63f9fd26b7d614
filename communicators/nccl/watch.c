/* SPDX-License-Identifier: MIT */
/* The thread that ensures that no wait is endless. See watch.h. */
#include "communicators/nccl/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAUSE = 50000000 /* ns */, GRACE = 5 /* s, to fetch the message */ };

sdlf_status nccl_check(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess || result == ncclInProgress) return SDLF_OK;
    const char *cause = ncclGetLastError(NULL);
    bool known = cause != NULL && cause[0] != '\0';
    return sdlf_fail(SDLF_ERROR_DEVICE, "%s: NCCL says %s%s%s", what, ncclGetErrorString(result), known ? ": " : "",
                     known ? cause : "");
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
}

static sdlf_status look(nccl_watch *watch)
{
    const sdlf_communicator_class *type = watch->hosts->type;
    ncclResult_t failed = ncclSuccess;
    sdlf_status status = type->check != NULL ? type->check(watch->hosts) : SDLF_OK;
    if (status != SDLF_OK || !atomic_load(&watch->joined)) return status;
    ncclResult_t asked = ncclCommGetAsyncError(watch->ranks, &failed);
    return nccl_check(asked != ncclSuccess ? asked : failed, "sums over all ranks");
}

/* May itself wait indefinitely. */
static void *take_down(void *ranks)
{
    ncclCommAbort(ranks);
    return NULL;
}

/* No call of NCCL is or will be in progress, since `failed` is set. False: a call does not return. */
static bool end_kernels(nccl_watch *watch)
{
    struct timespec until;
    pthread_t thread;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += GRACE;
    if (pthread_mutex_timedlock(&watch->calling, &until) != 0) return false;
    bool begun = !atomic_load(&watch->joined) || pthread_create(&thread, NULL, take_down, watch->ranks) == 0;
    if (begun && atomic_load(&watch->joined)) pthread_detach(thread);
    pthread_mutex_unlock(&watch->calling);
    return begun;
}

static void end_all(nccl_watch *watch)
{
    const sdlf_communicator *hosts = watch->hosts;
    if (!atomic_load(&watch->told)) /* no call fetches this thread's message: report it to the message function */
        sdlf_fail(SDLF_ERROR_DEVICE, "all ranks end: rank %d on %s: %s", hosts->rank, hosts->host, watch->message);
    sdlf_communicator_abort(watch->hosts);
}

static void *run(void *user)
{
    nccl_watch *watch = user;
    sdlf_status status = SDLF_OK;
    while (!atomic_load(&watch->stop) && (status = look(watch)) == SDLF_OK) rest();
    if (status == SDLF_OK) return NULL;
    snprintf(watch->message, sizeof watch->message, "%s", sdlf_error_message());
    atomic_store(&watch->failed, true);
    bool ended = end_kernels(watch);
    for (int64_t waited = 0; ended && waited < GRACE * (int64_t)1000000000 && !atomic_load(&watch->stop);
         waited += PAUSE)
        rest();
    if (!atomic_load(&watch->stop)) end_all(watch);
    return NULL;
}

sdlf_status nccl_watch_start(nccl_watch *watch, sdlf_communicator *hosts)
{
    *watch = (nccl_watch){.hosts = hosts};
    pthread_mutex_init(&watch->calling, NULL);
    sigset_t all, before; /* the thread blocks all signals, which are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&watch->thread, NULL, run, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watch->running = error == 0;
    if (watch->running) return SDLF_OK;
    pthread_mutex_destroy(&watch->calling);
    return sdlf_fail(SDLF_ERROR_MEMORY, "cannot start a thread: %s", strerror(error));
}

sdlf_status nccl_watch_check(nccl_watch *watch)
{
    if (!watch->running || !atomic_load(&watch->failed)) return SDLF_OK;
    atomic_store(&watch->told, true);
    return sdlf_fail(SDLF_ERROR_DEVICE, "%s", watch->message);
}

sdlf_status nccl_watch_enter(nccl_watch *watch)
{
    pthread_mutex_lock(&watch->calling);
    sdlf_status status = nccl_watch_check(watch);
    if (status != SDLF_OK) pthread_mutex_unlock(&watch->calling);
    return status;
}

void nccl_watch_leave(nccl_watch *watch)
{
    pthread_mutex_unlock(&watch->calling);
}

bool nccl_watch_stop(nccl_watch *watch)
{
    if (!watch->running) return true;
    atomic_store(&watch->stop, true);
    pthread_join(watch->thread, NULL);
    pthread_mutex_destroy(&watch->calling);
    watch->running = false;
    return !atomic_load(&watch->failed);
}
