/* SPDX-License-Identifier: MIT */
/* The thread that calls MPI. See queue.h. */
#include "communicators/mpi/queue.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "framework/clock.h"

enum { BUSY_PAUSE = 50000, IDLE_PAUSE = 20000000 }; /* nanoseconds */

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

/* ---- called by the thread ---- */

static sdlf_status begin_mpi(mpi_queue *queue)
{
    int given, there, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Initialized(&there);
    if (there)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "MPI is already initialised in this process: only the communicator may do so, once");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS || given < MPI_THREAD_FUNNELED)
        return sdlf_fail(SDLF_ERROR_DEVICE, "MPI could not be initialised for use with threads");
    MPI_Comm_dup(MPI_COMM_WORLD, &queue->all);
    MPI_Comm_dup(MPI_COMM_WORLD, &queue->sums);
    MPI_Comm_dup(MPI_COMM_WORLD, &queue->questions);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* non-blocking collectives raise their errors there */
    MPI_Comm_set_errhandler(queue->all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(queue->sums, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(queue->questions, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &queue->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &queue->rank_count);
    MPI_Comm local;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, queue->rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &queue->local_rank);
    MPI_Comm_free(&local);
    MPI_Get_processor_name(name, &length);
    snprintf(queue->host, sizeof queue->host, "%.63s", name);
    queue->hosts = calloc((size_t)queue->rank_count, sizeof *queue->hosts);
    queue->heard = calloc((size_t)queue->rank_count, sizeof *queue->heard);
    queue->question = malloc((size_t)queue->rank_count * sizeof(MPI_Request));
    for (int i = 0; queue->question != NULL && i < queue->rank_count; i++) queue->question[i] = MPI_REQUEST_NULL;
    queue->shard_count = malloc((size_t)queue->rank_count * sizeof(int));
    queue->shard_first = malloc((size_t)queue->rank_count * sizeof(int));
    bool made =
        queue->hosts != NULL && queue->heard != NULL && queue->shard_count != NULL && queue->shard_first != NULL;
    if (!made || queue->question == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory");
    MPI_Allgather(queue->host, sizeof queue->host, MPI_BYTE, queue->hosts, sizeof queue->host, MPI_BYTE, queue->all);
    mpi_halves_make(&queue->halves);
    return SDLF_OK;
}

static sdlf_status check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS) return SDLF_OK;
    MPI_Error_string(code, text, &length);
    return sdlf_fail(SDLF_ERROR_DEVICE, "%s: %s", what, text);
}

/* Tests a request until it is complete. */
static sdlf_status finish(mpi_queue *queue, MPI_Request *request, bool patient)
{
    double begun = sdlf_clock(), asked = begun;
    for (int done = 0;;) {
        sdlf_status status = check(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (status == SDLF_OK && !done) status = mpi_ask(queue, begun, &asked);
        if (status != SDLF_OK || done) return status;
        if (atomic_load(&queue->aborting)) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        if (patient || !atomic_load(&queue->awaited)) pause_for(patient ? IDLE_PAUSE / 10 : BUSY_PAUSE);
    }
}

/* MPI's counts are ints: a long sum is split. */
static sdlf_status run_sum(mpi_queue *queue, const mpi_job *job)
{
    enum { MOST = 1 << 28 };
    sdlf_status status = SDLF_OK;
    MPI_Datatype type = mpi_type_of(&queue->halves, job->dtype);
    MPI_Op add = mpi_sum_of(&queue->halves, job->dtype);
    for (int64_t first = 0; first < job->count && status == SDLF_OK; first += MOST) {
        MPI_Request request;
        int count = (int)(job->count - first < MOST ? job->count - first : MOST);
        char *memory = (char *)job->memory + first * (int64_t)sdlf_dtype_size(job->dtype);
        status = check(MPI_Iallreduce(MPI_IN_PLACE, memory, count, type, add, queue->sums, &request), "MPI_Iallreduce");
        if (status == SDLF_OK) status = finish(queue, &request, false);
    }
    return status;
}

static sdlf_status run_share(mpi_queue *queue, const mpi_job *job)
{
    int ranks;
    MPI_Request request;
    MPI_Datatype type = mpi_type_of(&queue->halves, job->dtype);
    MPI_Comm_size(queue->sums, &ranks);
    for (int r = 0; r < ranks; r++) {
        queue->shard_first[r] = (int)sdlf_communicator_shard(r, ranks, job->count);
        queue->shard_count[r] = (int)sdlf_communicator_shard(r + 1, ranks, job->count) - queue->shard_first[r];
    }
    sdlf_status status = check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, job->memory, queue->shard_count,
                                               queue->shard_first, type, queue->sums, &request),
                               "MPI_Iallgatherv");
    return status == SDLF_OK ? finish(queue, &request, false) : status;
}

