/* SPDX-License-Identifier: MIT */
/* The mpi communicator: processes started by mpirun, on any number of hosts. Data in a device's memory is staged
 * through the host's, which is pinned if the device's calculator has queues. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "communicators/mpi/queue.h"
#include "communicators/registry.h"

/* A sum of device data that is in progress. */
typedef struct staged_sum {
    sdlf_calculator *calculator; /* NULL: host data, summed in place */
    void *memory, *host;
    int64_t bytes;
} staged_sum;

/* Host memory in which device data is staged; it grows, and is kept. */
typedef struct staging {
    sdlf_calculator *calculator;
    void *memory, *host;
    int64_t bytes;
} staging;

enum { STAGINGS = 4096 };

typedef struct mpi_communicator {
    sdlf_communicator base;
    mpi_queue queue;
    staged_sum sum[MPI_QUEUE_JOBS]; /* by ticket */
    staging staging[STAGINGS];      /* one for each address that sums were begun from */
    int staging_count;
} mpi_communicator;

static mpi_communicator *from(sdlf_communicator *base)
{
    static_assert(offsetof(mpi_communicator, base) == 0, "base must be first");
    assert(base->type == &sdlf_mpi_communicator_class);
    return (mpi_communicator *)base;
}

static sdlf_status open_mpi(sdlf_communicator *base, const sdlf_communicator_options *options)
{
    mpi_communicator *c = from(base);
    if (options->group != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "its ranks are processes, but options->group is for threads");
    sdlf_status status = mpi_queue_start(&c->queue, options->timeout);
    if (status != SDLF_OK) return status;
    base->rank = c->queue.rank;
    base->rank_count = c->queue.rank_count;
    base->local_rank = c->queue.local_rank;
    memcpy(base->host, c->queue.host, sizeof base->host);
    return SDLF_OK;
}

static void close_mpi(sdlf_communicator *base)
{
    mpi_queue_stop(&from(base)->queue);
}

static void free_host(const staging *s)
{
    const sdlf_queue_class *queues = s->calculator->type->queues;
    if (queues != NULL)
        queues->deallocate_host(s->calculator, s->host);
    else
        free(s->host);
}

static void forget(sdlf_communicator *base, sdlf_calculator *calculator)
{
    mpi_communicator *c = from(base);
    int kept = 0;
    for (int i = 0; i < c->staging_count; i++) {
        if (c->staging[i].calculator == calculator)
            free_host(&c->staging[i]);
        else
            c->staging[kept++] = c->staging[i];
    }
    c->staging_count = kept;
}

/* The host memory for data of a device: the same for the same address, so that a training step allocates nothing. */
static sdlf_status stage(mpi_communicator *c, sdlf_calculator *calculator, void *memory, int64_t bytes, void **host)
{
    int i = 0;
    while (i < c->staging_count && (c->staging[i].memory != memory || c->staging[i].calculator != calculator)) i++;
    if (i == STAGINGS) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "mpi: more than %d sums on a device", STAGINGS);
    staging *s = &c->staging[i];
    if (i < c->staging_count && s->bytes >= bytes) {
        *host = s->host;
        return SDLF_OK;
    }
    if (i < c->staging_count) {
        free_host(s);
        *s = c->staging[--c->staging_count];
        s = &c->staging[i = c->staging_count];
    }
    *s = (staging){.calculator = calculator, .memory = memory, .bytes = bytes};
    const sdlf_queue_class *queues = calculator->type->queues;
    sdlf_status status = SDLF_OK;
    if (queues != NULL)
        status = queues->allocate_host(calculator, bytes, &s->host);
    else if ((s->host = malloc((size_t)bytes)) == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "mpi: no memory for a sum of %lld bytes", (long long)bytes);
    if (status == SDLF_OK) c->staging_count++;
    *host = s->host;
    return status;
}

