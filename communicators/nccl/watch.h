/* SPDX-License-Identifier: MIT */
/* A thread beside a communicator of NCCL's, whose kernels wait for the other ranks without an end. It looks whether
 * NCCL knows of an error, and whether the hosts' communicator misses a rank. Then it takes NCCL's
 * communicator down, so that kernels which wait end and the calls that wait for them return; the next
 * call of the communicator has the message. Where none comes, because a device or a call does not return, the thread
 * says the message itself and ends all ranks. */
#ifndef SDLF_COMMUNICATORS_NCCL_WATCH_H
#define SDLF_COMMUNICATORS_NCCL_WATCH_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sdlf/communicator.h>

typedef struct nccl_watch {
    sdlf_communicator *hosts; /* borrowed */
    pthread_t thread;
    pthread_mutex_t calling; /* held while NCCL is called, or taken down */
    ncclComm_t ranks;
    bool running;
    atomic_bool joined; /* `ranks` is there */
    atomic_bool stop, failed;
    atomic_bool told; /* a call of the communicator has had the message */
    char message[512];
} nccl_watch;

sdlf_status nccl_watch_start(nccl_watch *watch, sdlf_communicator *hosts);
/* Between them NCCL may be called. Errors: that the communicator has failed, and nothing is held. */
sdlf_status nccl_watch_enter(nccl_watch *watch);
void nccl_watch_leave(nccl_watch *watch);
/* Has it failed? Then this is the message. */
sdlf_status nccl_watch_check(nccl_watch *watch);
/* End the thread. False: it has taken NCCL's communicator down, which is not there any more. */
bool nccl_watch_stop(nccl_watch *watch);

/* SDLF_ERROR_DEVICE for an error of NCCL's, with what it says of its cause. */
sdlf_status nccl_check(ncclResult_t result, const char *what);

#endif
