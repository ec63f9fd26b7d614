/* SPDX-License-Identifier: MIT */
/* Measuring the rungs of the convolution lab.
 *
 * Reference uses plain loops with double accumulators: all outputs of a large convolution would take it minutes. So
 * only the last image is compared, with as many of the last filters as cost 1e8 FLOPs. The outputs are NaN before a
 * rung runs, so that elements that it does not write are detected. */
#include "apps/bench/conv/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/conv/fill.h"
#include "apps/system/memory.h"
#include "apps/timing/operation.h"

static const double reference_flops = 1e8;

int lab_rungs_of(sdlf_calculator *calculator, lab_rung *rungs, int most)
{
    const sdlf_kernel_slot *slot = &calculator->type->kernel[SDLF_CONV2D_FORWARD];
    int count = 0;
    if (!slot->run) return 0;
    for (int i = 1; slot->algorithms && slot->algorithms[i] && count < most - 1; i++) {
        rungs[count++] = (lab_rung){.algorithm = i};
    }
    rungs[count++] = (lab_rung){.algorithm = 0};
    for (int i = 0; i < count; i++) {
        snprintf(rungs[i].name, sizeof rungs[i].name, "%s",
                 slot->algorithms ? slot->algorithms[rungs[i].algorithm] : calculator->type->name);
        const char *summary = slot->notes ? slot->notes[rungs[i].algorithm].summary : NULL;
        rungs[i].summary = summary ? summary : slot->algorithms ? "" : calculator->type->summary;
        rungs[i].calculator = calculator;
        rungs[i].of = calculator->type->name;
    }
    return count;
}

lab_rung lab_rival_of(sdlf_calculator *calculator, bool long_name)
{
    const char *summary = calculator->type->summary;
    lab_rung rung = {
        .summary = summary ? summary : "", .calculator = calculator, .of = calculator->type->name, .rival = true};
    snprintf(rung.name, sizeof rung.name, "%s%s", calculator->type->name, long_name ? ":auto" : "");
    return rung;
}

struct lab_bench {
    sdlf_calculator *calculator, *reference;
    bool check;               /* outputs are compared */
    sdlf_operation operation; /* bound on the calculator */
    sdlf_tensor expected;     /* on the host: filters [first, K) of the last image */
    int64_t first;
    double low, high;        /* of the expected values */
    void *memory[5], *found; /* x, w, y on the calculator, x and y in NHWC there; the outputs to compare, on the host */
};

/* The first filter that reference computes: as many of the last ones as it has time for; all of them if
 * grouped. */
static int64_t first_filter(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim;
    int64_t filters = operation->in[1].shape.dim[0];
    if (operation->conv2d.groups > 1) return 0;
    double each = (double)sdlf_operation_cost(operation).flops / (double)x[0] / (double)filters;
    double some = reference_flops / (each > 1 ? each : 1);
    return some >= (double)filters ? 0 : some < 1 ? filters - 1 : filters - (int64_t)some;
}

/* The part of a tensor from index `first` of an axis on: contiguous, for the outermost axes. */
static sdlf_tensor rest(sdlf_tensor tensor, int axis, int64_t first)
{
    return sdlf_tensor_narrow(tensor, axis, first, tensor.shape.dim[axis] - first);
}

/* The operation on the last image and the filters from `first` on. */
static sdlf_operation part_of(sdlf_operation operation, int64_t first)
{
    int64_t last = operation.in[0].shape.dim[0] - 1;
    operation.algorithm = 0;
    operation.workspace = (sdlf_tensor){.dtype = SDLF_NONE};
    operation.in[0] = rest(operation.in[0], 0, last);
    operation.in[1] = rest(operation.in[1], 0, first);
    operation.out[0] = rest(rest(operation.out[0], 0, last), 1, first);
    return operation;
}

static double value_at(sdlf_dtype dtype, const void *values, int64_t index)
{
    return dtype == SDLF_FLOAT64 ? ((const double *)values)[index] : (double)((const float *)values)[index];
}

