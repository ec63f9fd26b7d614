/* All lines of spmm_csr (spmm/spmm.cuh), a group of G lanes a line.
 *
 * A lane has V = 16 / sizeof(T) neighbouring columns, so that a group reads a row of x in whole sectors; wider rows are gone over
 * again for the next G V columns. A line's elements go AHEAD at a time: the group's lanes hold a column and a value each and
 * pass them round; the rows of x of all are asked for, and so are the next columns and values, of this line or of the
 * group's next, before the first is used. The groups of a warp keep step: they have lines of about one length. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_LINES_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_LINES_CUH

#include "calculators/cuda/spmm/spmm.cuh"

/* Elements whose rows of x are asked for at once. In float64 a row takes twice the bytes, and half as many keep a
 * multiprocessor's share of the cache as busy. */
template <typename T> static constexpr int spmm_ahead = sizeof(T) == 4 ? 8 : 4;

/* Light lines that a group takes: its lanes hold one each. */
template <typename T, int G> static constexpr int spmm_turns = G < spmm_ahead<T> ? G : spmm_ahead<T>;

/* Blocks that a multiprocessor has the registers for. */
template <typename T> static constexpr int spmm_resident = sizeof(T) == 4 ? 6 : 8;

template <typename T> struct alignas(16) pack {
    static constexpr int V = 16 / sizeof(T);
    T at[V];
};

/* ---- columns of a lane ---- */

/* ALIGNED: rows are whole packs, at multiples of 16 bytes. Otherwise `valid` numbers are there, and the others 0. */
template <typename T, bool ALIGNED> static __device__ __forceinline__ pack<T> load_pack(const T *from, int valid)
{
    pack<T> p;
    if (ALIGNED) {
        const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from));
        memcpy(&p, &bits, sizeof p);
    } else {
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) p.at[v] = v < valid ? __ldg(from + v) : T(0);
    }
    return p;
}

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

/* log_softmax of the row that a group's lanes hold. Every lane of the warp takes part. */
template <typename T, int G> static __device__ __forceinline__ void take_log_softmax(pack<T> &row, int valid)
{
    T largest = -INFINITY, sum = 0;
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) largest = v < valid && row.at[v] > largest ? row.at[v] : largest;
    largest = max_of_group<T, G>(largest);
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) sum += v < valid ? exp(row.at[v] - largest) : T(0);
    const T logarithm = log(sum_of_group<T, G>(sum));
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++) row.at[v] = (row.at[v] - largest) - logarithm;
}

/* ---- lines ---- */

static __device__ __forceinline__ int most_of_warp(int value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, value);
#else
    return max_of_group<int, SPMM_WARP>(value);
#endif
}

/* Columns and values of AHEAD elements, spread over a group's lanes. */
template <typename T, int G> struct held {
    static constexpr int AHEAD = spmm_ahead<T>, EACH = (AHEAD + G - 1) / G;
    int32_t column[EACH];
    T value[EACH];
};

/* Those of elements e, e + 1, ... of a line. */
template <typename T, int G>
static __device__ __forceinline__ void hold(const spmm_csr &s, held<T, G> &next, int64_t first, int e, int count)
{
    constexpr int AHEAD = held<T, G>::AHEAD;
    const int lane = threadIdx.x % G;
#pragma unroll
    for (int h = 0; h < held<T, G>::EACH; h++) {
        const int at = e + h * G + lane;
        const bool there = (G <= AHEAD || lane < AHEAD) && at < count;
        next.column[h] = there ? __ldcs(s.columns + first + at) : 0;
        next.value[h] = there ? __ldcs(static_cast<const T *>(s.values) + first + at) : T(0);
    }
}

/* The lines of a warp's groups, `turns` (at most G) for each: group g has lines first + g, first + g + groups, ... below
 * `last`. Columns [j, j + valid) of this lane. */
template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void add_lines(const spmm_csr &s, const spmm_line *lines, int first, int last,
                                                 int turns, int j, int valid)
{
    enum { GROUPS = SPMM_WARP / G, AHEAD = held<T, G>::AHEAD };
    const int lane = threadIdx.x % G;
    const T *x = static_cast<const T *>(s.x) + j;
    spmm_line mine = {0, 0, SPMM_NOTHING}; /* lane t has the group's line of turn t */
    const int index = first + lane * GROUPS + threadIdx.x % SPMM_WARP / G;
    if (lane < turns && index < last) mine = lines[index];
    int64_t begin = __shfl_sync(0xffffffffu, mine.first, 0, G);
    int count = __shfl_sync(0xffffffffu, mine.count, 0, G);
    held<T, G> now;
    hold(s, now, begin, 0, count);
    for (int turn = 0; turn < turns; turn++) {
        const int most = most_of_warp(count);
        pack<T> sum = {};
        for (int e = 0; e == 0 || e < most; e += AHEAD) {
            pack<T> row[AHEAD];
            held<T, G> next;
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int32_t column = __shfl_sync(0xffffffffu, now.column[i / G], i % G, G);
                if (e + i < count && valid > 0)
                    row[i] = load_pack<T, ALIGNED>(x + static_cast<int64_t>(column) * s.width, valid);
            }
            int at = e + AHEAD, end = count;
            if (at >= most) { /* the next line's; behind the last there are none */
                at = 0;
                begin = __shfl_sync(0xffffffffu, mine.first, turn + 1, G);
                end = __shfl_sync(0xffffffffu, mine.count, turn + 1, G);
                if (turn + 1 == turns) end = 0;
            }
            hold(s, next, begin, at, end);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const T value = __shfl_sync(0xffffffffu, now.value[i / G], i % G, G);
                if (e + i >= count) continue;
#pragma unroll
                for (int v = 0; v < pack<T>::V; v++) sum.at[v] += value * row[i].at[v];
            }
            now = next;
            if (at == 0) count = end;
        }
        const int target = __shfl_sync(0xffffffffu, mine.target, turn, G);
        if (target < 0 && target != SPMM_NOTHING) /* a part */
            store_pack<T, ALIGNED>(static_cast<T *>(s.parts) + (-1 - static_cast<int64_t>(target)) * s.width + j, sum,
                                   valid);
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++)
            if (v < valid) sum.at[v] = spmm_finish<T, ACTIVATE>(s, sum.at[v], j + v);
        if (s.log_softmax) take_log_softmax<T, G>(sum, valid);
        if (target >= 0)
            store_pack<T, ALIGNED>(static_cast<T *>(s.y) + static_cast<int64_t>(target) * s.width + j, sum, valid);
    }
}

