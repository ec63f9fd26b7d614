/* SPDX-License-Identifier: MIT */
/* The microkernels of quantized_tiles.h over a whole layer, for quantized_conv2d and integer_matmul. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized_tiles.h"

enum { TASK_PRODUCTS = 1 << 21, PIXELS_TOGETHER = 24 };

typedef struct work {
    const quantized_layer *layer;
    quantized_tile_function *tiles;
    int64_t vectors, blocks, each, pixels,
        chunk; /* `vectors` vectors of a group's filters, `each` in a block; pixels, in chunks */
} work;

/* A chunk of pixels times a block of filters; neighbouring tasks share the pixels. */
static void tiles_task(void *argument, int64_t index, int thread)
{
    (void)thread;
    const work *all = argument;
    int64_t block = index % all->blocks, group = index / all->blocks % all->layer->groups;
    int64_t first = index / all->blocks / all->layer->groups * all->chunk, from = block * all->each;
    all->tiles(all->layer, group, from, cpu_min(all->each, all->vectors - from), first,
               cpu_min(all->pixels, first + all->chunk));
}

void quantized_product_cpu(const cpu_calculator *cpu, const quantized_layer *layer, bool vnni, int64_t pixels,
                           int64_t length)
{
    int64_t groups = layer->groups, products = pixels * layer->k * layer->runs * length;
    work all = {.layer = layer, .tiles = quantized_tiles_cpu, .pixels = pixels};
#if SDLF_VECTOR_BYTES == 64
    if (vnni) all.tiles = quantized_tiles_vnni_cpu;
#endif
    all.vectors = cpu_divide_up(layer->k / groups, LANES);
    all.blocks = cpu_divide_up(all.vectors, QUANTIZED_VECTORS);
    all.each = cpu_divide_up(all.vectors, all.blocks);
    all.blocks = cpu_divide_up(all.vectors, all.each);
    int64_t of_pixel = layer->runs * length * all.each * LANES, tasks = 4 * cpu->threads;
    int64_t chunk = cpu_max(1, TASK_PRODUCTS / cpu_max(1, of_pixel));
    int64_t chunks = cpu_max(1, tasks / (all.blocks * groups)); /* enough for every thread */
    chunk = cpu_min(chunk, cpu_divide_up(pixels, chunks));
    all.chunk = cpu_round_up(cpu_max(1, chunk), PIXELS_TOGETHER);
    cpu_parallel_static_exact(cpu, cpu_divide_up(pixels, all.chunk) * all.blocks * groups,
                              cpu_time_of_flops(products) / (vnni ? 2 : 1), tiles_task, &all);
}
