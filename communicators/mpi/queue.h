/* SPDX-License-Identifier: MIT */
/* The thread that speaks MPI, and the queue of what it is asked to do.
 *
 * One thread makes all calls of MPI, from MPI_Init_thread to MPI_Finalize, so that MPI_THREAD_FUNNELED is enough of
 * every library. It begins each operation without blocking and tests it until it is done. That does three things which
 * a blocking call, or one that is begun and only waited for, does not:
 *
 *   - libraries that move data only inside their own calls (Open MPI does) go on while the rest of the backward pass is
 *     computed;
 *   - between two tests the thread sleeps, unless somebody waits for it: it takes little from a processor that
 *     computes;
 *   - it can end: where nothing comes for a while, it asks the others whether they are there, and gives up one that
 *     does not answer. */
#ifndef SDLF_COMMUNICATORS_MPI_QUEUE_H
#define SDLF_COMMUNICATORS_MPI_QUEUE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sdlf/communicator.h>

#include "communicators/mpi/halves.h"

enum { MPI_QUEUE_JOBS = SDLF_MOST_SUMS };

typedef struct mpi_job {
    enum { MPI_JOB_SUM, MPI_JOB_GATHER, MPI_JOB_SHARE, MPI_JOB_NARROW } kind;
    const void *from; /* of a gather */
    void *memory;
    int64_t count; /* of numbers, of a rank's bytes, or of ranks */
    sdlf_dtype dtype;
} mpi_job;

typedef struct mpi_queue {
    double timeout;
    int rank, rank_count, local_rank;
    char host[64];

    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, to `message` */
    pthread_cond_t wanted, finished;
    mpi_job job[MPI_QUEUE_JOBS];
    int64_t asked, done; /* jobs so far */
    bool ready, stop;
    sdlf_status status; /* of the first failure, after which nothing more is done */
    char message[512];
    atomic_bool awaited;  /* somebody waits for a job */
    atomic_bool aborting; /* end all ranks */
    atomic_bool watching; /* ask the others even while there is nothing to do */

    MPI_Comm all, sums, questions; /* the thread's own: all ranks; those of a sum or a gathering; all again */
    mpi_halves halves;
    char (*hosts)[64];              /* of each rank */
    double *heard;                  /* of each rank: when it was last heard of, while it is asked */
    double watched, asked_idle;     /* since when, and when the others were last asked, while there is nothing to do */
    double idle;                    /* when there was nothing to do last */
    MPI_Request *question;          /* under way, to each rank */
    int *shard_count, *shard_first; /* of each rank, of what is shared */
} mpi_queue;

/* Start the thread, and MPI with it. */
sdlf_status mpi_queue_start(mpi_queue *queue, double timeout);
/* Wait for the others, unless the queue has failed, and end MPI. */
void mpi_queue_stop(mpi_queue *queue);
sdlf_status mpi_queue_add(mpi_queue *queue, const mpi_job *job, int64_t *ticket);
sdlf_status mpi_queue_wait(mpi_queue *queue, int64_t ticket);
void mpi_queue_abort(mpi_queue *queue);
/* From now on the others are asked at all times. The failure, if there is one. */
sdlf_status mpi_queue_check(mpi_queue *queue);

/* The thread's (alive.c): answer those who ask whether this rank is there; and, while a job is waited for since
 * `begun`, ask the others. Errors: SDLF_ERROR_DEVICE names the rank that has not answered. */
void mpi_answer(mpi_queue *queue);
sdlf_status mpi_ask(mpi_queue *queue, double begun, double *asked);
/* The same while there is nothing to do. */
sdlf_status mpi_watch(mpi_queue *queue);

#endif
