/* SPDX-License-Identifier: MIT */
/* Arranges a sparse matrix as a stream (spmm.cuh), one block per chunk of rows: sort the rows by length, lay out the slices
 * consecutively, reserve as many stages of the stream as they need, and write them. Elements of long rows are copied by a second
 * kernel, on the whole device. Reads and writes the matrix once: some 30 us for 2.6 million elements, once for a matrix that does not
 * change. */
#include "calculators/cuda/spmm/spmm.cuh"

enum { THREADS = 256, COPIERS = 8 /* lanes per short row */, FILLERS = 16 /* blocks per multiprocessor */ };

static __device__ __forceinline__ int64_t length_of(const spmm_csr &s, int64_t row)
{
    return s.offsets[row + 1] - s.offsets[row];
}

static __device__ __forceinline__ int64_t pieces_of(int64_t count)
{
    return (count + SPMM_HEAVY - 1) / SPMM_HEAVY;
}

/* A long row of the chunk: the first of its slots, slices and parts, counted within the chunk, and its index among the chunk's split
 * rows. */
typedef struct long_row {
    int64_t slot;
    int row, slice, part, cut;
} long_row;

/* A block's description of its chunk. */
typedef struct chunk_layout {
    int next[SPMM_LIGHT + 1];  /* number of rows of each length, then their positions in `order`; the longest first */
    int16_t order[SPMM_CHUNK]; /* short rows */
    int slots[SPMM_CHUNK + 1]; /* first slot of each slice of short rows, after the long rows' slots */
    long_row far[SPMM_CHUNK];
    int far_count, pieces, cuts, parts, first_slice, first_piece, first_cut, first_part;
    int64_t far_slots, first_stage;
} chunk_layout;

/* Write a slice of the chunk: slots `begin` to before `end`. */
static __device__ void write_slice(const spmm_csr &s, int64_t stage, int64_t begin, int64_t end, int slice, bool join)
{
    spmm_head *heads = s.stream.heads + stage;
    const int64_t last = end - 1, bit = last % SPMM_STAGE;
    for (int64_t k = begin == 0 ? 0 : (begin - 1) / SPMM_STAGE + 1; k <= last / SPMM_STAGE; k++) heads[k].slice = slice;
    if (begin % SPMM_STAGE == 0) atomicOr(&heads[begin / SPMM_STAGE].ends, static_cast<unsigned>(SPMM_FRESH));
    atomicOr(&heads[last / SPMM_STAGE].ends, (join ? 1u << SPMM_JOINS | 1u : 1u) << bit);
}

/* Write an element of a row to its slot and group. */
template <typename T>
static __device__ __forceinline__ void put(const spmm_csr &s, int64_t slot, int group, int64_t element)
{
    const int64_t to = (slot / SPMM_STAGE * s.stream.groups + group) * SPMM_STAGE + slot % SPMM_STAGE;
    s.stream.columns[to] = s.columns[element];
    static_cast<T *>(s.stream.values)[to] = static_cast<const T *>(s.values)[element];
}

/* By one thread: lay out the chunk's slices, long rows' first, and reserve space in the lists for all of them. */
static __device__ void lay_out_chunk(const spmm_csr &s, chunk_layout &c, int rows)
{
    const int groups = s.stream.groups;
    int64_t slot = 0;
    int slice = 0;
    for (int i = 0; i < c.far_count; i++) {
        long_row &far = c.far[i];
        const int64_t count = length_of(s, far.row), pieces = pieces_of(count);
        far.slot = slot, far.slice = slice, far.part = c.parts, far.cut = c.cuts;
        slot += (pieces - 1) * (SPMM_HEAVY / groups) + (count - (pieces - 1) * SPMM_HEAVY + groups - 1) / groups;
        slice += static_cast<int>(pieces);
        if (pieces > 1) c.parts += static_cast<int>(pieces), c.cuts++;
    }
    c.pieces = slice;
    c.far_slots = slot;
    int place = 0;
    for (int kind = 0; kind <= SPMM_LIGHT; kind++) { /* the longest first */
        const int count = c.next[kind];
        c.next[kind] = place;
        place += count;
    }
    int at = 0, below = 0, kind = 0, slices = 0; /* below: the first slot after the slices so far */
    for (; at < rows - c.far_count; at += groups, slices++) {
        while (at >= (kind < SPMM_LIGHT ? c.next[kind + 1] : SPMM_CHUNK)) kind++;
        c.slots[slices] = below;
        below += kind < SPMM_LIGHT ? SPMM_LIGHT - kind : 1;
    }
    c.slots[slices] = below;
    const int64_t stages = (slot + below + SPMM_STAGE - 1) / SPMM_STAGE;
    spmm_counts *counts = s.stream.counts;
    const unsigned long long taken =
        atomicAdd(&counts->made, static_cast<unsigned long long>(stages) << 32 | static_cast<unsigned>(slice + slices));
    c.first_stage = static_cast<int64_t>(taken >> 32);
    c.first_slice = static_cast<int>(taken & 0xffffffffu);
    c.first_piece = slice > 0 ? atomicAdd(&counts->pieces, slice) : 0;
    c.first_cut = c.cuts > 0 ? atomicAdd(&counts->cuts, c.cuts) : 0;
    c.first_part = c.cuts > 0 ? atomicAdd(&counts->parts, c.parts) : 0;
}