/* This block's lines: heavy ones one by one, blocks in turn; or some light ones for each group. */
template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void add_block(const spmm_csr &s, int j)
{
    enum { GROUPS = SPMM_WARP / G, WARPS = SPMM_THREADS / SPMM_WARP, TURNS = spmm_turns<T, G> };
    const int valid = s.width - j < pack<T>::V ? s.width - j : pack<T>::V, warp = threadIdx.x / SPMM_WARP;
    const bool heavy = blockIdx.x < static_cast<unsigned>(s.heavy_blocks);
    const spmm_line *lines = heavy ? s.lines.heavy : s.lines.light;
    const int turns = heavy ? 1 : TURNS;
    const int last = heavy ? s.lines.counts[0] : static_cast<int>(s.lines.light_count);
    const int block = static_cast<int>(blockIdx.x) - (heavy ? 0 : s.heavy_blocks);
    const int step = heavy ? s.heavy_blocks * WARPS * GROUPS : last;
    for (int64_t first = (static_cast<int64_t>(block) * WARPS + warp) * GROUPS * turns; first < last; first += step)
        add_lines<T, G, ALIGNED, ACTIVATE>(s, lines, static_cast<int>(first), last, turns, j, valid);
}

/* The registers that activations take are for the kernels that have some. */
template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static __global__ void __launch_bounds__(SPMM_THREADS, ALIGNED && !ACTIVATE ? spmm_resident<T> : 5)
    add_narrow(const __grid_constant__ spmm_csr s)
{
    add_block<T, G, ALIGNED, ACTIVATE>(s, static_cast<int>(threadIdx.x % G * pack<T>::V));
}

/* Rows wider than a warp has columns for. */
template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(SPMM_THREADS, 5) add_wide(const __grid_constant__ spmm_csr s)
{
    for (int j0 = 0; j0 < s.width; j0 += SPMM_WARP * pack<T>::V)
        add_block<T, SPMM_WARP, ALIGNED, true>(s, j0 + static_cast<int>(threadIdx.x % SPMM_WARP * pack<T>::V));
}

/* ---- launching ---- */

template <typename T> static bool is_aligned(const spmm_csr *s)
{
    return s->width % pack<T>::V == 0 && reinterpret_cast<uintptr_t>(s->x) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(s->y) % 16 == 0 && reinterpret_cast<uintptr_t>(s->parts) % 16 == 0;
}

template <typename T, int G> static unsigned block_count(const spmm_csr *s)
{
    enum { LINES = SPMM_THREADS / G * spmm_turns<T, G> };
    return static_cast<unsigned>(s->heavy_blocks + (s->lines.light_count + LINES - 1) / LINES);
}

template <typename T, int G> static void launch_narrow(const spmm_csr *s, cudaStream_t stream)
{
    const unsigned blocks = block_count<T, G>(s);
    if (!is_aligned<T>(s))
        add_narrow<T, G, false, true><<<blocks, SPMM_THREADS, 0, stream>>>(*s);
    else if (s->activation.function != SDLF_IDENTITY)
        add_narrow<T, G, true, true><<<blocks, SPMM_THREADS, 0, stream>>>(*s);
    else
        add_narrow<T, G, true, false><<<blocks, SPMM_THREADS, 0, stream>>>(*s);
}

template <typename T> static void launch_lines(const spmm_csr *s, cudaStream_t stream)
{
    const unsigned blocks = block_count<T, SPMM_WARP>(s);
    const int vectors = (s->width - 1) / pack<T>::V + 1;
    if (vectors <= 4)
        launch_narrow<T, 4>(s, stream);
    else if (vectors <= 8)
        launch_narrow<T, 8>(s, stream);
    else if (vectors <= 16)
        launch_narrow<T, 16>(s, stream);
    else if (vectors <= SPMM_WARP)
        launch_narrow<T, SPMM_WARP>(s, stream);
    else if (is_aligned<T>(s))
        add_wide<T, true><<<blocks, SPMM_THREADS, 0, stream>>>(*s);
    else
        add_wide<T, false><<<blocks, SPMM_THREADS, 0, stream>>>(*s);
}

#endif
