/* SPDX-License-Identifier: MIT */
/* Applies a function to each row of a matrix (M,C) with per-column parameters, C a multiple of 8. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_FOR_ROWS_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_FOR_ROWS_CUH

#include "calculators/cuda/nhwc/vector8.cuh"

enum { ROWS_THREADS = 256 };

/* A thread processes 8 adjacent columns of every so many rows, so that per-column parameters are read once. UNROLL rows are loaded before
 * the first is used. */
struct row_grid {
    int64_t rows;
    int vectors; /* of 8 channels */
};

template <typename Body>
static __global__ void __launch_bounds__(ROWS_THREADS, Body::BLOCKS) for_rows(const Body body, const row_grid of)
{
    wait_and_launch_dependent_grids();
    const int64_t thread = grid_first(), lines = grid_step() / of.vectors, line = thread / of.vectors;
    if (line >= lines) return;
    const int vector = static_cast<int>(thread - line * of.vectors);
    const typename Body::channel_numbers numbers = body.read(vector);
    for (int64_t row = line; row < of.rows; row += Body::UNROLL * lines) {
        typename Body::loaded in[Body::UNROLL];
#pragma unroll
        for (int u = 0; u < Body::UNROLL; u++) {
            if (row + u * lines < of.rows) in[u] = body.load((row + u * lines) * of.vectors + vector);
        }
#pragma unroll
        for (int u = 0; u < Body::UNROLL; u++) {
            if (row + u * lines < of.rows) body.run(numbers, in[u], (row + u * lines) * of.vectors + vector);
        }
    }
}

template <typename Body>
static void launch_rows(const cuda_calculator *calculator, int64_t rows, int64_t channels, const Body &body)
{
    const row_grid of = {rows, static_cast<int>(channels / VECTOR)};
    const int64_t least = (of.vectors + ROWS_THREADS - 1) / ROWS_THREADS,
                  most = calculator->multiprocessors * Body::BLOCKS;
    int64_t blocks = (rows * of.vectors + Body::UNROLL * ROWS_THREADS - 1) / (Body::UNROLL * ROWS_THREADS);
    if (blocks > most) blocks = most;
    if (blocks < least) blocks = least;
    launch_overlapped(calculator, for_rows<Body>, dim3(static_cast<unsigned>(blocks)), dim3(ROWS_THREADS), 0, body, of);
}

#endif