/* Write the slices of a long row, by all threads of the block; `fill` copies its elements. */
static __device__ void write_long_row(const spmm_csr &s, const chunk_layout &c, const long_row &far)
{
    const int groups = s.stream.groups;
    const int64_t first = s.offsets[far.row], count = length_of(s, far.row), pieces = pieces_of(count);
    for (int64_t i = threadIdx.x; i < pieces; i += THREADS) {
        const int64_t left = count - i * SPMM_HEAVY, here = left < SPMM_HEAVY ? left : SPMM_HEAVY;
        const int64_t slot = far.slot + i * (SPMM_HEAVY / groups);
        const int slice = c.first_slice + far.slice + static_cast<int>(i);
        write_slice(s, c.first_stage, slot, slot + (here + groups - 1) / groups, slice, true);
        s.stream.pieces[c.first_piece + far.slice + i] =
            spmm_piece{first + i * SPMM_HEAVY, c.first_stage * SPMM_STAGE + slot, here};
        int32_t *targets = s.stream.targets + static_cast<int64_t>(slice) * groups;
        const int part = c.first_part + far.part + static_cast<int>(i);
        targets[0] = pieces > 1 ? -1 - part : far.row;
        if (pieces > 1) s.stream.cut_of_part[part] = c.first_cut + far.cut;
        for (int g = 1; g < groups; g++) targets[g] = SPMM_NOTHING;
    }
}

template <typename T> static __global__ void __launch_bounds__(THREADS) arrange(const __grid_constant__ spmm_csr s)
{
    __shared__ chunk_layout c;
    const int groups = s.stream.groups;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * SPMM_CHUNK;
    const int rows = static_cast<int>(s.rows - top < SPMM_CHUNK ? s.rows - top : SPMM_CHUNK);
    if (threadIdx.x <= SPMM_LIGHT) c.next[threadIdx.x] = 0;
    if (threadIdx.x == 0) c.far_count = c.cuts = c.parts = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += THREADS) {
        const int64_t count = length_of(s, top + i);
        if (count <= SPMM_LIGHT)
            atomicAdd(&c.next[SPMM_LIGHT - count], 1);
        else
            c.far[atomicAdd(&c.far_count, 1)].row = static_cast<int>(top + i);
    }
    __syncthreads();
    if (threadIdx.x == 0) lay_out_chunk(s, c, rows);
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += THREADS) {
        const int64_t count = length_of(s, top + i);
        if (count <= SPMM_LIGHT) c.order[atomicAdd(&c.next[SPMM_LIGHT - count], 1)] = static_cast<int16_t>(i);
    }
    __syncthreads();
    const int near = rows - c.far_count, slices = (near + groups - 1) / groups;
    for (int i = threadIdx.x; i < slices; i += THREADS)
        write_slice(s, c.first_stage, c.far_slots + c.slots[i], c.far_slots + c.slots[i + 1],
                    c.first_slice + c.pieces + i, false);
    for (int i = threadIdx.x; i < slices * groups; i += THREADS)
        s.stream.targets[static_cast<int64_t>(c.first_slice + c.pieces) * groups + i] =
            i < near ? static_cast<int32_t>(top + c.order[i]) : SPMM_NOTHING;
    for (int i = threadIdx.x / COPIERS; i < near; i += THREADS / COPIERS) {
        const int64_t row = top + c.order[i], first = s.offsets[row], count = length_of(s, row);
        const int64_t slot = c.first_stage * SPMM_STAGE + c.far_slots + c.slots[i / groups];
        for (int e = threadIdx.x % COPIERS; e < count; e += COPIERS) put<T>(s, slot + e, i % groups, first + e);
    }
    for (int i = 0; i < c.far_count; i++) {
        const long_row &far = c.far[i];
        const int64_t pieces = pieces_of(length_of(s, far.row));
        write_long_row(s, c, far);
        if (pieces > 1 && threadIdx.x == 0)
            s.stream.cuts[c.first_cut + far.cut] =
                spmm_cut{c.first_part + far.part, far.row, static_cast<int32_t>(pieces)};
    }
}

