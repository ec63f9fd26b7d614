/* dropout_forward and dropout_backward: y = x m / (1 - p) with m drawn by position. Contracts: <sdlf/operation.h>.
 *
 * Forward and backward are one loop: the same positions draw the same numbers. Groups of four elements are drawn side by
 * side, a vector lane each: some 60 integer instructions a vector of groups. */
#include "calculators/cpu/kernels/kernels.h"
#include "framework/operations/draws.h"

/* Groups drawn at once. */
enum { GROUPS = 64 };

typedef struct dropout_context {
    const element *x;
    element *y;
    int64_t count;
    uint64_t seed;
    uint32_t stream, step, threshold;
    element scale;
} dropout_context;

static void drop(void *context, int64_t index, int thread)
{
    const dropout_context *dropout = context;
    int64_t end = cpu_min((index + 1) * TASK_ELEMENTS, dropout->count);
    const uint32_t threshold = dropout->threshold;
    const element scale = dropout->scale;
    (void)thread;
    for (int64_t first = index * TASK_ELEMENTS; first < end; first += 4 * GROUPS) {
        uint32_t word[GROUPS][4];
        element kept[4 * GROUPS];
#pragma omp simd
        for (int i = 0; i < GROUPS; i++) {
            sdlf_philox group =
                sdlf_philox4x32(dropout->seed, (uint64_t)(first / 4 + i), dropout->stream, dropout->step);
            for (int j = 0; j < 4; j++) word[i][j] = group.word[j];
        }
        const uint32_t *words = &word[0][0];
#pragma omp simd
        for (int i = 0; i < 4 * GROUPS; i++) {
            kept[i] = sdlf_dropout_keeps(words[i], threshold) ? scale : 0;
        }
        int64_t some = cpu_min(4 * GROUPS, end - first), i = 0;
        const element *x = dropout->x + first;
        element *y = dropout->y + first;
        /* Whatever x is, what is dropped is 0. Without a branch, which would go wrong half the time. */
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
                               .seed = operation->dropout.seed,
                               .stream = operation->dropout.stream,
                               .step = (uint32_t) * (const int64_t *)operation->in[1].data,
                               .threshold = sdlf_dropout_threshold(operation->dropout.probability),
                               .scale = (element)(1 / (1 - (double)operation->dropout.probability))};
    cpu_parallel(cpu_from(calculator), cpu_divide_up(context.count, TASK_ELEMENTS), context.count, drop, &context);
    return SDLF_OK;
}
