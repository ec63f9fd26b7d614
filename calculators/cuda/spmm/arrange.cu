/* The lines of a sparse matrix (spmm/spmm.cuh), by a block a chunk of rows: count the rows of each kind, take places in the lists for
 * them all at once, and write. Reads the offsets twice and writes 16 bytes a row: some 5 us for 281,903 rows, once for a matrix
 * that stays. */
#include "calculators/cuda/spmm/spmm.cuh"

enum {
    THREADS = 256,
    LIGHTS = SPMM_LIGHT / 8, /* kinds of light rows: 25 to 32 elements, 17 to 24, 9 to 16, 1 to 8 */
    EMPTY = LIGHTS,          /* without elements */
    AWAY = EMPTY + 1,        /* a place that a heavy row leaves */
    HEAVY = AWAY + 1,        /* 129 to 256, 65 to 128, 33 to 64 */
    CUT = HEAVY + 3,
    KINDS = CUT + 1,
};

static __device__ __forceinline__ int kind_of(int64_t count)
{
    if (count > SPMM_HEAVY) return CUT;
    if (count > SPMM_LIGHT) return HEAVY + (count > SPMM_HEAVY / 2 ? 0 : count > SPMM_HEAVY / 4 ? 1 : 2);
    return count > 0 ? LIGHTS - 1 - static_cast<int>((count - 1) / 8) : EMPTY;
}

static __device__ __forceinline__ int64_t parts_of(int64_t count)
{
    return (count + SPMM_HEAVY - 1) / SPMM_HEAVY;
}

/* A cut row of the chunk, and where its lines and its parts begin. */
typedef struct cut_place {
    int row, heavy, part;
} cut_place;

/* By all threads of the block. */
static __device__ __forceinline__ void write_cut(const spmm_csr &s, const cut_place &place)
{
    const int64_t first = s.offsets[place.row], count = s.offsets[place.row + 1] - first;
    const int parts = static_cast<int>(parts_of(count));
    for (int i = threadIdx.x; i < parts; i += THREADS) {
        const int64_t skipped = i * static_cast<int64_t>(SPMM_HEAVY), left = count - skipped;
        s.lines.heavy[place.heavy + i] = spmm_line{
            first + skipped, static_cast<int32_t>(left < SPMM_HEAVY ? left : SPMM_HEAVY), -1 - (place.part + i)};
    }
}

static __global__ void arrange(const __grid_constant__ spmm_csr s)
{
    __shared__ int next[KINDS], parts, next_part, next_cut, cuts;
    __shared__ cut_place places[SPMM_CHUNK];
    const spmm_lines &lines = s.lines;
    const int64_t top = static_cast<int64_t>(blockIdx.x) * SPMM_CHUNK;
    if (threadIdx.x < KINDS) next[threadIdx.x] = 0;
    if (threadIdx.x == 0) parts = cuts = 0;
    __syncthreads();
    for (int64_t row = top + threadIdx.x; row < top + SPMM_CHUNK; row += THREADS) {
        const int64_t count = row < s.rows ? s.offsets[row + 1] - s.offsets[row] : 0;
        const int kind = row < s.rows ? kind_of(count) : AWAY;
        atomicAdd(&next[kind], 1);
        if (kind >= HEAVY) atomicAdd(&next[AWAY], 1);
        if (kind == CUT) atomicAdd(&parts, static_cast<int>(parts_of(count)));
    }
    __syncthreads();
    if (threadIdx.x ==
        0) { /* from numbers to places: light ones in the chunk's part of the list, heavy ones behind all others' */
        int heavy = next[HEAVY] + next[HEAVY + 1] + next[HEAVY + 2] + parts, place = 0;
        for (int kind = 0; kind <= AWAY; kind++) {
            int rows = next[kind];
            next[kind] = place;
            place += rows;
        }
        next_part = parts > 0 ? atomicAdd(&lines.counts[2], parts) : 0;
        next_cut = parts > 0 ? atomicAdd(&lines.counts[1], next[CUT]) : 0;
        place = heavy > 0 ? atomicAdd(&lines.counts[0], heavy) : 0;
        next[CUT] = place; /* first of all: lines of cut rows */
        place += parts;
        for (int kind = HEAVY; kind < CUT; kind++) {
            int rows = next[kind];
            next[kind] = place;
            place += rows;
        }
    }
    __syncthreads();
    for (int64_t row = top + threadIdx.x; row < top + SPMM_CHUNK; row += THREADS) {
        const bool real = row < s.rows;
        const int64_t first = real ? s.offsets[row] : 0, count = real ? s.offsets[row + 1] - first : 0;
        const int kind = real ? kind_of(count) : AWAY, target = static_cast<int>(row);
        if (kind == CUT) {
            const int pieces = static_cast<int>(parts_of(count)), part = atomicAdd(&next_part, pieces);
            lines.cuts[atomicAdd(&next_cut, 1)] = spmm_cut{part, target, pieces};
            places[atomicAdd(&cuts, 1)] = cut_place{target, atomicAdd(&next[CUT], pieces), part};
        } else if (kind >= HEAVY) {
            lines.heavy[atomicAdd(&next[kind], 1)] = spmm_line{first, static_cast<int32_t>(count), target};
        } else if (kind < AWAY) {
            lines.light[top + atomicAdd(&next[kind], 1)] = spmm_line{first, static_cast<int32_t>(count), target};
        }
        if (kind >= AWAY) lines.light[top + atomicAdd(&next[AWAY], 1)] = spmm_line{0, 0, SPMM_NOTHING};
    }
    __syncthreads();
    for (int i = 0; i < cuts; i++) write_cut(s, places[i]);
}

cudaError_t spmm_arrange(const spmm_csr *s, cudaStream_t stream)
{
    cudaError_t error = cudaMemsetAsync(s->lines.counts, 0, 3 * sizeof *s->lines.counts, stream);
    if (error == cudaSuccess && s->lines.light_count > 0)
        arrange<<<static_cast<unsigned>(s->lines.light_count / SPMM_CHUNK), THREADS, 0, stream>>>(*s);
    return error;
}