/* Copy the elements of long rows, one warp per piece. */
template <typename T> static __global__ void __launch_bounds__(THREADS) fill(const __grid_constant__ spmm_csr s)
{
    const int lane = threadIdx.x % SPMM_WARP, groups = s.stream.groups, last = s.stream.counts->pieces;
    for (int64_t i = grid_first() / SPMM_WARP; i < last; i += grid_step() / SPMM_WARP) {
        const spmm_piece piece = s.stream.pieces[i];
        for (int e = lane; e < piece.count; e += SPMM_WARP)
            put<T>(s, piece.slot + e / groups, e % groups, piece.first + e);
    }
}

/* The cost of finishing a slice, in slots: most of it is log_softmax. Less than its instruction count suggests: a warp with long rows
 * waits for each of its stages, and has more of them. */
static __device__ __forceinline__ int64_t finish_cost(const spmm_csr &s, size_t size)
{
    return !s.log_softmax ? 1 : size == sizeof(double) ? 4 : 2;
}

/* Where the warps' parts begin, one thread per part: the first stage before which there is at least the part's share of the work;
 * there, or in a later stage, the first slice that begins. */
template <typename T> static __global__ void __launch_bounds__(THREADS) divide(const __grid_constant__ spmm_csr s)
{
    const spmm_stream &stream = s.stream;
    const int64_t part = grid_first(), stages = static_cast<int64_t>(stream.counts->made >> 32);
    const int64_t slices = static_cast<int64_t>(stream.counts->made & 0xffffffffu), cost = finish_cost(s, sizeof(T));
    const int64_t all = stages * SPMM_STAGE + slices * cost,
                  before = all / stream.warps * part + all % stream.warps * part / stream.warps;
    if (part > stream.warps) return;
    int64_t low = 0, high = stages; /* the first stage k with SPMM_STAGE k + cost slices before it >= before */
    while (low < high) {
        const int64_t k = (low + high) / 2;
        if (k * SPMM_STAGE + stream.heads[k].slice * cost >= before)
            high = k;
        else
            low = k + 1;
    }
    int slot = 0;
    if (low < stages && (stream.heads[low].ends & SPMM_FRESH) == 0) { /* after the end of a slice that began before */
        while ((stream.heads[low].ends & 0xff) == 0) low++;
        slot = __ffs(static_cast<int>(stream.heads[low].ends & 0xff));
    }
    stream.starts[part] = spmm_start{static_cast<int32_t>(low), slot};
}

cudaError_t spmm_arrange(const cuda_calculator *calculator, const spmm_csr *s, sdlf_dtype dtype)
{
    const spmm_stream &stream = s->stream;
    const size_t places = static_cast<size_t>(stream.stage_most) * SPMM_STAGE * static_cast<size_t>(stream.groups);
    cudaError_t error = cudaMemsetAsync(stream.counts, 0, sizeof *stream.counts, calculator->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(stream.heads, 0, static_cast<size_t>(stream.stage_most) * sizeof *stream.heads,
                                calculator->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(stream.columns, 0xff, places * sizeof *stream.columns, calculator->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(stream.values, 0, places * sdlf_dtype_size(dtype), calculator->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(stream.arrived, 0,
                                static_cast<size_t>(stream.cut_most * stream.column_blocks) * sizeof *stream.arrived,
                                calculator->stream);
    if (error != cudaSuccess || s->rows == 0) return error;
    const unsigned chunks = static_cast<unsigned>((s->rows + SPMM_CHUNK - 1) / SPMM_CHUNK);
    const unsigned fillers = static_cast<unsigned>(calculator->multiprocessors) * FILLERS;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        arrange<T><<<chunks, THREADS, 0, calculator->stream>>>(*s);
        divide<T><<<static_cast<unsigned>(stream.warps / THREADS + 1), THREADS, 0, calculator->stream>>>(*s);
        if (stream.piece_most > 0) fill<T><<<fillers, THREADS, 0, calculator->stream>>>(*s);
    });
    return cudaSuccess;
}
