/* SPDX-License-Identifier: MIT */
/* The threads communicator: ranks that are threads of one process. They communicate through the host's memory: each
 * publishes the address of its data, all synchronise, each sums its part of the data of all, in rank order, and all
 * synchronise again. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/dtype.h>

#include "communicators/registry.h"

/* A barrier. */
typedef struct meeting {
    int arrived;
    int64_t round;
} meeting;

typedef enum rank_state { RANK_TO_COME, RANK_HERE, RANK_LEFT } rank_state;

typedef struct rank_place {
    rank_state state;
    void *memory; /* published to the others between two barriers */
} rank_place;

struct sdlf_rank_group {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    meeting all, some; /* of all ranks, and of those that it has been narrowed to */
    int count;
    rank_place rank[];
};

typedef struct thread_sum {
    void *memory;
    sdlf_dtype dtype;
    int64_t count;
    bool gathers;
} thread_sum;

typedef struct threads_communicator {
    sdlf_communicator base;
    sdlf_rank_group *group;
    thread_sum sum[SDLF_MOST_SUMS];
    int64_t begun;
} threads_communicator;

static threads_communicator *from(sdlf_communicator *base)
{
    static_assert(offsetof(threads_communicator, base) == 0, "base must be first");
    assert(base->type == &sdlf_threads_communicator_class);
    return (threads_communicator *)base;
}

sdlf_status sdlf_rank_group_create(sdlf_rank_group **group, int count)
{
    if (group == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: group is NULL", __func__);
    *group = NULL;
    if (count < 1) return sdlf_fail(SDLF_ERROR_ARGUMENT, "rank group: expected at least 1 rank, found %d", count);
    sdlf_rank_group *made = calloc(1, sizeof *made + (size_t)count * sizeof made->rank[0]);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "rank group: no memory");
    made->count = count;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->moved, NULL);
    *group = made;
    return SDLF_OK;
}

void sdlf_rank_group_free(sdlf_rank_group *group)
{
    if (group == NULL) return;
    pthread_cond_destroy(&group->moved);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

static sdlf_status open_threads(sdlf_communicator *base, const sdlf_communicator_options *options)
{
    threads_communicator *c = from(base);
    sdlf_rank_group *group = c->group = options->group;
    if (group == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected the group that its ranks share (options->group), found none");
    if (options->rank < 0 || options->rank >= group->count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected rank 0 to %d of the group (options->rank), found %d",
                         group->count - 1, options->rank);
    pthread_mutex_lock(&group->lock);
    bool first = group->rank[options->rank].state == RANK_TO_COME;
    group->rank[options->rank].state = RANK_HERE;
    pthread_mutex_unlock(&group->lock);
    if (!first) return sdlf_fail(SDLF_ERROR_ARGUMENT, "rank %d of the group is already open", options->rank);
    base->rank = base->local_rank = options->rank;
    base->rank_count = group->count;
    if (gethostname(base->host, sizeof base->host - 1) != 0) snprintf(base->host, sizeof base->host, "this host");
    return SDLF_OK;
}

/* Tells the ranks that wait for this rank, now or later, that it has left. */
static void close_threads(sdlf_communicator *base)
{
    sdlf_rank_group *group = from(base)->group;
    pthread_mutex_lock(&group->lock);
    group->rank[base->rank].state = RANK_LEFT;
    pthread_cond_broadcast(&group->moved);
    pthread_mutex_unlock(&group->lock);
}

/* The first of the ranks that has left; -1: none. */
static int find_departed(const sdlf_rank_group *group, int count)
{
    for (int i = 0; i < count; i++)
        if (group->rank[i].state == RANK_LEFT) return i;
    return -1;
}

static sdlf_status meet(sdlf_rank_group *group, meeting *where, int count)
{
    int left = -1;
    pthread_mutex_lock(&group->lock);
    int64_t round = where->round;
    if (++where->arrived == count) {
        where->arrived = 0;
        where->round++;
        pthread_cond_broadcast(&group->moved);
    }
    while (where->round == round && (left = find_departed(group, count)) < 0)
        pthread_cond_wait(&group->moved, &group->lock);
    pthread_mutex_unlock(&group->lock);
    return left < 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_DEVICE, "rank %d has ended, and the others wait for it", left);
}

static sdlf_status show(sdlf_communicator *base, void *memory)
{
    threads_communicator *c = from(base);
    c->group->rank[base->rank].memory = memory;
    return meet(c->group, &c->group->some, base->rank_count);
}

/* Waits until all ranks have read what they need. */
static sdlf_status seen(sdlf_communicator *base)
{
    return meet(from(base)->group, &from(base)->group->some, base->rank_count);
}

static sdlf_status begin(sdlf_communicator *base, sdlf_calculator *calculator, thread_sum sum, int64_t *ticket)
{
    threads_communicator *c = from(base);
    if (calculator != NULL && !sdlf_calculator_is_on_host(calculator))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "threads: numbers in the memory of %s cannot be added over ranks",
                         calculator->space);
    *ticket = c->begun++;
    c->sum[*ticket % SDLF_MOST_SUMS] = sum;
    return calculator != NULL ? calculator->type->synchronize(calculator) : SDLF_OK;
}

