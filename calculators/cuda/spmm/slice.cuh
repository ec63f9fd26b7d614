/* What becomes of the sums of a slice of spmm_csr (spmm.cuh): groups that share a row put them together, and a row gets its bias, its
 * activation and its log_softmax before it is stored. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_SLICE_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_SLICE_CUH

#include "calculators/cuda/spmm/log_softmax64.cuh"
#include "calculators/cuda/spmm/spmm.cuh"

template <typename T> struct alignas(16) pack {
    static constexpr int V = 16 / sizeof(T);
    T at[V];
};

/* The columns of x and y that a lane has: `valid` from j on (none, if that is not positive). */
typedef struct lane_columns {
    int j, valid;
} lane_columns;

template <typename T, bool ALIGNED>
static __device__ __forceinline__ void store_pack(T *to, const pack<T> &p, int valid)
{
    if (valid <= 0) return;
    if (ALIGNED) {
        uint4 bits;
        memcpy(&bits, &p, sizeof p);
        __stcs(reinterpret_cast<uint4 *>(to), bits); /* x has more use of the cache */
    } else {
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++)
            if (v < valid) to[v] = p.at[v];
    }
}

static __device__ __forceinline__ double exp_below(double t)
{
    return exp_of_negative(t);
}

/* A rounded exponent's error counts little where e^t is small. */
static __device__ __forceinline__ float exp_below(float t)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(t * 1.44269504f));
    return power;
}

static __device__ __forceinline__ double log_above(double s)
{
    return log_of_sum(s);
}

static __device__ __forceinline__ float log_above(float s)
{
    return logf(s);
}

/* log_softmax of the row that a group's lanes hold. Every lane of the warp takes part. */
template <typename T, int G> static __device__ __forceinline__ void take_log_softmax(pack<T> &row, int valid)
{
    T largest = -INFINITY, sum = 0;
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) largest = v < valid && row.at[v] > largest ? row.at[v] : largest;
    largest = max_of_group<T, G>(largest);
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) sum += v < valid ? exp_below(row.at[v] - largest) : T(0);
    const T logarithm = log_above(sum_of_group<T, G>(sum));
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) row.at[v] = (row.at[v] - largest) - logarithm;
}

/* What all groups have of one row's sum: every group gets all of it. */
template <typename T, int G> static __device__ __forceinline__ void join_groups(pack<T> &sum)
{
#pragma unroll
    for (int step = G; step < SPMM_WARP; step *= 2)
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) sum.at[v] += __shfl_xor_sync(0xffffffffu, sum.at[v], step);
}

/* A row's sum, this group's for `target`, becomes a row of y. */
template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void finish_rows(const spmm_csr &s, pack<T> sum, int target, lane_columns mine)
{
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++)
        if (v < mine.valid) sum.at[v] = spmm_finish<T, ACTIVATE>(s, sum.at[v], mine.j + v);
    if (s.log_softmax) take_log_softmax<T, G>(sum, mine.valid);
    if (target >= 0)
        store_pack<T, ALIGNED>(static_cast<T *>(s.y) + static_cast<int64_t>(target) * s.width + mine.j, sum,
                               mine.valid);
}

#endif