static sdlf_status run_gather(mpi_queue *queue, const mpi_job *job)
{
    MPI_Request request;
    int count = (int)job->count;
    sdlf_status status =
        check(MPI_Iallgather(job->from, count, MPI_BYTE, job->memory, count, MPI_BYTE, queue->sums, &request),
              "MPI_Iallgather");
    return status == SDLF_OK ? finish(queue, &request, false) : status;
}

/* Ranks that are excluded for a while wait here for the others, which compute in the meantime, without taking a core
 * from them. */
static sdlf_status run_narrow(mpi_queue *queue, const mpi_job *job)
{
    MPI_Request request;
    MPI_Comm made;
    sdlf_status status = check(MPI_Ibarrier(queue->all, &request), "MPI_Ibarrier");
    if (status == SDLF_OK) status = finish(queue, &request, true);
    if (status == SDLF_OK)
        status =
            check(MPI_Comm_split(queue->all, queue->rank < job->count ? 0 : 1, queue->rank, &made), "MPI_Comm_split");
    if (status != SDLF_OK) return status;
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    MPI_Comm_free(&queue->sums);
    queue->sums = made;
    return SDLF_OK;
}

static sdlf_status run_job(mpi_queue *queue, const mpi_job *job)
{
    return job->kind == MPI_JOB_SUM      ? run_sum(queue, job)
           : job->kind == MPI_JOB_GATHER ? run_gather(queue, job)
           : job->kind == MPI_JOB_SHARE  ? run_share(queue, job)
                                         : run_narrow(queue, job);
}

/* Ends a rank that has not failed: the others may still need answers. */
static void end_mpi(mpi_queue *queue)
{
    MPI_Request request;
    bool together = queue->status == SDLF_OK;
    if (together)
        together = MPI_Ibarrier(queue->all, &request) == MPI_SUCCESS && finish(queue, &request, true) == SDLF_OK;
    if (!together) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize would wait for a rank that does not come */
    for (int i = 0; i < queue->rank_count; i++)
        if (queue->question[i] != MPI_REQUEST_NULL) MPI_Request_free(&queue->question[i]);
    mpi_answer(queue);
    mpi_halves_free(&queue->halves);
    MPI_Comm_free(&queue->all);
    MPI_Comm_free(&queue->sums);
    MPI_Comm_free(&queue->questions);
    MPI_Finalize();
}

static void keep(mpi_queue *queue, sdlf_status status)
{
    if (status == SDLF_OK || queue->status != SDLF_OK) return;
    queue->status = status;
    snprintf(queue->message, sizeof queue->message, "%s", sdlf_error_message()); /* the message of this thread */
}

/* Called with the lock held: sleeps until there is a job, or it is time to check for questions. */
static void idle(mpi_queue *queue)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += IDLE_PAUSE;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&queue->wanted, &queue->lock, &until);
}

