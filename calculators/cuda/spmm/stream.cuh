/* A warp's part of the stream of spmm_csr (spmm.cuh).
 *
 * Everything comes through shared memory, asynchronously, so that what is under way takes no registers and does not end where a
 * row ends: the warp asks for the columns and values of the stage that is STAGES_EARLY + STAGES_OPEN ahead, then, by columns that have
 * come, for the rows of x of the stage that is STAGES_OPEN ahead, and adds up the stage that has come. A lane has V = 16 / sizeof(T)
 * neighbouring columns of x, and reads back what it asked for itself; what is under way is STAGES_OPEN times 4 KB a warp.
 * A sum that is complete takes the place of the row of x that was added last, and the stage's rows are finished together;
 * rows that had all groups to themselves wait until there is one for each group.
 * Rows wider than a warp has columns for are gone over again, by other blocks, for the next G V columns. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_STREAM_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_STREAM_CUH

#include "calculators/cuda/mma.cuh"
#include "calculators/cuda/spmm/slice.cuh"

enum {
    STAGES_OPEN = SPMM_OPEN,
    STAGES_EARLY = STAGES_OPEN + 1, /* so that columns have come, too, when STAGES_OPEN may still be under way */
    ROW_STAGES = STAGES_OPEN + 1,
    ELEMENT_STAGES = STAGES_OPEN + STAGES_EARLY + 1,
    THREADS = 64, /* SPMM_WARPS warps */
};

/* A stage of the stream, and the warp's shared memory. */
template <typename T, int G> struct stage_of {
    enum { GROUPS = SPMM_WARP / G, PLACES = GROUPS * SPMM_STAGE };
    alignas(16) int32_t columns[GROUPS][SPMM_STAGE];
    alignas(16) T values[GROUPS][SPMM_STAGE];
};

template <typename T, int G> struct warp_memory {
    stage_of<T, G> elements[ELEMENT_STAGES];
    pack<T> rows[ROW_STAGES][SPMM_STAGE][SPMM_WARP];
};

/* ---- which part ---- */

/* Stages [begin, begin + count): of the first one, what begins behind slot `skipped`; of the last one, what ends before slot
 * `kept`. */
typedef struct stream_part {
    int64_t begin;
    int count, skipped, kept;
} stream_part;

/* From this warp's start to the next one's. */
static __device__ __forceinline__ stream_part part_of_warp(const spmm_stream &stream)
{
    const int warp = static_cast<int>(blockIdx.x) * SPMM_WARPS + static_cast<int>(threadIdx.x) / SPMM_WARP;
    const spmm_start first = stream.starts[warp], next = stream.starts[warp + 1];
    stream_part part = {first.stage, next.stage - first.stage, first.slot, next.slot};
    if (part.count <= 0)
        part.count = 0; /* one slice goes on through all of them */
    else if (part.kept > 0)
        part.count++;
    else
        part.kept = SPMM_STAGE;
    return part;
}

/* ---- what is asked for ---- */

template <typename T, int G>
static __device__ __forceinline__ void ask_for_elements(const spmm_csr &s, stage_of<T, G> &to, int64_t stage)
{
    enum { PLACES = stage_of<T, G>::PLACES, COLUMNS = PLACES * 4 / 16, ALL = COLUMNS + PLACES * (int)sizeof(T) / 16 };
    const char *columns = reinterpret_cast<const char *>(s.stream.columns + stage * PLACES);
    const char *values = reinterpret_cast<const char *>(static_cast<const T *>(s.stream.values) + stage * PLACES);
#pragma unroll
    for (int first = 0; first < ALL; first += SPMM_WARP) {
        const int i = first + threadIdx.x % SPMM_WARP;
        const char *from = i < COLUMNS ? columns + i * 16 : values + (i - COLUMNS) * 16;
        if (i < ALL) copy_async_once(reinterpret_cast<char *>(&to) + i * 16, from, true);
    }
}