/* Fills the inputs on the host and on the calculator, and computes the reference outputs. */
static sdlf_status fill(lab_bench *b)
{
    sdlf_tensor image = {0}, filters = {0};
    sdlf_operation part = part_of(b->operation, b->first);
    const sdlf_tensor *x = &b->operation.in[0], *w = &b->operation.in[1];
    sdlf_status status = lab_fill(b->calculator, b->reference, x, x->shape.dim[0], 17, &image);
    if (status == SDLF_OK) status = lab_fill(b->calculator, b->reference, w, 1, 18, &filters);
    if (status == SDLF_OK && b->check)
        status = sdlf_tensor_create(&b->expected, b->reference, part.out[0].dtype, part.out[0].shape);
    part.in[0].data = image.data;
    part.in[1].data = (char *)filters.data + (sdlf_tensor_bytes(w) - sdlf_tensor_bytes(&part.in[1]));
    part.out[0] = b->expected;
    if (status == SDLF_OK && b->check) status = sdlf_calculator_run(b->reference, &part);
    sdlf_tensor_release(&image, b->reference);
    sdlf_tensor_release(&filters, b->reference);
    if (status != SDLF_OK || !b->check) return status;
    b->low = INFINITY;
    b->high = -INFINITY;
    for (int64_t i = 0; i < sdlf_tensor_count(&b->expected); i++) {
        double value = value_at(b->expected.dtype, b->expected.data, i);
        b->low = fmin(b->low, value);
        b->high = fmax(b->high, value);
    }
    b->found = memory_allocate((size_t)sdlf_tensor_bytes(&b->expected));
    return SDLF_OK;
}

sdlf_status lab_bench_create(lab_bench **bench, sdlf_calculator *calculator, sdlf_calculator *reference,
                             const sdlf_operation *operation, bool check)
{
    lab_bench *b = *bench = memory_allocate(sizeof *b);
    *b = (lab_bench){.calculator = calculator, .reference = reference, .operation = *operation, .check = check};
    b->first = first_filter(operation);
    sdlf_tensor *operand[] = {&b->operation.in[0], &b->operation.in[1], &b->operation.out[0]};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 3 && status == SDLF_OK; i++) {
        status = calculator->type->allocate(calculator, sdlf_tensor_bytes(operand[i]), &b->memory[i]);
        operand[i]->data = b->memory[i];
    }
    if (status == SDLF_OK) status = fill(b);
    if (status == SDLF_OK) return SDLF_OK;
    lab_bench_free(b);
    *bench = NULL;
    return status;
}

void lab_bench_free(lab_bench *b)
{
    if (!b) return;
    for (int i = 0; i < 5; i++) {
        if (b->memory[i]) b->calculator->type->deallocate(b->calculator, b->memory[i]);
    }
    sdlf_tensor_release(&b->expected, b->reference);
    free(b->found);
    free(b);
}

/* A rung's operation with NHWC activations. */
static sdlf_operation in_channels_last(sdlf_operation operation)
{
    operation.in[0] = sdlf_tensor_channels_last(operation.in[0]);
    operation.out[0] = sdlf_tensor_channels_last(operation.out[0]);
    return operation;
}

/* True if activations are NHWC for this rung: if it accepts no other layout; and for the calculator's automatic choice,
 * if inference plans would use NHWC. */
static bool wants_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, operation);
    sdlf_operation last = in_channels_last(*operation);
    if (!slot->channels_last || !sdlf_calculator_supports(calculator, &last)) return false;
    if (operation->algorithm == 0) return sdlf_calculator_prefers_channels_last(calculator, operation);
    return !sdlf_calculator_supports(calculator, operation);
}

static sdlf_status copy(sdlf_calculator *calculator, sdlf_tensor from, sdlf_tensor to)
{
    sdlf_operation operation = {.kind = SDLF_COPY, .in = {from}, .out = {to}};
    return sdlf_calculator_run(calculator, &operation);
}

int64_t lab_bench_bytes(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation part = part_of(*operation, first_filter(operation));
    int64_t most = 0, last = 0;
    lab_rung rungs[LAB_RUNGS];
    int count = lab_rungs_of(calculator, rungs, LAB_RUNGS);
    for (int i = 0; i < count; i++) {
        sdlf_operation asked = *operation;
        asked.algorithm = rungs[i].algorithm;
        if (wants_channels_last(calculator, &asked)) {
            asked = in_channels_last(asked);
            last = sdlf_tensor_bytes(&asked.in[0]) + sdlf_tensor_bytes(&asked.out[0]);
        }
        if (!sdlf_calculator_supports(calculator, &asked)) continue;
        int64_t bytes = sdlf_calculator_workspace(calculator, &asked) + sdlf_calculator_prepared(calculator, &asked);
        if (bytes > most) most = bytes;
    }
    return sdlf_operation_cost(operation).bytes + most + last + sdlf_tensor_bytes(&operation->in[0]) +
           sdlf_tensor_bytes(&operation->in[1]) + 2 * sdlf_tensor_bytes(&part.out[0]);
}

/* Binds the operation to NHWC copies of x and y, created when the first rung needs them. */
static sdlf_status turn(lab_bench *b, sdlf_calculator *calculator, sdlf_operation *operation)
{
    sdlf_tensor *operand[] = {&operation->in[0], &operation->out[0]};
    sdlf_tensor x = operation->in[0];
    bool made = b->memory[3] != NULL;
    sdlf_status status = SDLF_OK;
    *operation = in_channels_last(*operation);
    for (int i = 0; i < 2 && status == SDLF_OK; i++) {
        if (!b->memory[3 + i])
            status = b->calculator->type->allocate(b->calculator, sdlf_tensor_bytes(operand[i]), &b->memory[3 + i]);
        operand[i]->data = b->memory[3 + i];
    }
    return status == SDLF_OK && !made ? copy(calculator, x, operation->in[0]) : status;
}

