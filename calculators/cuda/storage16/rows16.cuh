/* What is done to each row of a matrix (M,C) in 16-bit storage with numbers of its columns, C a multiple of 8. */
#ifndef SDLF_CALCULATORS_CUDA_STORAGE16_ROWS16_CUH
#define SDLF_CALCULATORS_CUDA_STORAGE16_ROWS16_CUH

#include "calculators/cuda/storage16/vector16.cuh"

enum { ROWS16_THREADS = 256 };

/* A grid of threads, each with an 8 of channels and every so many rows: so numbers of channels are read once. UNROLL rows are loaded before
 * the first is used. */
struct rows16 {
    int64_t rows;
    int vectors; /* of 8 channels */
};

template <typename Body>
static __global__ void __launch_bounds__(ROWS16_THREADS, Body::BLOCKS) for_rows16(const Body body, const rows16 of)
{
    await_kernels();
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
static void launch_rows16(const cuda_calculator *calculator, int64_t rows, int64_t channels, const Body &body)
{
    const rows16 of = {rows, static_cast<int>(channels / VECTOR16)};
    const int64_t least = (of.vectors + ROWS16_THREADS - 1) / ROWS16_THREADS,
                  most = calculator->multiprocessors * Body::BLOCKS;
    int64_t blocks = (rows * of.vectors + Body::UNROLL * ROWS16_THREADS - 1) / (Body::UNROLL * ROWS16_THREADS);
    if (blocks > most) blocks = most;
    if (blocks < least) blocks = least;
    launch_overlapped(calculator, for_rows16<Body>, dim3(static_cast<unsigned>(blocks)), dim3(ROWS16_THREADS), 0, body,
                      of);
}

#endif
