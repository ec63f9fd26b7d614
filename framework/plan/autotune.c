/* SPDX-License-Identifier: MIT */
/* Autotuning. Operands are filled with random values: zeros would run faster on hardware that saves power on
 * them. */
#include "framework/plan/autotune.h"

#include "framework/clock.h"
#include "framework/operand.h"
#include "framework/sort.h"

enum { SAMPLES = 5, MOST_REPEATS = 50 };

static const double SAMPLE_SECONDS =
    0.002; /* short operations are repeated for this long, for the clock's resolution */
static const double LIMIT_SECONDS = 0.1;
static const double HOPELESS = 3; /* times slower than the best: one run is enough */

/* Fills with values in [-1, 1), or zeros if the calculator cannot draw this type; unchanged if it supports neither. */
static sdlf_status fill(sdlf_calculator *calculator, sdlf_tensor tensor, int index)
{
    tensor = sdlf_tensor_view(tensor.dtype, sdlf_shape(sdlf_tensor_count(&tensor)), tensor.data);
    sdlf_operation random = {.kind = SDLF_RANDOM_UNIFORM,
                             .out = {tensor},
                             .random = {.seed = 1, .stream = (uint32_t)index, .a = -1, .b = 1}};
    sdlf_operation zeros = {.kind = SDLF_FILL, .out = {tensor}, .fill = {.value = 0}};
    bool drawn = sdlf_dtype_is_float(tensor.dtype) && sdlf_calculator_supports(calculator, &random);
    if (drawn) return sdlf_calculator_run(calculator, &random);
    if (sdlf_calculator_supports(calculator, &zeros)) return sdlf_calculator_run(calculator, &zeros);
    return SDLF_OK;
}

static sdlf_status take_operands(sdlf_calculator *calculator, sdlf_operation *operation, void **memory)
{
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *tensor = sdlf_operand_at(operation, i);
        if (!sdlf_tensor_present(tensor)) continue;
        sdlf_status status = calculator->type->allocate(calculator, sdlf_tensor_bytes(tensor), &memory[i]);
        if (status != SDLF_OK) return status;
        *tensor = sdlf_tensor_view(tensor->dtype, tensor->shape, memory[i]);
        status = fill(calculator, *tensor, i);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status run_times(sdlf_calculator *calculator, const sdlf_operation *operation, int repeats)
{
    sdlf_kernel *run = sdlf_calculator_slot(calculator, operation)->run;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < repeats && status == SDLF_OK; i++) status = run(calculator, operation);
    return status;
}

/* Seconds for `repeats` runs, from an idle calculator until it is idle again. Recorded runs are what a plan
 * replays. */
static sdlf_status clock_runs(sdlf_calculator *calculator, const sdlf_operation *operation, int repeats,
                              void *recording, double *seconds)
{
    double start = sdlf_clock();
    sdlf_status status =
        recording != NULL ? calculator->type->replay(calculator, recording) : run_times(calculator, operation, repeats);
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    *seconds = sdlf_clock() - start;
    return status;
}

static sdlf_status record(sdlf_calculator *calculator, const sdlf_operation *operation, int repeats, void **recording)
{
    *recording = NULL;
    if (calculator->type->record_begin == NULL) return SDLF_OK;
    sdlf_status status = calculator->type->record_begin(calculator);
    if (status != SDLF_OK) return status;
    status = run_times(calculator, operation, repeats);
    sdlf_status ended = calculator->type->record_end(calculator, recording);
    return status != SDLF_OK ? status : ended;
}

