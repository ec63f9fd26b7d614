/* SPDX-License-Identifier: MIT */
#include "kernels/sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

sdlf_tensor sequence_add(sequence *s, sequence_operand made)
{
    int number = s->operand_count++;
    s->operand[number] = made;
    sdlf_tensor tensor = sdlf_tensor_view(made.dtype, made.shape, NULL);
    tensor.buffer = number;
    return tensor;
}

sdlf_tensor sequence_numbers(sequence *s, sdlf_shape shape, float scale)
{
    return sequence_add(s, (sequence_operand){.dtype = SDLF_FLOAT32, .shape = shape, .scale = scale, .written = true});
}

/* ---- running ---- */

/* In place. */
static void round_down(float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) memcpy((uint16_t *)(void *)numbers + i, (const char *)(numbers + i) + 2, 2);
}

static void place(sdlf_calculator *calculator, sequence_operand *o, int number)
{
    sdlf_tensor tensor = sdlf_tensor_view(o->dtype, o->shape, NULL);
    int64_t count = sdlf_tensor_count(&tensor), bytes = count * 8; /* of any type */
    float *made = o->from == NULL ? malloc((size_t)bytes) : NULL;
    for (int64_t i = 0; made != NULL && i < count; i++) {
        uint32_t word = sdlf_philox4x32(11, (uint64_t)i, (uint32_t)number, 0).word[0];
        made[i] = (float)((double)word * 0x1p-31 - 1) * o->scale;
        if (o->positive) made[i] = fabsf(made[i]);
    }
    if (made != NULL && o->dtype == SDLF_BFLOAT16) round_down(made, count);
    o->binding = test_tensor(calculator, o->dtype, o->shape, o->from != NULL ? o->from : made);
    o->found = malloc((size_t)bytes);
    free(made);
}

/* Fetch all outputs of `times` runs: as many leading operations in one launch as the calculator supports, the others one
 * by one. Returns how many were launched together. */
static int run(sequence *s, sdlf_calculator *calculator, bool together, int times)
{
    const sdlf_operation *operations[SEQUENCE_OPERATIONS];
    sdlf_binding workspaces[SEQUENCE_OPERATIONS] = {0};
    int done = 0;
    for (int i = 0; i < s->operand_count; i++) place(calculator, &s->operand[i], i);
    for (int k = 0; k < s->count; k++) {
        sdlf_operation *op = &s->operation[k];
        operations[k] = op;
        for (int i = 0; i < SDLF_MAX_INPUTS; i++)
            if (sdlf_tensor_present(&op->in[i])) op->in[i].data = s->operand[op->in[i].buffer].binding.tensor.data;
        for (int i = 0; i < SDLF_MAX_OUTPUTS; i++)
            if (sdlf_tensor_present(&op->out[i])) op->out[i].data = s->operand[op->out[i].buffer].binding.tensor.data;
        CHECK_OK(sdlf_operation_check(op));
        const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, op);
        int64_t bytes = slot->workspace != NULL ? slot->workspace(calculator, op) : 0;
        if (bytes == 0) continue;
        workspaces[k] = test_tensor(calculator, SDLF_UINT8, sdlf_shape(bytes), NULL);
        op->workspace = workspaces[k].tensor;
    }
    for (int n = 0; n < times; n++) {
        if (together) CHECK_OK(calculator->type->run_together(calculator, operations, s->count, &done));
        for (int k = done; k < s->count; k++) CHECK_OK(sdlf_calculator_run(calculator, operations[k]));
    }
    for (int i = 0; i < s->operand_count; i++) {
        test_download(&s->operand[i].binding, s->operand[i].found);
        test_release(&s->operand[i].binding);
    }
    for (int k = 0; k < s->count; k++)
        if (sdlf_tensor_present(&s->operation[k].workspace)) test_release(&workspaces[k]);
    return done;
}

static void release(sequence *s)
{
    for (int i = 0; i < s->operand_count; i++) free(s->operand[i].found);
}

/* ---- comparing ---- */

static double at(const sequence_operand *o, int64_t i)
{
    if (o->dtype == SDLF_FLOAT64) return ((const double *)o->found)[i];
    if (o->dtype != SDLF_BFLOAT16) return (double)((const float *)o->found)[i];
    float value = 0;
    memcpy((char *)&value + 2, (const uint16_t *)o->found + i, 2);
    return (double)value;
}

/* Sums of a few hundred numbers in another order: some units of the last place of the largest; in 16 bits one, which rounding decides. */
static void compare_operand(const sequence_operand *found, const sequence_operand *expected, int number)
{
    sdlf_tensor tensor = sdlf_tensor_view(found->dtype, found->shape, NULL);
    int64_t count = sdlf_tensor_count(&tensor), wrong = 0;
    size_t bytes = (size_t)count * sdlf_dtype_size(found->dtype);
    if (found->exact) {
        if (!CHECK(memcmp(found->found, expected->found, bytes) == 0)) CHECK_EQUAL(number, -1);
        return;
    }
    const double off = found->dtype == SDLF_BFLOAT16 ? 0x1p-7 : 2e-5; /* relative to the largest value */
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(at(expected, i)));
    for (int64_t i = 0; i < count; i++) wrong += !(fabs(at(found, i) - at(expected, i)) <= off * largest + 1e-30);
    if (!CHECK_EQUAL(wrong, 0)) CHECK_EQUAL(number, -1); /* which one it is */
}

void sequence_compare(const sequence *s, sdlf_calculator *calculator, int times, int least)
{
    sequence together = *s, again = *s, alone = *s;
    CHECK(run(&together, calculator, true, times) >= least);
    CHECK(run(&again, calculator, true, times) >= least);
    run(&alone, calculator, false, times);
    for (int i = 0; i < s->operand_count; i++) {
        sdlf_tensor tensor = sdlf_tensor_view(s->operand[i].dtype, s->operand[i].shape, NULL);
        size_t bytes = (size_t)sdlf_tensor_bytes(&tensor);
        CHECK(memcmp(together.operand[i].found, again.operand[i].found, bytes) == 0); /* the same bits each time */
        if (s->operand[i].written) compare_operand(&together.operand[i], &alone.operand[i], i);
    }
    release(&together);
    release(&again);
    release(&alone);
}

void sequence_compare_part(const sequence *s, sdlf_calculator *calculator, int whole, int64_t first, int part)
{
    sequence alone = *s;
    run(&alone, calculator, false, 1);
    sequence_operand all = alone.operand[whole];
    all.shape = alone.operand[part].shape;
    all.found = (char *)all.found + (size_t)first * sdlf_dtype_size(all.dtype);
    compare_operand(&all, &alone.operand[part], part);
    release(&alone);
}
