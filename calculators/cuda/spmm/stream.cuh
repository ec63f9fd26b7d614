/* SPDX-License-Identifier: MIT */
/* A warp's part of the stream of spmm_csr (spmm.cuh).
 *
 * All data is staged through shared memory by cp.async, so that loads in flight take no registers and continue across row boundaries:
 * the warp loads the columns and values of the stage that is STAGES_EARLY + STAGES_OPEN ahead, then, from columns that have arrived,
 * the rows of x of the stage that is STAGES_OPEN ahead, and accumulates the stage that has arrived. A lane has V = 16 / sizeof(T)
 * adjacent columns of x, and reads back only what it loaded itself; STAGES_OPEN times 4 KB a warp are in flight. A complete sum
 * overwrites the row of x that was added last, and the stage's rows are finished together; rows that all groups shared wait until
 * there is one for each group, and log_softmax waits for two rows of a group. Rows wider than a warp's columns are processed again, by
 * other blocks, for the next G V columns. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_STREAM_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_STREAM_CUH

#include <cstddef>

#include "calculators/cuda/spmm/cuts.cuh"

enum { THREADS = SPMM_WARPS * SPMM_WARP };

/* ---- a warp's part ---- */

/* Stages [begin, begin + count): of the first one, slices that end after slot `skipped`; of the last one, slices that end
 * before slot `kept`. */
typedef struct stream_part {
    int64_t begin;
    int count, skipped, kept;
} stream_part;

/* From this warp's start to the next warp's. */
static __device__ __forceinline__ stream_part part_of_warp(const spmm_stream &stream)
{
    const int warp = static_cast<int>(blockIdx.x) * SPMM_WARPS + static_cast<int>(threadIdx.x) / SPMM_WARP;
    const spmm_start first = stream.starts[warp], next = stream.starts[warp + 1];
    stream_part part = {first.stage, next.stage - first.stage, first.slot, next.slot};
    if (part.count <= 0)
        part.count = 0; /* one slice spans all of them */
    else if (part.kept > 0)
        part.count++;
    else
        part.kept = SPMM_STAGE;
    return part;
}

/* Stage k of the part: bit i: a slice ends with slot i; bit STREAM_MINE + i: that slice is this warp's; bit SPMM_JOINS + i: it is
 * a single row. */
enum { STREAM_ENDS = 0xff, STREAM_MINE = 8 };

static __device__ __forceinline__ unsigned ends_of(const stream_part &part, const spmm_head *heads, int k)
{
    if (k >= part.count) return 0;
    const unsigned all = heads[k].ends & ~(static_cast<unsigned>(STREAM_ENDS) << STREAM_MINE);
    unsigned mine = all & STREAM_ENDS;
    if (k == 0) mine &= static_cast<unsigned>(STREAM_ENDS) << part.skipped;
    if (k == part.count - 1) mine &= (1u << part.kept) - 1;
    return all | mine << STREAM_MINE;
}

/* ---- rows that end ---- */

/* Rows that all groups shared: `count` groups hold one each. */
template <typename T> struct joined_rows {
    pack<T> row;
    int32_t target;
    int count;
};

/* Store a row's sum, which all groups have, in one of them. True if every group now holds one. */
template <typename T, int G>
static __device__ __forceinline__ bool keep_joined(joined_rows<T> &joined, const pack<T> &row, int32_t target)
{
    if (static_cast<int>(threadIdx.x) % SPMM_WARP / G == joined.count) joined.row = row, joined.target = target;
    if (++joined.count < SPMM_WARP / G) return false;
    joined.count = 0;
    return true;
}

/* The targets of the slices that end in a stage, in order, spread over the lanes: target i is in lane i % 32. */
template <int GROUPS> struct stage_targets {
    enum { COUNT = (SPMM_STAGE * GROUPS + SPMM_WARP - 1) / SPMM_WARP };
    int32_t at[COUNT];
};

template <int GROUPS>
static __device__ __forceinline__ stage_targets<GROUPS> read_targets(const int32_t *mine, int count)
{
    typedef stage_targets<GROUPS> result;
    result targets;
#pragma unroll
    for (int h = 0; h < result::COUNT; h++) {
        const bool there = h * SPMM_WARP + static_cast<int>(threadIdx.x) % SPMM_WARP < count;
        targets.at[h] = there ? mine[h * SPMM_WARP] : static_cast<int32_t>(SPMM_NOTHING);
    }
    return targets;
}