/* The median time of a run; `best` so far, 0 for none. */
static sdlf_status time_algorithm(sdlf_calculator *calculator, const sdlf_operation *operation, double best,
                                  double *seconds)
{
    double samples[SAMPLES], total = 0, first = 0;
    void *recording = NULL;
    sdlf_status status = clock_runs(calculator, operation, 1, NULL, &first); /* warm-up */
    if (status == SDLF_OK) status = clock_runs(calculator, operation, 1, NULL, &first);
    *seconds = first;
    if (status != SDLF_OK || (best > 0 && first > HOPELESS * best && first > SAMPLE_SECONDS)) return status;
    double wanted = SAMPLE_SECONDS / (first > 1e-6 ? first : 1e-6);
    int repeats = wanted < 1 ? 1 : wanted > MOST_REPEATS ? MOST_REPEATS : (int)wanted, count = 0;
    status = record(calculator, operation, repeats, &recording);
    while (status == SDLF_OK && count < SAMPLES && (count == 0 || total < LIMIT_SECONDS)) {
        status = clock_runs(calculator, operation, repeats, recording, &samples[count]);
        total += samples[count++];
    }
    if (recording != NULL) calculator->type->discard(calculator, recording);
    if (status != SDLF_OK) return status;
    sdlf_sort_doubles(samples, (size_t)count);
    *seconds = samples[count / 2] / repeats;
    return SDLF_OK;
}

/* Allocates temporary bytes for an operand of the operation. */
static sdlf_status take_bytes(sdlf_calculator *calculator, int64_t bytes, sdlf_tensor *tensor)
{
    void *memory = NULL;
    if (bytes <= 0) return SDLF_OK;
    sdlf_status status = calculator->type->allocate(calculator, bytes, &memory);
    if (status == SDLF_OK) *tensor = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), memory);
    return status;
}

/* Times it with weights prepacked, if allowed, and a workspace. *ran: there was enough memory. */
static sdlf_status try_algorithm(sdlf_calculator *calculator, sdlf_operation operation, bool may_use_nhwc, double best,
                                 double *seconds, bool *ran)
{
    sdlf_status status = SDLF_OK;
    *ran = false;
    if (may_use_nhwc)
        status = take_bytes(calculator, sdlf_calculator_prepared(calculator, &operation), &operation.prepared);
    if (status == SDLF_OK)
        status = take_bytes(calculator, sdlf_calculator_workspace(calculator, &operation), &operation.workspace);
    bool short_of_memory = status == SDLF_ERROR_MEMORY;
    if (status == SDLF_OK && sdlf_tensor_present(&operation.prepared))
        status = sdlf_calculator_slot(calculator, &operation)->prepare(calculator, &operation);
    if (status == SDLF_OK) status = time_algorithm(calculator, &operation, best, seconds);
    *ran = status == SDLF_OK;
    if (operation.workspace.data != NULL) calculator->type->deallocate(calculator, operation.workspace.data);
    if (operation.prepared.data != NULL) calculator->type->deallocate(calculator, operation.prepared.data);
    return short_of_memory ? SDLF_OK : status;
}

sdlf_status autotune_run(autotune_result *result, sdlf_calculator *calculator, const sdlf_operation *operation,
                         bool may_use_nhwc)
{
    void *memory[SDLF_MAX_OPERANDS] = {NULL};
    sdlf_operation bound = *operation;
    const char *const *names = sdlf_calculator_slot(calculator, operation)->algorithms;
    double best = 0;
    *result = (autotune_result){.algorithm = 0};
    sdlf_status status = take_operands(calculator, &bound, memory);
    for (int i = 1; names != NULL && names[i] != NULL && status == SDLF_OK && result->count < AUTOTUNE_MAX_ALGORITHMS;
         i++) {
        bool ran = false;
        double seconds = 0;
        bound.algorithm = i;
        sdlf_operation tried = bound;
        if (sdlf_calculator_note(calculator, &tried).on_request) continue; /* not even loaded */
        if (may_use_nhwc && !sdlf_calculator_supports(calculator, &tried)) tried = sdlf_operation_channels_last(&bound);
        if (!sdlf_calculator_supports(calculator, &tried)) continue;
        status = try_algorithm(calculator, tried, may_use_nhwc, best, &seconds, &ran);
        if (!ran) continue;
        result->ran[result->count] = i;
        result->seconds[result->count++] = seconds;
        if (best > 0 && seconds >= best) continue;
        best = seconds;
        result->algorithm = i;
    }
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        if (memory[i] != NULL) calculator->type->deallocate(calculator, memory[i]);
    }
    return status;
}
