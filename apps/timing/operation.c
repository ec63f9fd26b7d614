/* SPDX-License-Identifier: MIT */
/* The time of an operation on a calculator. */
#include "apps/timing/operation.h"

#include <stdlib.h>

#include "apps/system/interrupt.h"
#include "apps/system/memory.h"
#include "framework/clock.h"
#include "framework/sort.h"

enum { MOST_RUNS = 1000, MOST_RECORDED = 200 };
static const double cold_seconds = 1; /* above this, a first run's extra time, for loading code, is a negligible part */
static const double sample_seconds = 0.002; /* so long that the clock and a launch are negligible */

static sdlf_status run_times(sdlf_calculator *calculator, const sdlf_operation *operation, int runs)
{
    sdlf_kernel *run = sdlf_calculator_slot(calculator, operation)->run;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < runs && status == SDLF_OK; i++) status = run(calculator, operation);
    return status;
}

/* Measures the seconds of a run, from an idle calculator until it is idle again. */
static sdlf_status sample(sdlf_calculator *calculator, const sdlf_operation *operation, int runs, void *recording,
                          double *seconds)
{
    double start = sdlf_clock();
    sdlf_status status =
        recording ? calculator->type->replay(calculator, recording) : run_times(calculator, operation, runs);
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    *seconds = (sdlf_clock() - start) / runs;
    return status;
}

static sdlf_status record(sdlf_calculator *calculator, const sdlf_operation *operation, int runs, void **recording)
{
    sdlf_status status = calculator->type->record_begin(calculator);
    if (status != SDLF_OK) return status;
    status = run_times(calculator, operation, runs);
    sdlf_status ended = calculator->type->record_end(calculator, recording);
    return status != SDLF_OK ? status : ended;
}

sdlf_status lab_time(lab_result *result, sdlf_calculator *calculator, const sdlf_operation *operation,
                     const lab_effort *effort)
{
    double *taken = memory_allocate((size_t)effort->repeats * sizeof *taken), first = 0, total;
    void *recording = NULL;
    bool records = calculator->type->record_begin != NULL;
    int count = 0, most = records ? MOST_RECORDED : MOST_RUNS;
    sdlf_status status = sample(calculator, operation, 1, NULL, &first); /* warms up */
    total = first;
    if (status == SDLF_OK && first > effort->seconds && first > cold_seconds) {
        taken[count++] = first; /* so long that a cold start is a small part of it */
    } else if (status == SDLF_OK) {
        status = sample(calculator, operation, 1, NULL, &first);
    }
    double wanted = sample_seconds / (first > 1e-7 ? first : 1e-7);
    int runs = wanted < 1 ? 1 : wanted > most ? most : (int)wanted;
    if (status == SDLF_OK && records && count == 0) status = record(calculator, operation, runs, &recording);
    while (status == SDLF_OK && count < effort->repeats &&
           (count == 0 || (total < effort->seconds && interrupt_signal() == 0))) {
        status = sample(calculator, operation, runs, recording, &taken[count]);
        total += runs * taken[count++];
    }
    if (recording) calculator->type->discard(calculator, recording);
    if (status == SDLF_OK) {
        sdlf_sort_doubles(taken, (size_t)count);
        result->seconds = taken[count / 2];
        result->quarter[0] = taken[count / 4];
        result->quarter[1] = taken[count - 1 - count / 4];
        result->samples = count;
        result->runs = runs;
    }
    free(taken);
    return status;
}