/* Finish the slices whose sums are in a stage's rows of x. */
template <typename T, int G, bool PLAIN, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void end_slices(const spmm_csr &s, const stage_targets<SPMM_WARP / G> &targets,
                                                  unsigned ends, uint32_t rows, lane_columns mine, stored_parts &stored,
                                                  joined_rows<T> &joined, finished_rows<T> &finished)
{
    enum { GROUPS = SPMM_WARP / G, LAST = stage_targets<GROUPS>::COUNT - 1 };
    const int group = static_cast<int>(threadIdx.x) % SPMM_WARP / G;
    int first = 0; /* the first of its targets */
    for (unsigned left = ends >> STREAM_MINE & STREAM_ENDS; left != 0; left &= left - 1, first += GROUPS) {
        const int slot = __ffs(static_cast<int>(left)) - 1;
        const bool join = (ends >> (SPMM_JOINS + slot) & 1) != 0;
        const int32_t held = LAST > 0 && first >= SPMM_WARP ? targets.at[LAST] : targets.at[0];
        int32_t target = __shfl_sync(0xffffffffu, held, first % SPMM_WARP + (join ? 0 : group));
        pack<T> row;
        read_shared(row.at, rows + slot * static_cast<uint32_t>(sizeof(pack<T>)) * SPMM_WARP);
        if (join) {
            join_groups<T, G>(row);
            if (target < 0) { /* a part of a split row */
                T *to = static_cast<T *>(s.parts) + (-1 - static_cast<int64_t>(target)) * mine.width + mine.j;
                if (group == 0) store_pack<T, ALIGNED>(to, row, mine.valid);
                note_part(stored, -1 - target);
                continue;
            }
            if (!keep_joined<T, G>(joined, row, target)) continue;
            row = joined.row;
            target = joined.target;
        }
        finish_row<T, G, PLAIN, ALIGNED, ACTIVATE>(s, finished, row, target, mine);
    }
}

/* Finish the split rows whose last part is one of the recorded ones. */
template <typename T, int G, bool PLAIN, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void end_cuts(const spmm_csr &s, uint32_t room, lane_columns mine,
                                                stored_parts &stored, joined_rows<T> &joined,
                                                finished_rows<T> &finished)
{
    spmm_cut cut = {};
    for (unsigned last = tell_parts(s, stored, cut); last != 0; last &= last - 1) {
        const int from = __ffs(static_cast<int>(last)) - 1;
        const int64_t part = __shfl_sync(0xffffffffu, cut.part, from);
        const int32_t count = __shfl_sync(0xffffffffu, cut.count, from), row = __shfl_sync(0xffffffffu, cut.row, from);
        pack<T> sum = reduce_splits<T, G, ALIGNED>(s, part, count, room, mine);
        join_groups<T, G>(sum);
        if (keep_joined<T, G>(joined, sum, row))
            finish_row<T, G, PLAIN, ALIGNED, ACTIVATE>(s, finished, joined.row, joined.target, mine);
    }
}

/* ---- the stream ---- */

