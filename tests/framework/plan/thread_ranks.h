/* SPDX-License-Identifier: MIT */
/* Ranks as threads of a test, each with its own communicator: all-reduce and gather in host memory, between
 * barriers. */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_THREAD_RANKS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_THREAD_RANKS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

enum { THREAD_RANKS = 4 };

typedef struct thread_ranks {
    pthread_barrier_t barrier;
    void *memory[THREAD_RANKS];
    int64_t sums; /* all-reduces, counted by rank 0 */
} thread_ranks;

typedef struct thread_rank {
    sdlf_communicator base;
    thread_ranks *all;
    struct {
        void *memory;
        sdlf_dtype dtype;
        int64_t count;
    } sum[SDLF_MOST_SUMS];
    int64_t begun;
} thread_rank;

static sdlf_status thread_allreduce_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory,
                                          sdlf_dtype dtype, int64_t count, int64_t *ticket)
{
    thread_rank *r = (thread_rank *)base;
    *ticket = r->begun++;
    r->sum[*ticket % SDLF_MOST_SUMS].memory = memory;
    r->sum[*ticket % SDLF_MOST_SUMS].dtype = dtype;
    r->sum[*ticket % SDLF_MOST_SUMS].count = count;
    return calculator != NULL ? calculator->type->synchronize(calculator) : SDLF_OK;
}

static double thread_number(sdlf_dtype dtype, const void *memory, int64_t i)
{
    double number;
    sdlf_convert(SDLF_FLOAT64, &number, dtype, (const char *)memory + i * (int64_t)sdlf_dtype_size(dtype), 1);
    return number;
}

/* All ranks end their tickets in the same order. */
static sdlf_status thread_collective_end(sdlf_communicator *base, int64_t ticket)
{
    thread_rank *r = (thread_rank *)base;
    int at = (int)(ticket % SDLF_MOST_SUMS);
    int64_t count = r->sum[at].count;
    r->all->memory[base->rank] = r->sum[at].memory;
    double *sum = malloc((size_t)count * sizeof *sum + 1);
    if (sum == NULL) return SDLF_ERROR_MEMORY;
    pthread_barrier_wait(&r->all->barrier);
    for (int64_t i = 0; i < count; i++) {
        sum[i] = 0;
        for (int other = 0; other < base->rank_count; other++)
            sum[i] += thread_number(r->sum[at].dtype, r->all->memory[other], i);
    }
    pthread_barrier_wait(&r->all->barrier);
    sdlf_convert(r->sum[at].dtype, r->sum[at].memory, SDLF_FLOAT64, sum, count);
    if (base->rank == 0) r->all->sums++;
    free(sum);
    return SDLF_OK;
}

static sdlf_status thread_gather(sdlf_communicator *base, const void *mine, int64_t bytes, void *all)
{
    thread_rank *r = (thread_rank *)base;
    void *own = malloc((size_t)bytes + 1);
    if (own == NULL) return SDLF_ERROR_MEMORY;
    memcpy(own, mine, (size_t)bytes);
    r->all->memory[base->rank] = own;
    pthread_barrier_wait(&r->all->barrier);
    for (int i = 0; i < base->rank_count; i++) memcpy((char *)all + i * bytes, r->all->memory[i], (size_t)bytes);
    pthread_barrier_wait(&r->all->barrier);
    free(own);
    return SDLF_OK;
}

static const sdlf_communicator_class thread_ranks_class = {.name = "threads",
                                                           .size = sizeof(thread_rank),
                                                           .allreduce_begin = thread_allreduce_begin,
                                                           .collective_end = thread_collective_end,
                                                           .gather = thread_gather};

typedef struct thread_work {
    thread_rank rank;
    void (*work)(thread_rank *, void *);
    void *user;
} thread_work;

static void *thread_start(void *argument)
{
    thread_work *w = argument;
    w->work(&w->rank, w->user);
    return NULL;
}

/* Run `work(rank's communicator, user)` in `count` threads. Returns the number of all-reduces. */
static inline int64_t in_ranks(int count, void (*work)(thread_rank *, void *), void *user)
{
    thread_ranks all = {.sums = 0};
    thread_work *each = calloc((size_t)count, sizeof *each);
    pthread_t thread[THREAD_RANKS];
    if (each == NULL || pthread_barrier_init(&all.barrier, NULL, (unsigned)count) != 0) abort();
    for (int i = 0; i < count; i++) {
        each[i] = (thread_work){.work = work, .user = user};
        each[i].rank.base = (sdlf_communicator){.type = &thread_ranks_class, .rank = i, .rank_count = count};
        each[i].rank.all = &all;
        if (pthread_create(&thread[i], NULL, thread_start, &each[i]) != 0) abort();
    }
    for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&all.barrier);
    free(each);
    return all.sums;
}

#endif