/* The job's memory is where the data is summed or shared. */
static sdlf_status begin(mpi_communicator *c, sdlf_calculator *calculator, mpi_job job, int64_t *ticket)
{
    void *memory = job.memory;
    staged_sum sum = {.memory = memory, .host = memory, .bytes = job.count * (int64_t)sdlf_dtype_size(job.dtype)};
    sdlf_status status = SDLF_OK;
    if (calculator != NULL && sdlf_calculator_is_on_host(calculator))
        status = calculator->type->synchronize(calculator);
    if (calculator != NULL && !sdlf_calculator_is_on_host(calculator)) {
        sum.calculator = calculator;
        status = stage(c, calculator, memory, sum.bytes, &sum.host);
        if (status == SDLF_OK) status = calculator->type->download(calculator, sum.host, memory, sum.bytes);
    }
    if (status != SDLF_OK) return status;
    job.memory = sum.host;
    status = mpi_queue_add(&c->queue, &job, ticket);
    if (status == SDLF_OK) c->sum[*ticket % MPI_QUEUE_JOBS] = sum;
    return status;
}

static sdlf_status allreduce_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    const mpi_job job = {.kind = MPI_JOB_SUM, .memory = memory, .count = count, .dtype = dtype};
    return begin(from(base), calculator, job, ticket);
}

static sdlf_status allgather_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    if (count > INT_MAX)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "mpi: expected at most %d numbers of a parameter, found %lld", INT_MAX,
                         (long long)count);
    const mpi_job job = {.kind = MPI_JOB_SHARE, .memory = memory, .count = count, .dtype = dtype};
    return begin(from(base), calculator, job, ticket);
}

static sdlf_status collective_end(sdlf_communicator *base, int64_t ticket)
{
    mpi_communicator *c = from(base);
    const staged_sum *sum = &c->sum[ticket % MPI_QUEUE_JOBS];
    sdlf_status status = mpi_queue_wait(&c->queue, ticket);
    if (status != SDLF_OK || sum->calculator == NULL) return status;
    return sum->calculator->type->upload(sum->calculator, sum->memory, sum->host, sum->bytes);
}

static sdlf_status gather(sdlf_communicator *base, const void *mine, int64_t bytes, void *all)
{
    mpi_communicator *c = from(base);
    int64_t ticket;
    if (bytes > INT_MAX) /* the ranks' parts are adjacent, so the operation cannot be split */
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "mpi: expected at most %d bytes of each rank to gather, found %lld",
                         INT_MAX, (long long)bytes);
    const mpi_job job = {.kind = MPI_JOB_GATHER, .from = mine, .memory = all, .count = bytes};
    sdlf_status status = mpi_queue_add(&c->queue, &job, &ticket);
    return status == SDLF_OK ? mpi_queue_wait(&c->queue, ticket) : status;
}

static sdlf_status narrow(sdlf_communicator *base, int count)
{
    mpi_communicator *c = from(base);
    int64_t ticket;
    const mpi_job job = {.kind = MPI_JOB_NARROW, .count = count};
    sdlf_status status = mpi_queue_add(&c->queue, &job, &ticket);
    return status == SDLF_OK ? mpi_queue_wait(&c->queue, ticket) : status;
}

static sdlf_status check_mpi(sdlf_communicator *base)
{
    return mpi_queue_check(&from(base)->queue);
}

static void abort_mpi(sdlf_communicator *base)
{
    mpi_queue_abort(&from(base)->queue);
}

const sdlf_communicator_class sdlf_mpi_communicator_class = {
    .name = "mpi",
    .summary = "the processes that mpirun starts, on any number of hosts",
    .size = sizeof(mpi_communicator),
    .open = open_mpi,
    .close = close_mpi,
    .allreduce_begin = allreduce_begin,
    .collective_end = collective_end,
    .gather = gather,
    .narrow = narrow,
    .allgather_begin = allgather_begin,
    .forget = forget,
    .abort = abort_mpi,
    .check = check_mpi,
};