static sdlf_status allreduce_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    return begin(base, calculator, (thread_sum){.memory = memory, .dtype = dtype, .count = count}, ticket);
}

static sdlf_status allgather_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    const thread_sum sum = {.memory = memory, .dtype = dtype, .count = count, .gathers = true};
    return begin(base, calculator, sum, ticket);
}

/* Replaces elements [first, next) of all ranks by their sum, which is rounded once. */
static void add_part(sdlf_communicator *base, sdlf_dtype dtype, int64_t first, int64_t next)
{
    enum { PIECE = 512 };
    double sum[PIECE], number[PIECE];
    const rank_place *rank = from(base)->group->rank;
    int64_t size = (int64_t)sdlf_dtype_size(dtype);
    for (int64_t at = first; at < next; at += PIECE) {
        int64_t count = next - at < PIECE ? next - at : PIECE;
        sdlf_convert(SDLF_FLOAT64, sum, dtype, (const char *)rank[0].memory + at * size, count);
        for (int r = 1; r < base->rank_count; r++) {
            sdlf_convert(SDLF_FLOAT64, number, dtype, (const char *)rank[r].memory + at * size, count);
            for (int64_t i = 0; i < count; i++) sum[i] += number[i];
        }
        for (int r = 0; r < base->rank_count; r++)
            sdlf_convert(dtype, (char *)rank[r].memory + at * size, SDLF_FLOAT64, sum, count);
    }
}

static void copy_part(sdlf_communicator *base, const thread_sum *sum, int rank)
{
    int64_t first = sdlf_communicator_shard(rank, base->rank_count, sum->count);
    int64_t next = sdlf_communicator_shard(rank + 1, base->rank_count, sum->count);
    int64_t size = (int64_t)sdlf_dtype_size(sum->dtype);
    memcpy((char *)sum->memory + first * size, (const char *)from(base)->group->rank[rank].memory + first * size,
           (size_t)((next - first) * size));
}

/* All ranks end their sums in the same order. */
static sdlf_status collective_end(sdlf_communicator *base, int64_t ticket)
{
    const thread_sum *sum = &from(base)->sum[ticket % SDLF_MOST_SUMS];
    int ranks = base->rank_count, own = base->rank;
    sdlf_status status = show(base, sum->memory);
    if (status != SDLF_OK) return status;
    for (int r = 0; r < ranks && sum->gathers; r++)
        if (r != own) copy_part(base, sum, r);
    if (!sum->gathers)
        add_part(base, sum->dtype, sdlf_communicator_shard(own, ranks, sum->count),
                 sdlf_communicator_shard(own + 1, ranks, sum->count));
    return seen(base);
}

static sdlf_status gather(sdlf_communicator *base, const void *mine, int64_t bytes, void *all)
{
    const rank_place *rank = from(base)->group->rank;
    sdlf_status status = show(base, (void *)mine);
    for (int r = 0; r < base->rank_count && status == SDLF_OK; r++)
        memcpy((char *)all + r * bytes, rank[r].memory, (size_t)bytes);
    return status == SDLF_OK ? seen(base) : status;
}

static sdlf_status narrow(sdlf_communicator *base, int count)
{
    sdlf_rank_group *group = from(base)->group;
    (void)count;
    return meet(group, &group->all, group->count);
}

static void abort_threads(sdlf_communicator *base)
{
    (void)base;
    _exit(EXIT_FAILURE); /* _exit, not exit: other threads still use what the exit handlers would release */
}

const sdlf_communicator_class sdlf_threads_communicator_class = {
    .name = "threads",
    .summary = "threads of one process, which share a group of ranks",
    .size = sizeof(threads_communicator),
    .open = open_threads,
    .close = close_threads,
    .allreduce_begin = allreduce_begin,
    .collective_end = collective_end,
    .gather = gather,
    .narrow = narrow,
    .allgather_begin = allgather_begin,
    .abort = abort_threads,
};