/* PLAIN: x has exactly the columns of one group, and there is neither a bias nor an activation. */
template <typename T, int G, bool PLAIN, bool ALIGNED, bool ACTIVATE>
static __global__ void __launch_bounds__(THREADS, SPMM_RESIDENT) run_stream(const __grid_constant__ spmm_csr s)
{
    enum { GROUPS = SPMM_WARP / G, V = pack<T>::V };
    typedef stage_of<T, G> stage;
    typedef warp_memory<T, G> memory;
    extern __shared__ __align__(128) char shared[];
    const char *const own = shared + threadIdx.x / SPMM_WARP * sizeof(memory);
    const int lane = threadIdx.x % SPMM_WARP, group = lane / G;
    const uint32_t pieces = kept_address(own + lane * 16),
                   columns = kept_address(own + group * SPMM_STAGE * sizeof(int32_t)),
                   values = kept_address(own + offsetof(stage, values) + group * SPMM_STAGE * sizeof(T)),
                   places = kept_address(own + offsetof(memory, rows) + lane * 16);
    const auto stage_at = [](int k) { return (k & (ELEMENT_STAGES - 1)) * static_cast<uint32_t>(sizeof(stage)); };
    const auto rows_at = [&](int k) { return places + (k & (ROW_STAGES - 1)) * sizeof(stage_rows<T>); };
    if (!s.ready) wait_and_launch_dependent_grids();
    const stream_part part = part_of_warp(s.stream);
    if (part.count == 0) {
        if (s.ready) wait_and_launch_dependent_grids();
        return;
    }
    lane_columns mine;
    mine.j = ((PLAIN ? 0 : static_cast<int>(blockIdx.y)) * G + lane % G) * V;
    mine.width = PLAIN ? G * V : s.width;
    mine.row_bytes = mine.width * static_cast<int>(sizeof(T));
    mine.valid = PLAIN || mine.width - mine.j > V ? V : mine.width - mine.j;
    mine.x = kept(static_cast<const char *>(s.x) + mine.j * sizeof(T));
    mine.y = const_cast<char *>(kept(static_cast<const char *>(s.y) + mine.j * sizeof(T)));
    element_source<T, G> next = elements_of<T, G>(s, part.begin);
    for (int k = 0; k < STAGES_EARLY; k++) {
        ask_for_elements<T, G>(next, pieces + stage_at(k), k < part.count);
        cp_async_commit();
    }
    const spmm_head *heads = s.stream.heads + part.begin;
    const int64_t first = heads[0].slice + (part.skipped > 0 ? 1 : 0);
    const int32_t *next_targets = s.stream.targets + first * GROUPS + lane;
    unsigned held = ends_of(part, heads, lane); /* each lane holds one, for 32 stages */
    pack<T> sum = {};
    joined_rows<T> joined = {{}, SPMM_NOTHING, 0};
    finished_rows<T> finished = {};
    stored_parts stored = {0, 0};
    if (s.ready) wait_and_launch_dependent_grids(); /* for x; elements were loaded meanwhile */
    cp_async_wait<STAGES_EARLY - 1>();
    for (int k = -STAGES_OPEN; k < part.count; k++) {
        const int rows_next = k + STAGES_OPEN, elements_next = rows_next + STAGES_EARLY;
        __syncwarp();
        ask_for_elements<T, G>(next, pieces + stage_at(elements_next), elements_next < part.count);
        if (rows_next < part.count)
            load_rows_async<T, G, ALIGNED>(columns + stage_at(rows_next), rows_at(rows_next), mine);
        cp_async_commit();
        const unsigned shown = __shfl_sync(0xffffffffu, held, k), ends = k < 0 ? 0 : shown;
        const int ending = __popc(ends >> STREAM_MINE & STREAM_ENDS) * GROUPS;
        const stage_targets<GROUPS> targets = read_targets<GROUPS>(next_targets, ending);
        next_targets += ending;
        cp_async_wait<STAGES_OPEN>();
        __syncwarp();
        if (k < 0) continue;
        const uint32_t rows = rows_at(k);
        T numbers[SPMM_STAGE];
        read_shared(numbers, values + stage_at(k));
        if ((ends & STREAM_ENDS) == 0)
            add_elements<T, false>(numbers, rows, sum, 0);
        else
            add_elements<T, true>(numbers, rows, sum, ends);
        end_slices<T, G, PLAIN, ALIGNED, ACTIVATE>(s, targets, ends, rows, mine, stored, joined, finished);
        if (stored.count > SPMM_WARP - SPMM_STAGE || (stored.count > 0 && k == part.count - 1))
            end_cuts<T, G, PLAIN, ALIGNED, ACTIVATE>(s, rows, mine, stored, joined, finished);
        if (k % SPMM_WARP == SPMM_WARP - 1) held = ends_of(part, heads, k + 1 + lane);
    }
    if (joined.count > 0) {
        const int32_t target = group < joined.count ? joined.target : static_cast<int32_t>(SPMM_NOTHING);
        finish_row<T, G, PLAIN, ALIGNED, ACTIVATE>(s, finished, joined.row, target, mine);
    }
    if (finished.waiting) {
        finished.row[1] = {}, finished.target[1] = SPMM_NOTHING;
        store_both<T, G, ALIGNED>(finished, mine);
    }
}

/* ---- launching ---- */

template <typename T> static bool is_aligned(const spmm_csr *s)
{
    return s->width % pack<T>::V == 0 && reinterpret_cast<uintptr_t>(s->x) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(s->y) % 16 == 0 && reinterpret_cast<uintptr_t>(s->parts) % 16 == 0;
}

template <typename T, int G, bool PLAIN, bool ALIGNED, bool ACTIVATE>
static void launch(const cuda_calculator *calculator, const spmm_csr *s)
{
    static_assert(sizeof(warp_memory<T, G>) == spmm_warp_bytes(SPMM_WARP / G, sizeof(T)), "of this shape");
    static_assert(SPMM_WARPS * sizeof(warp_memory<T, G>) <= 48 << 10, "every block may have so much");
    const int shared = static_cast<int>(SPMM_WARPS * sizeof(warp_memory<T, G>)), across = G * pack<T>::V;
    const dim3 blocks(static_cast<unsigned>(s->stream.warps / SPMM_WARPS),
                      static_cast<unsigned>((s->width + across - 1) / across));
    launch_overlapped(calculator, run_stream<T, G, PLAIN, ALIGNED, ACTIVATE>, blocks, THREADS, shared, *s);
}

template <typename T, int G> static void launch_lanes(const cuda_calculator *calculator, const spmm_csr *s)
{
    if (!is_aligned<T>(s))
        launch<T, G, false, false, true>(calculator, s);
    else if (s->activation.function != SDLF_IDENTITY)
        launch<T, G, false, true, true>(calculator, s);
    else if (s->width == G * pack<T>::V && s->bias == nullptr)
        launch<T, G, true, true, false>(calculator, s);
    else
        launch<T, G, false, true, false>(calculator, s);
}

template <typename T> static void launch_stream(const cuda_calculator *calculator, const spmm_csr *s)
{
    switch (SPMM_WARP / s->stream.groups) {
    case 4: launch_lanes<T, 4>(calculator, s); break;
    case 8: launch_lanes<T, 8>(calculator, s); break;
    case 16: launch_lanes<T, 16>(calculator, s); break;
    default: launch_lanes<T, SPMM_WARP>(calculator, s); break;
    }
}

#endif
