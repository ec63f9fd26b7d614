/* SPDX-License-Identifier: MIT */
/* The time of a training step on a number of ranks, and its parts. */
#include "apps/bench/scaling/measure.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/samples.h"
#include "framework/clock.h"
#include "framework/sort.h"

double scaling_sent(int ranks, int64_t bytes)
{
    return 2.0 * (ranks - 1) / ranks * (double)bytes;
}

/* ---- a no-op communicator, so that a plan has the same steps except for the all-reduces ---- */

static sdlf_status begin_nothing(sdlf_communicator *ranks, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                 int64_t count, int64_t *ticket)
{
    (void)ranks, (void)calculator, (void)memory, (void)dtype, (void)count;
    *ticket = 0;
    return SDLF_OK;
}

static sdlf_status end_nothing(sdlf_communicator *ranks, int64_t ticket)
{
    (void)ranks, (void)ticket;
    return SDLF_OK;
}

static const sdlf_communicator_class silent_class = {.name = "silent",
                                                     .size = sizeof(sdlf_communicator),
                                                     .queued = true,
                                                     .allreduce_begin = begin_nothing,
                                                     .collective_end = end_nothing};

/* ---- times ---- */

/* A barrier: no rank continues before all have arrived. */
static sdlf_status meet(sdlf_communicator *ranks)
{
    double nothing = 0;
    return sdlf_communicator_sum(ranks, &nothing, 1);
}

/* Replaces the seconds by those of the slowest rank. */
static sdlf_status slowest(sdlf_communicator *ranks, double *seconds)
{
    double *all = malloc((size_t)ranks->rank_count * sizeof *all);
    if (all == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory");
    sdlf_status status = ranks->type->gather(ranks, seconds, sizeof *seconds, all);
    for (int i = 0; i < ranks->rank_count && status == SDLF_OK; i++)
        if (all[i] > *seconds) *seconds = all[i];
    free(all);
    return status;
}

enum { MOST_WORKS = 2 };

/* Work to time, and its result. */
typedef struct timed {
    sdlf_status (*work)(void *);
    void *user;
    double seconds;
} timed;

static sdlf_status time_once(double *seconds, const scaling_work *w, const timed *what)
{
    sdlf_status status = meet(w->ranks);
    double begun = sdlf_clock();
    if (status == SDLF_OK) status = what->work(what->user);
    *seconds = sdlf_clock() - begun;
    return status == SDLF_OK ? slowest(w->ranks, seconds) : status;
}

/* The medians of several times, of the slowest rank, after one warm-up. Works take turns, so that other load on the
 * machine affects all equally. */
static sdlf_status time_works(timed *what, int count, const scaling_work *w)
{
    double *times = calloc((size_t)(w->repeats * MOST_WORKS), sizeof *times);
    if (times == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory");
    sdlf_status status = SDLF_OK;
    for (int j = 0; j < count && status == SDLF_OK; j++) status = what[j].work(what[j].user);
    for (int64_t i = 0; i < w->repeats && status == SDLF_OK; i++)
        for (int j = 0; j < count && status == SDLF_OK; j++)
            status = time_once(&times[j * w->repeats + i], w, &what[j]);
    for (int j = 0; j < count; j++) {
        sdlf_sort_doubles(times + j * w->repeats, (size_t)w->repeats);
        what[j].seconds = times[j * w->repeats + w->repeats / 2];
    }
    free(times);
    return status;
}

/* ---- steps ---- */

typedef struct stepping {
    sdlf_plan *plan;
    int64_t steps;
} stepping;

static sdlf_status run_steps(void *user)
{
    stepping *s = user;
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < s->steps && status == SDLF_OK; i++) status = sdlf_plan_step(s->plan, 0);
    return status == SDLF_OK ? sdlf_plan_synchronize(s->plan) : status;
}

static sdlf_status make_plan(sdlf_plan **plan, const scaling_work *w, sdlf_communicator *communicator, int64_t batch)
{
    sdlf_plan_options options = w->plan;
    int64_t share = sdlf_communicator_share(w->ranks, batch);
    options.mode = SDLF_TRAIN;
    options.batch = share;
    options.communicator = communicator;
    options.first_sample = sdlf_communicator_first(w->ranks, batch);
    options.rank_fraction = (double)share / (double)batch;
    options.samples_of_all = batch;
    options.samples_that_count = share;
    sdlf_status status = sdlf_plan_create(plan, w->model, &options);
    if (status == SDLF_OK) status = samples_write_random(*plan, w->model, SDLF_TRAIN, (uint64_t)w->ranks->rank + 1);
    return sdlf_communicator_agree(w->ranks, status);
}

/* ---- sums by themselves ---- */

enum { MOST_BUCKETS = SDLF_MOST_SUMS };

typedef struct adding {
    sdlf_communicator *ranks;
    struct {
        sdlf_calculator *calculator;
        sdlf_dtype dtype;
        int64_t count, ticket;
        void *memory;
    } sum[MOST_BUCKETS];
    int count;
} adding;

static sdlf_status add_all(void *user)
{
    adding *a = user;
    sdlf_status status = SDLF_OK;
    const sdlf_communicator_class *type = a->ranks->type;
    for (int i = 0; i < a->count && status == SDLF_OK; i++)
        status = type->allreduce_begin(a->ranks, a->sum[i].calculator, a->sum[i].memory, a->sum[i].dtype,
                                       a->sum[i].count, &a->sum[i].ticket);
    for (int i = 0; i < a->count && status == SDLF_OK; i++) status = type->collective_end(a->ranks, a->sum[i].ticket);
    for (int i = 0; i < a->count && status == SDLF_OK; i++)
        status = a->sum[i].calculator->type->synchronize(a->sum[i].calculator);
    return status;
}

static sdlf_status add_sum(adding *a, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t count)
{
    int64_t bytes = count * (int64_t)sdlf_dtype_size(dtype);
    if (a->count == MOST_BUCKETS) return SDLF_OK; /* more are never in flight */
    sdlf_status status = calculator->type->allocate(calculator, bytes, &a->sum[a->count].memory);
    if (status != SDLF_OK) return status;
    a->sum[a->count].calculator = calculator;
    a->sum[a->count].dtype = dtype;
    a->sum[a->count++].count = count;
    sdlf_operation clear = {.kind = SDLF_FILL, .out = {sdlf_tensor_view(dtype, sdlf_shape(count), NULL)}};
    clear.out[0].data = a->sum[a->count - 1].memory;
    return calculator->type->kernel[SDLF_FILL].run(calculator, &clear);
}

static void release(adding *a)
{
    for (int i = 0; i < a->count; i++) a->sum[i].calculator->type->deallocate(a->sum[i].calculator, a->sum[i].memory);
    free(a);
}

static sdlf_calculator *calculator_named(const machine *m, const char *name)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->calculator[i]->type->name, name) == 0) return m->calculator[i];
    return NULL;
}

