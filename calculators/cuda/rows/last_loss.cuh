/* The loss of the last layers' kernel (rows/last_layers.cu): 16 lanes a row, a lane an element. */
#ifndef SDLF_CALCULATORS_CUDA_ROWS_LAST_LOSS_CUH
#define SDLF_CALCULATORS_CUDA_ROWS_LAST_LOSS_CUH

#include "calculators/cuda/rows/last_layers.cuh"

/* What the element of this thread reads besides the sums. */
struct last_element {
    row_terms<float> row;
    float bias;
};

static __device__ __forceinline__ last_element read_element(const last_layers &l)
{
    const int k = threadIdx.x / PITCH, u = threadIdx.x % PITCH, blocks = gridDim.x;
    last_element made = {};
    if (k < own_rows(l.rows, blockIdx.x, blocks)) made.row = terms_of(l.loss, blockIdx.x + k * blocks);
    if (l.bias != nullptr && u < l.units) made.bias = l.bias[u];
    return made;
}

static __device__ __forceinline__ float add_row(float number)
{
#pragma unroll
    for (int step = PITCH / 2; step > 0; step /= 2) number += __shfl_xor_sync(0xffffffffu, number, step);
    return number;
}

/* Logits of the block's own rows, whose parts all blocks have sent. Before this block arrives at the cluster's barrier, the gradient goes to
 * all blocks, and to memory what is kept of the rows: dx, which the others write behind the barrier, may have the same memory. Behind it the
 * sums of losses go to the first block. By all threads. */
template <int UNITS, int LANES>
static __device__ __forceinline__ void compute_losses(const last_layers &l, last_memory<UNITS, LANES> &m,
                                                      const last_element &given)
{
    const int blocks = gridDim.x, block = blockIdx.x, mine = own_rows(l.rows, block, blocks);
    const int k = threadIdx.x / PITCH, u = threadIdx.x % PITCH;
    if (threadIdx.x / WARP * ROWS_A_WARP >= mine) {
        arrive_at_cluster();
        return;
    }
    const bool valid = k < mine, present = valid && u < l.units;
    float sum = 0;
    for (int from = 0; from < blocks; from++) sum += m.partial[from][valid ? k : 0][u];
    const float logit = l.alpha * sum + given.bias;
    float largest = present ? logit : -INFINITY;
    int best = u;
#pragma unroll
    for (int step = PITCH / 2; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, largest, step);
        int others = __shfl_xor_sync(0xffffffffu, best, step);
        bool better = other > largest || (other == largest && others < best);
        largest = better ? other : largest;
        best = better ? others : best;
    }
    const float logarithm = log(add_row(present ? exp(logit - largest) : 0.0f));
    const row_element<float> made = element_of(l.loss, given.row, u, logit - largest - logarithm);
    const int64_t n = block + static_cast<int64_t>(k) * blocks, at = n * l.units + u;
    for (int to = 0; to < blocks && valid; to++) write_other(&m.dy[n][u], to, present ? made.gradient : 0.0f);
    if (present) {
        l.logits[at] = logit;
        l.loss.p[at] = made.p;
        l.loss.dlogits[at] = made.gradient;
    }
    __syncwarp();
    arrive_at_cluster();
    double loss = present ? made.loss : 0;
#pragma unroll
    for (int step = PITCH / 2; step > 0; step /= 2) loss += __shfl_xor_sync(0xffffffffu, loss, step);
    row_sums sums = {};
    if (valid) sums = close_row(l.loss, given.row, loss, best);
#pragma unroll
    for (int step = PITCH; step < WARP; step *= 2) add(sums, other_sums(sums, step));
    if (threadIdx.x % WARP != 0) return;
    double *to = &m.losses[block][threadIdx.x / WARP][0];
    write_other(to, 0, sums.loss);
    write_other(to + 1, 0, sums.weighted);
    write_other(to + 2, 0, static_cast<double>(sums.correct));
    write_other(to + 3, 0, static_cast<double>(sums.counted));
}

/* By one warp of the first block. */
template <int UNITS, int LANES>
static __device__ __forceinline__ void finish_loss(const last_layers &l, const last_memory<UNITS, LANES> &m,
                                                   double3 before)
{
    const int lane = threadIdx.x % WARP, blocks = gridDim.x;
    row_sums all = {};
    if (lane < blocks) {
        const int mine = own_rows(l.rows, lane, blocks);
        for (int warp = 0; warp * ROWS_A_WARP < mine; warp++) {
            const double *from = m.losses[lane][warp];
            add(all, {from[0], from[1], static_cast<int64_t>(from[2]), static_cast<int64_t>(from[3])});
        }
    }
    all = add_warp(all);
    if (lane == 0) finish(l.loss, all, before);
}

#endif