template <typename T, int G, bool ALIGNED>
static __device__ __forceinline__ void ask_for_rows(const spmm_csr &s, const stage_of<T, G> &elements,
                                                    pack<T> (*to)[SPMM_WARP], lane_columns mine)
{
    const int lane = threadIdx.x % SPMM_WARP, group = lane / G;
    const char *x = reinterpret_cast<const char *>(static_cast<const T *>(s.x) + mine.j);
    const int row_bytes = s.width * static_cast<int>(sizeof(T));
    int32_t columns[SPMM_STAGE];
    memcpy(columns, elements.columns[group], sizeof columns);
#pragma unroll
    for (int i = 0; i < SPMM_STAGE; i++) {
        const bool there = columns[i] >= 0;
        const T *from = reinterpret_cast<const T *>(x + static_cast<int64_t>(columns[i]) * row_bytes);
        if (ALIGNED) {
            copy_async(&to[i][lane], from, there && mine.valid > 0);
        } else {
#pragma unroll
            for (int v = 0; v < pack<T>::V; v++)
                copy_async_number(&to[i][lane].at[v], from + v, there && v < mine.valid);
        }
    }
}

/* ---- what becomes of it ---- */

/* Add the stage's elements to `sum`; where a slice ends, its sums go to the place of the last row of x. */
template <typename T, int G>
static __device__ __forceinline__ void add_stage(const stage_of<T, G> &elements, pack<T> (*rows)[SPMM_WARP],
                                                 pack<T> &sum, unsigned ends)
{
    const int lane = threadIdx.x % SPMM_WARP, group = lane / G;
    T values[SPMM_STAGE];
    memcpy(values, elements.values[group], sizeof values);
#pragma unroll
    for (int i = 0; i < SPMM_STAGE; i++) {
        const pack<T> row = rows[i][lane];
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) sum.at[v] += values[i] * row.at[v];
        if ((ends >> i & 1) != 0) {
            rows[i][lane] = sum;
            sum = {};
        }
    }
}