/* Times the all-reduces of the plan's step. */
static sdlf_status time_sums(scaling_point *point, const scaling_work *w, const sdlf_plan *plan)
{
    adding *a = calloc(1, sizeof *a);
    sdlf_status status = a != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory");
    for (int i = 0; i < sdlf_plan_step_count(plan) && status == SDLF_OK; i++) {
        const sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COMMUNICATE || step.cost.bytes == 0 || step.serves != SDLF_PHASE_UPDATE) continue;
        point->bytes += step.cost.bytes;
        point->buckets++;
        a->ranks = w->ranks;
        status = add_sum(a, calculator_named(w->machine, step.calculator), step.dtype, sdlf_shape_count(step.shape));
    }
    status = sdlf_communicator_agree(w->ranks, status);
    timed sums = {.work = add_all, .user = a};
    if (status == SDLF_OK) status = time_works(&sums, 1, w);
    point->sums = sums.seconds;
    if (a != NULL) release(a);
    return status;
}

sdlf_status scaling_measure_sum(double *seconds, int64_t bytes, sdlf_calculator *calculator, const scaling_work *w)
{
    adding *a = calloc(1, sizeof *a);
    sdlf_status status = a != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory");
    if (status == SDLF_OK) {
        a->ranks = w->ranks;
        status = add_sum(a, calculator, SDLF_FLOAT32, bytes / (int64_t)sizeof(float));
    }
    status = sdlf_communicator_agree(w->ranks, status);
    timed sum = {.work = add_all, .user = a};
    if (status == SDLF_OK) status = time_works(&sum, 1, w);
    *seconds = sum.seconds;
    if (a != NULL) release(a);
    return status;
}

sdlf_status scaling_measure(scaling_point *point, const scaling_work *w)
{
    sdlf_communicator silent = {.type = &silent_class, .rank = w->ranks->rank, .rank_count = w->ranks->rank_count};
    stepping summing = {.steps = w->steps}, alone = summing;
    timed both[MOST_WORKS] = {{.work = run_steps, .user = &summing}, {.work = run_steps, .user = &alone}};
    sdlf_status status = make_plan(&summing.plan, w, w->ranks, point->batch);
    if (status == SDLF_OK) status = make_plan(&alone.plan, w, &silent, point->batch);
    if (status == SDLF_OK) status = time_works(both, MOST_WORKS, w);
    point->seconds = both[0].seconds / (double)w->steps;
    point->compute = both[1].seconds / (double)w->steps;
    if (status == SDLF_OK) status = time_sums(point, w, summing.plan);
    sdlf_plan_free(summing.plan);
    sdlf_plan_free(alone.plan);
    return status;
}
