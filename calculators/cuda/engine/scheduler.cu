/* SPDX-License-Identifier: MIT */
/* How the tiles of an image are distributed over thread blocks (engine/image_params.cuh). Two blocks share a multiprocessor. */
#include "calculators/cuda/engine/image_params.cuh"

#include <algorithm>

enum { MOST_SPLITS = 4, LEAST_STEPS = 4 };

/* Clusters of `size` blocks, two blocks per multiprocessor, that are resident on every device of this model: the split of the reduction determines
 * the rounding, which must not differ between devices of one model (clusters.cu). */
static int clusters_at_once(const cuda_calculator *calculator, int size)
{
    const int most = 2 * calculator->multiprocessors / size;
    return size > 2 ? most * 15 / 16 : most;
}

/* The cluster size: the number of blocks that split the reduction of each tile. All clusters must be resident at once, and each block must have
 * at least LEAST_STEPS k-steps and end with 16 columns or more. */
int engine_cluster_of(const cuda_calculator *calculator, int64_t tiles, int64_t steps, int columns)
{
    int cluster = 1;
    while (2 * cluster <= MOST_SPLITS && 32 * cluster <= columns && steps >= 2 * cluster * LEAST_STEPS &&
           tiles <= clusters_at_once(calculator, 2 * cluster))
        cluster *= 2;
    return cluster;
}

/* Blocks per column of tiles: at most as many as are resident at once, with equal numbers of tiles. (Unequal numbers that leave fewer tiles to the
 * busiest multiprocessor were not faster.) */
int engine_slots(const cuda_calculator *calculator, int64_t row_tiles, int64_t column_tiles)
{
    const int64_t most = std::max<int64_t>(engine_most_parts(calculator) / column_tiles, 1);
    return static_cast<int>(cuda_ceil_div(row_tiles, cuda_ceil_div(row_tiles, most)));
}

/* True if each block should compute one tile: if equal numbers would be two per block, for fewer blocks than are resident at once. */
bool engine_prefers_single_tiles(const cuda_calculator *calculator, int64_t tiles)
{
    const int64_t most = engine_most_parts(calculator);
    return tiles > most && tiles < 2 * most;
}

/* True if 128-column tiles would leave half of the multiprocessors idle: there are twice as many 64-column tiles. */
bool engine_prefers_narrow(const cuda_calculator *calculator, int64_t channels, int64_t row_tiles)
{
    return 2 * row_tiles * cuda_ceil_div(channels, 128) <= calculator->multiprocessors;
}