/* Runs once on outputs set to NaN and compares, before anything is timed. */
static sdlf_status compare(lab_bench *b, sdlf_calculator *calculator, const sdlf_operation *operation,
                           lab_result *result)
{
    sdlf_tensor written = sdlf_tensor_view(operation->out[0].dtype, operation->out[0].shape, operation->out[0].data);
    sdlf_operation poison = {.kind = SDLF_FILL, .out = {written}, .fill = {.value = NAN}};
    sdlf_operation part = part_of(b->operation, b->first);
    sdlf_status status = sdlf_calculator_run(calculator, &poison);
    if (status == SDLF_OK) status = sdlf_calculator_slot(calculator, operation)->run(calculator, operation);
    if (status == SDLF_OK && result->channels_last) status = copy(calculator, operation->out[0], b->operation.out[0]);
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    if (status == SDLF_OK)
        status = calculator->type->download(calculator, b->found, part.out[0].data, sdlf_tensor_bytes(&b->expected));
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    int64_t count = sdlf_tensor_count(&b->expected);
    double worst = 0, range = b->high > b->low ? b->high - b->low : 1;
    for (int64_t i = 0; i < count && status == SDLF_OK && !isnan(worst); i++) {
        double difference =
            fabs(value_at(b->expected.dtype, b->found, i) - value_at(b->expected.dtype, b->expected.data, i));
        worst = difference <= worst ? worst : difference; /* NaN too */
    }
    result->error = worst / range;
    result->compared = (double)count / (double)sdlf_tensor_count(&operation->out[0]);
    return status;
}

/* Records why a rung does not run, from the calculator's note. */
static void explain(lab_result *result, const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const char *takes = sdlf_calculator_note(calculator, operation).takes;
    snprintf(result->why, sizeof result->why, "%s%s", takes ? "takes " : "does not take this convolution",
             takes ? takes : "");
}

/* Allocates memory for prepacked weights, and for workspace. False: out of memory, which the result records. */
static bool take_memory(sdlf_calculator *calculator, sdlf_operation *operation, void *memory[2], lab_result *result)
{
    sdlf_tensor *tensor[] = {&operation->prepared, &operation->workspace};
    for (int i = 0; i < 2; i++) { /* prepacked weights need no workspace */
        int64_t bytes =
            i == 0 ? sdlf_calculator_prepared(calculator, operation) : sdlf_calculator_workspace(calculator, operation);
        if (i == 0) result->prepared = bytes;
        if (bytes == 0) continue;
        if (calculator->type->allocate(calculator, bytes, &memory[i]) != SDLF_OK) {
            snprintf(result->why, sizeof result->why, "no memory for %.0f MB of %s", 1e-6 * (double)bytes,
                     i == 0 ? "weights" : "scratch space");
            return false;
        }
        *tensor[i] = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), memory[i]);
    }
    return true;
}

sdlf_status lab_bench_run(lab_bench *b, const lab_rung *rung, const lab_effort *effort, lab_result *result)
{
    sdlf_calculator *calculator = rung->calculator;
    sdlf_operation operation = b->operation;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, &operation);
    void *memory[2] = {NULL};
    *result = (lab_result){.ran = false};
    operation.algorithm = rung->algorithm;
    result->channels_last = wants_channels_last(calculator, &operation);
    if (!result->channels_last && !sdlf_calculator_supports(calculator, &operation)) {
        explain(result, calculator, &operation);
        return SDLF_OK;
    }
    sdlf_status status = result->channels_last ? turn(b, calculator, &operation) : SDLF_OK;
    if (status == SDLF_OK && take_memory(calculator, &operation, memory, result)) {
        const char *name = sdlf_calculator_algorithm(calculator, &operation);
        if (rung->algorithm == 0 && name && strcmp(name, rung->name) != 0) result->taken = name;
        result->work = sdlf_calculator_work(calculator, &operation);
        if (sdlf_tensor_present(&operation.prepared)) status = slot->prepare(calculator, &operation);
        result->error = NAN;
        if (status == SDLF_OK && b->check) status = compare(b, calculator, &operation, result);
        if (status == SDLF_OK) status = lab_time(result, calculator, &operation, effort);
        result->ran = status == SDLF_OK;
    }
    for (int i = 0; i < 2; i++) {
        if (memory[i]) calculator->type->deallocate(calculator, memory[i]);
    }
    return sdlf_fail_context(status, "%s of %s", rung->name, calculator->type->name);
}