static void *run(void *argument)
{
    mpi_queue *queue = argument;
    sdlf_status status = begin_mpi(queue);
    pthread_mutex_lock(&queue->lock);
    keep(queue, status);
    bool begun = status == SDLF_OK;
    queue->ready = true;
    pthread_cond_broadcast(&queue->finished);
    while (begun && !(queue->stop && queue->done == queue->asked)) {
        if (queue->done == queue->asked || queue->status != SDLF_OK) {
            if (queue->stop && queue->status != SDLF_OK) break;
            idle(queue);
            pthread_mutex_unlock(&queue->lock);
            if (atomic_load(&queue->aborting)) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
            status = atomic_load(&queue->watching) ? mpi_watch(queue) : SDLF_OK;
            mpi_answer(queue);
            pthread_mutex_lock(&queue->lock);
            keep(queue, status);
            continue;
        }
        mpi_job job = queue->job[queue->done % MPI_QUEUE_JOBS];
        pthread_mutex_unlock(&queue->lock);
        status = run_job(queue, &job);
        pthread_mutex_lock(&queue->lock);
        keep(queue, status);
        if (status == SDLF_OK) queue->done++;
        pthread_cond_broadcast(&queue->finished);
    }
    pthread_mutex_unlock(&queue->lock);
    if (begun) end_mpi(queue);
    return NULL;
}

/* ---- called by any thread ---- */

static void release(mpi_queue *queue)
{
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->wanted);
    pthread_cond_destroy(&queue->finished);
    pthread_mutex_destroy(&queue->lock);
    free(queue->hosts);
    free(queue->heard);
    free(queue->shard_count);
    free(queue->shard_first);
    free(queue->question);
}

static sdlf_status failure(const mpi_queue *queue)
{
    return queue->status == SDLF_OK ? SDLF_OK : sdlf_fail(queue->status, "%s", queue->message);
}

sdlf_status mpi_queue_start(mpi_queue *queue, double timeout)
{
    *queue = (mpi_queue){.timeout = timeout};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_t steady; /* a monotonic clock: setting the time must not shorten or lengthen the wait */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->wanted, &steady);
    pthread_condattr_destroy(&steady);
    pthread_cond_init(&queue->finished, NULL);
    sigset_t all, before; /* the thread blocks all signals, which are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, run, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) return sdlf_fail(SDLF_ERROR_MEMORY, "cannot start a thread: %s", strerror(error));
    pthread_mutex_lock(&queue->lock);
    while (!queue->ready) pthread_cond_wait(&queue->finished, &queue->lock);
    sdlf_status status = failure(queue);
    pthread_mutex_unlock(&queue->lock);
    if (status != SDLF_OK) release(queue);
    return status;
}

void mpi_queue_stop(mpi_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stop = true;
    pthread_cond_signal(&queue->wanted);
    pthread_mutex_unlock(&queue->lock);
    release(queue);
}

sdlf_status mpi_queue_add(mpi_queue *queue, const mpi_job *job, int64_t *ticket)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->status == SDLF_OK && queue->asked - queue->done == MPI_QUEUE_JOBS)
        pthread_cond_wait(&queue->finished, &queue->lock);
    sdlf_status status = failure(queue);
    if (status == SDLF_OK) {
        *ticket = queue->asked;
        queue->job[queue->asked++ % MPI_QUEUE_JOBS] = *job;
        pthread_cond_signal(&queue->wanted);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

sdlf_status mpi_queue_wait(mpi_queue *queue, int64_t ticket)
{
    atomic_store(&queue->awaited, true);
    pthread_mutex_lock(&queue->lock);
    while (queue->status == SDLF_OK && queue->done <= ticket) pthread_cond_wait(&queue->finished, &queue->lock);
    sdlf_status status = queue->done > ticket ? SDLF_OK : failure(queue);
    pthread_mutex_unlock(&queue->lock);
    atomic_store(&queue->awaited, false);
    return status;
}

sdlf_status mpi_queue_check(mpi_queue *queue)
{
    atomic_store(&queue->watching, true);
    pthread_mutex_lock(&queue->lock);
    sdlf_status status = failure(queue);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

void mpi_queue_abort(mpi_queue *queue)
{
    atomic_store(&queue->aborting, true);
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->wanted);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL); /* the thread ends the process */
}
