/* SPDX-License-Identifier: MIT */
/* random_uniform and random_normal: counter-based, a value depends only on its position. Contracts: <sdlf/operation.h>.
 *
 * 10 rounds of Philox for a group of four elements, some 60 integer instructions; each element is written once. Compiled
 * without contraction of a * b + c: values are bit-identical on every calculator (see framework/operations/draws.h). */
#include "calculators/cpu/cpu.h"
#include "framework/operations/draws.h"

/* Elements of a task, and of a block that is converted at once; multiples of a group of four. */
enum { TASK_ELEMENTS = 1 << 14, BLOCK_ELEMENTS = 256 };

typedef struct random_context {
    const sdlf_operation *operation;
    char *y;
    int64_t count, size;
} random_context;

static sdlf_philox group_of(const sdlf_operation *operation, int64_t e)
{
    return sdlf_philox4x32(operation->random.seed, (uint64_t)e / 4, operation->random.stream, 0);
}

static void draw_uniform(void *context, int64_t index, int thread)
{
    const random_context *random = context;
    const sdlf_operation *operation = random->operation;
    int64_t end = cpu_min((index + 1) * TASK_ELEMENTS, random->count);
    (void)thread;
    for (int64_t first = index * TASK_ELEMENTS; first < end; first += BLOCK_ELEMENTS) {
        float block[BLOCK_ELEMENTS];
        for (int i = 0; i < BLOCK_ELEMENTS; i += 4) {
            sdlf_philox group = group_of(operation, first + i);
            for (int j = 0; j < 4; j++) {
                block[i + j] = sdlf_random_uniform_value(group.word[j], operation->random.a, operation->random.b);
            }
        }
        sdlf_convert(operation->out[0].dtype, random->y + first * random->size, SDLF_FLOAT32, block,
                     cpu_min(BLOCK_ELEMENTS, end - first));
    }
}

static void draw_normal(void *context, int64_t index, int thread)
{
    const random_context *random = context;
    const sdlf_operation *operation = random->operation;
    double mean = (double)operation->random.a, deviation = (double)operation->random.b;
    int64_t end = cpu_min((index + 1) * TASK_ELEMENTS, random->count);
    (void)thread;
    for (int64_t first = index * TASK_ELEMENTS; first < end; first += BLOCK_ELEMENTS) {
        double block[BLOCK_ELEMENTS];
        for (int i = 0; i < BLOCK_ELEMENTS; i += 4) {
            sdlf_philox group = group_of(operation, first + i);
            sdlf_random_normal_pair(group.word[0], group.word[1], mean, deviation, &block[i]);
            sdlf_random_normal_pair(group.word[2], group.word[3], mean, deviation, &block[i + 2]);
        }
        sdlf_convert(operation->out[0].dtype, random->y + first * random->size, SDLF_FLOAT64, block,
                     cpu_min(BLOCK_ELEMENTS, end - first));
    }
}

static sdlf_status draw(sdlf_calculator *calculator, const sdlf_operation *operation, cpu_task *task)
{
    const sdlf_tensor *y = &operation->out[0];
    random_context random = {.operation = operation,
                             .y = y->data,
                             .count = sdlf_tensor_count(y),
                             .size = (int64_t)sdlf_dtype_size(y->dtype)};
    cpu_parallel_exact(cpu_from(calculator), cpu_divide_up(random.count, TASK_ELEMENTS), 4 * random.count, task,
                       &random);
    return SDLF_OK;
}

sdlf_status cpu_random_uniform(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return draw(calculator, operation, draw_uniform);
}

sdlf_status cpu_random_normal(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return draw(calculator, operation, draw_normal);
}
