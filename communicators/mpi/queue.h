/* SPDX-License-Identifier: MIT */
/* The thread that calls MPI, and its job queue.
 *
 * One thread makes all calls of MPI, from MPI_Init_thread to MPI_Finalize, so that MPI_THREAD_FUNNELED is enough from
 * every library. It starts each operation without blocking and tests it until it is complete. Unlike a blocking call,
 * or a non-blocking one followed by a wait, this has three effects:
 *
 *   - libraries that move data only inside their own calls (Open MPI does) make progress while the rest of the backward
 *     pass is computed;
 *   - between two tests the thread sleeps, unless someone waits for the job: it takes little time from a core that
 *     computes;
 *   - it can give up: if nothing arrives for a while, it asks the other ranks whether they are alive, and reports one
 *     that does not answer. */
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
    const void *from; /* for a gather */
    void *memory;
    int64_t count; /* of elements, of a rank's bytes, or of ranks */
    sdlf_dtype dtype;
} mpi_job;

typedef struct mpi_queue {
    double timeout;
    int rank, rank_count, local_rank;
    char host[64];

    pthread_t thread;
    pthread_mutex_t lock; /* guards the members up to `message` */
    pthread_cond_t wanted, finished;
    mpi_job job[MPI_QUEUE_JOBS];
    int64_t asked, done; /* numbers of jobs so far */
    bool ready, stop;
    sdlf_status status; /* of the first failure, after which no job is run */
    char message[512];
    atomic_bool awaited;  /* someone waits for a job */
    atomic_bool aborting; /* terminate all ranks */
    atomic_bool watching; /* ask the others even while there is no job */

    MPI_Comm all, sums, questions; /* the thread's own: all ranks; those of a sum or gather; all ranks, for questions */
    mpi_halves halves;
    char (*hosts)[64];              /* of each rank */
    double *heard;                  /* for each rank: when it last answered, while it is asked */
    double watched, asked_idle;     /* while there is no job: since when, and when the others were last asked */
    double idle;                    /* when there last was no job */
    MPI_Request *question;          /* in progress, to each rank */
    int *shard_count, *shard_first; /* of each rank, for a gather of shards */
} mpi_queue;

/* Starts the thread, and MPI in it. */
sdlf_status mpi_queue_start(mpi_queue *queue, double timeout);
/* Waits for the others, unless the queue has failed, and finalises MPI. */
void mpi_queue_stop(mpi_queue *queue);
sdlf_status mpi_queue_add(mpi_queue *queue, const mpi_job *job, int64_t *ticket);
sdlf_status mpi_queue_wait(mpi_queue *queue, int64_t ticket);
void mpi_queue_abort(mpi_queue *queue);
/* From now on the others are asked at all times. Returns the failure, if there is one. */
sdlf_status mpi_queue_check(mpi_queue *queue);

/* Called by the thread (alive.c): answers ranks that ask whether this rank is alive; and, while a job has been waited
 * for since `begun`, asks the others. Errors: SDLF_ERROR_DEVICE names the rank that has not answered. */
void mpi_answer(mpi_queue *queue);
sdlf_status mpi_ask(mpi_queue *queue, double begun, double *asked);
/* The same while there is no job. */
sdlf_status mpi_watch(mpi_queue *queue);

#endif