template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static __global__ void __launch_bounds__(THREADS, SPMM_RESIDENT) run_stream(const __grid_constant__ spmm_csr s)
{
    enum { GROUPS = SPMM_WARP / G, TARGETS = (SPMM_STAGE * GROUPS + SPMM_WARP - 1) / SPMM_WARP };
    extern __shared__ __align__(128) char shared[];
    warp_memory<T, G> &memory = reinterpret_cast<warp_memory<T, G> *>(shared)[threadIdx.x / SPMM_WARP];
    const int lane = threadIdx.x % SPMM_WARP, group = lane / G;
    lane_columns mine;
    mine.j = (static_cast<int>(blockIdx.y) * G + lane % G) * pack<T>::V;
    mine.valid = s.width - mine.j < pack<T>::V ? s.width - mine.j : pack<T>::V;
    if (!s.ready) await_kernels();
    const stream_part part = part_of_warp(s.stream);
    spmm_head held = {}; /* every lane one, of 32 stages */
    pack<T> sum = {}, kept = {};
    int32_t kept_target = SPMM_NOTHING;
    int kept_count = 0;
    int asked = 0, gathered = 0, rows_asked = 0, added = 0, rows_added = 0; /* places in the rings */
    if (part.count == 0 && s.ready) await_kernels();
    for (int turn = 0; part.count > 0 && turn < part.count + STAGES_EARLY + STAGES_OPEN; turn++) {
        __syncwarp();
        if (turn < part.count) {
            ask_for_elements<T, G>(s, memory.elements[asked], part.begin + turn);
            asked = asked == ELEMENT_STAGES - 1 ? 0 : asked + 1;
        }
        if (turn == STAGES_EARLY && s.ready) await_kernels(); /* for x; elements came meanwhile */
        if (turn >= STAGES_EARLY && turn - STAGES_EARLY < part.count) {
            ask_for_rows<T, G, ALIGNED>(s, memory.elements[gathered], memory.rows[rows_asked], mine);
            gathered = gathered == ELEMENT_STAGES - 1 ? 0 : gathered + 1;
            rows_asked = rows_asked == ROW_STAGES - 1 ? 0 : rows_asked + 1;
        }
        close_copies();
        const int k = turn - STAGES_EARLY - STAGES_OPEN;
        unsigned all = 0, ends = 0;
        int32_t targets[TARGETS];
        if (k >= 0) {
            if (k % SPMM_WARP == 0 && k + lane < part.count) held = s.stream.heads[part.begin + k + lane];
            int slice = __shfl_sync(0xffffffffu, held.slice, k % SPMM_WARP);
            all = ends = __shfl_sync(0xffffffffu, held.ends, k % SPMM_WARP);
            ends &= 0xff;
            if (k == 0 && part.skipped > 0) {
                ends &= 0xffu << part.skipped;
                slice++;
            }
            if (k == part.count - 1) ends &= (1u << part.kept) - 1;
#pragma unroll
            for (int h = 0; h < TARGETS; h++) {
                const int at = h * SPMM_WARP + lane;
                targets[h] = at < __popc(ends) * GROUPS ? s.stream.targets[static_cast<int64_t>(slice) * GROUPS + at]
                                                        : static_cast<int32_t>(SPMM_NOTHING);
            }
        }
        await_copies<STAGES_OPEN>();
        __syncwarp();
        if (k < 0) continue;
        pack<T>(*rows)[SPMM_WARP] = memory.rows[rows_added];
        add_stage<T, G>(memory.elements[added], rows, sum, all);
        added = added == ELEMENT_STAGES - 1 ? 0 : added + 1;
        rows_added = rows_added == ROW_STAGES - 1 ? 0 : rows_added + 1;
        int number = 0;
        for (unsigned left = ends; left != 0; left &= left - 1, number++) {
            const int slot = __ffs(static_cast<int>(left)) - 1, at = number * GROUPS;
            const bool join = (all >> (SPMM_JOINS + slot) & 1) != 0;
            const int32_t held_targets = TARGETS > 1 && at >= SPMM_WARP ? targets[TARGETS - 1] : targets[0];
            int32_t target = __shfl_sync(0xffffffffu, held_targets, at % SPMM_WARP + (join ? 0 : group));
            pack<T> row = rows[slot][lane];
            if (join) {
                join_groups<T, G>(row);
                if (target < 0) { /* a part of a row that is cut */
                    T *to = static_cast<T *>(s.parts) + (-1 - static_cast<int64_t>(target)) * s.width + mine.j;
                    if (group == 0) store_pack<T, ALIGNED>(to, row, mine.valid);
                    continue;
                }
                if (group == kept_count) kept = row, kept_target = target;
                if (++kept_count < GROUPS) continue;
                row = kept;
                target = kept_target;
                kept_count = 0;
            }
            finish_rows<T, G, ALIGNED, ACTIVATE>(s, row, target, mine);
        }
    }
    if (kept_count > 0)
        finish_rows<T, G, ALIGNED, ACTIVATE>(
            s, kept, group < kept_count ? kept_target : static_cast<int32_t>(SPMM_NOTHING), mine);
}

/* ---- launching ---- */

template <typename T> static bool is_aligned(const spmm_csr *s)
{
    return s->width % pack<T>::V == 0 && reinterpret_cast<uintptr_t>(s->x) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(s->y) % 16 == 0 && reinterpret_cast<uintptr_t>(s->parts) % 16 == 0;
}

template <typename T, int G, bool ALIGNED, bool ACTIVATE>
static void launch(const cuda_calculator *calculator, const spmm_csr *s)
{
    static_assert(sizeof(warp_memory<T, G>) == spmm_warp_bytes(SPMM_WARP / G, sizeof(T)), "of this shape");
    static_assert(SPMM_WARPS * sizeof(warp_memory<T, G>) <= 48 << 10, "every block may have so much");
    const int shared = static_cast<int>(SPMM_WARPS * sizeof(warp_memory<T, G>)), across = G * pack<T>::V;
    const dim3 blocks(static_cast<unsigned>(s->stream.warps / SPMM_WARPS),
                      static_cast<unsigned>((s->width + across - 1) / across));
    launch_overlapped(calculator, run_stream<T, G, ALIGNED, ACTIVATE>, blocks, THREADS, shared, *s);
}

template <typename T, int G> static void launch_lanes(const cuda_calculator *calculator, const spmm_csr *s)
{
    if (!is_aligned<T>(s))
        launch<T, G, false, true>(calculator, s);
    else if (s->activation.function != SDLF_IDENTITY)
        launch<T, G, true, true>(calculator, s);
    else
        launch<T, G, true, false>(calculator, s);
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
