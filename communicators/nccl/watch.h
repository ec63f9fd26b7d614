/* SPDX-License-Identifier: MIT */
/* A thread that watches an NCCL communicator, whose kernels wait for the other ranks indefinitely. It checks whether
 * NCCL reports an error, and whether the hosts' communicator misses a rank. If so, it aborts NCCL's communicator, so
 * that waiting kernels end and the calls that wait for them return; the next call of the communicator returns the
 * message. If there is no such call, because a device or a call does not return, the thread reports the message itself
 * and ends all ranks. */
#ifndef SDLF_COMMUNICATORS_NCCL_WATCH_H
#define SDLF_COMMUNICATORS_NCCL_WATCH_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sdlf/communicator.h>

typedef struct nccl_watch {
    sdlf_communicator *hosts; /* borrowed */
    pthread_t thread;
    pthread_mutex_t calling; /* held while NCCL is called or aborted */
    ncclComm_t ranks;
    bool running;
    atomic_bool joined; /* `ranks` exists */
    atomic_bool stop, failed;
    atomic_bool told; /* a call of the communicator has returned the message */
    char message[512];
} nccl_watch;

sdlf_status nccl_watch_start(nccl_watch *watch, sdlf_communicator *hosts);
/* Calls of NCCL must be between these two. Errors: the communicator has failed, and nothing is held. */
sdlf_status nccl_watch_enter(nccl_watch *watch);
void nccl_watch_leave(nccl_watch *watch);
/* The error if the communicator has failed. */
sdlf_status nccl_watch_check(nccl_watch *watch);
/* Ends the thread. False: it has aborted NCCL's communicator, which no longer exists. */
bool nccl_watch_stop(nccl_watch *watch);

/* SDLF_ERROR_DEVICE for an error of NCCL, with NCCL's description of its cause. */
sdlf_status nccl_check(ncclResult_t result, const char *what);

#endif
