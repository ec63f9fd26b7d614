/* SPDX-License-Identifier: MIT */
/* dropout_forward and dropout_backward: y = x m / (1 - p) with m a function of the position. Contracts: <sdlf/operation.h>.
 *
 * Forward and backward are one loop: the same positions draw the same random numbers. Groups of four elements are drawn in
 * parallel, one in each vector lane: some 60 integer instructions for a vector of groups. */
#include "calculators/cpu/kernels/kernels.h"
#include "framework/operations/draws.h"

/* Groups drawn at once. */
enum { GROUPS = 64 };

typedef struct dropout_context {
    const element *x;
    element *y;
    int64_t count, first; /* the position of element 0 */
    uint64_t seed;
    uint32_t stream, step, threshold;
    element scale;
} dropout_context;

/* Word j of GROUPS groups from `first` on, word[j][i] = sdlf_philox4x32(seed, first + i, stream, step).word[j]: the
 * groups advance one round at a time, so that the loop vectorises. */
static void draw_groups(uint32_t word[4][GROUPS], const dropout_context *dropout, uint64_t first)
{
    uint32_t key0 = (uint32_t)dropout->seed, key1 = (uint32_t)(dropout->seed >> 32);
    for (int i = 0; i < GROUPS; i++) {
        word[0][i] = (uint32_t)(first + (uint64_t)i);
        word[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        word[2][i] = dropout->stream;
        word[3][i] = dropout->step;
    }
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
        for (int i = 0; i < GROUPS; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * word[0][i], p1 = (uint64_t)0xCD9E8D57u * word[2][i];
            uint32_t next0 = (uint32_t)(p1 >> 32) ^ word[1][i] ^ key0, next2 = (uint32_t)(p0 >> 32) ^ word[3][i] ^ key1;
            word[0][i] = next0;
            word[1][i] = (uint32_t)p1;
            word[2][i] = next2;
            word[3][i] = (uint32_t)p0;
        }
    }
}

static void drop(void *context, int64_t index, int thread)
{
    const dropout_context *dropout = context;
    int64_t end = cpu_min((index + 1) * TASK_ELEMENTS, dropout->count);
    const uint32_t threshold = dropout->threshold;
    const element scale = dropout->scale;
    (void)thread;
    for (int64_t first = index * TASK_ELEMENTS, some; first < end; first += some) {
        uint32_t word[4][GROUPS];
        element all[4 * GROUPS];
        uint64_t number = (uint64_t)(dropout->first + first);
        const element *kept = all + number % 4; /* it may start inside a group if this is a part of a batch */
        draw_groups(word, dropout, number / 4);
        for (int i = 0; i < GROUPS; i++) {
            for (int j = 0; j < 4; j++) all[4 * i + j] = sdlf_dropout_keeps(word[j][i], threshold) ? scale : 0;
        }
        int64_t i = 0;
        some = cpu_min(all + 4 * GROUPS - kept, end - first);
        const element *x = dropout->x + first;
        element *y = dropout->y + first;
        /* Dropped elements are 0 for any x. Branch-free, since a branch would be mispredicted half the time. */
        for (; i + LANES <= some; i += LANES) {
            vector factor = load(kept + i);
            store(y + i, choose(factor != (vector){0}, load(x + i) * factor, (vector){0}));
        }
        for (; i < some; i++) y[i] = kept[i] == 0 ? 0 : x[i] * kept[i];
    }
}

sdlf_status dropout_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    dropout_context context = {.x = input(operation, 0),
                               .y = output(operation, 0),
                               .count = sdlf_tensor_count(&operation->out[0]),
                               .first = operation->dropout.first,
                               .seed = operation->dropout.seed,
                               .stream = operation->dropout.stream,
                               .step = (uint32_t) * (const int64_t *)operation->in[1].data,
                               .threshold = sdlf_dropout_threshold(operation->dropout.probability),
                               .scale = (element)(1 / (1 - (double)operation->dropout.probability))};
    cpu_parallel(cpu_from(calculator), cpu_divide_up(context.count, TASK_ELEMENTS), context.count, drop, &context);
    return SDLF_OK;
}
