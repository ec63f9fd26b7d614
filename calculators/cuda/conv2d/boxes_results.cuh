/* What becomes of the sums of a convolution over boxes (conv2d/boxes.cuh): they lie in the shared memory of the block, or of the blocks of a
 * cluster that share them, and go to y four filters of a pixel a thread, as they are or the largest of each 2x2. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_BOXES_RESULTS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_BOXES_RESULTS_CUH

#include "calculators/cuda/conv2d/boxes.h"
#include "calculators/cuda/conv2d/patch_halves.cuh"

/* The same place in the shared memory of a block of the cluster; four numbers from there. */
static __device__ __forceinline__ uint32_t place_at(uint32_t address, int rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

static __device__ __forceinline__ float4 read_there(uint32_t address)
{
    float4 four;
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(address));
    return four;
}

/* NaN wins. */
static __device__ __forceinline__ float larger(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}

static __device__ __forceinline__ float smaller(float a, float b)
{
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}

static __device__ __forceinline__ float4 larger(float4 a, float4 b)
{
    return make_float4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}

/* ---- tiles ---- */

template <typename FACTOR, int GROUPS, int PIXELS, int STAGES, int ROUNDING>
struct boxes_results : patch_halves<FACTOR, GROUPS, PIXELS> {
    using both = patch_halves<FACTOR, GROUPS, PIXELS>;
    using tile = typename both::tile;
    using sums = typename both::sums;
    using both::FILTERS, both::WORKERS, both::WARPS;
    using tile::INNER, tile::ROW, tile::STEP, tile::PLACE, tile::PART;
    static constexpr int ROUNDERS = 32 * ROUNDING, THREADS = WORKERS + ROUNDERS + 32;
    static constexpr int LINE = BOXES_TAPS * STEP;                     /* bytes of weights of a step */
    static constexpr int QUADS = FILTERS / 4, LANES = THREADS / QUADS; /* pixels that are stored at a time */

    /* Blocks of a cluster share a tile's sum. */
    struct block {
        int image, row, column, filter; /* the tile's first */
        int lines;                      /* steps of a chunk */
        int first, last;                /* steps */

        __device__ block(const cuda_patch &p)
        {
            int at = static_cast<int>(blockIdx.z), split = static_cast<int>(blockIdx.x);
            filter = static_cast<int>(blockIdx.y) * FILTERS;
            int down = at / p.tiles_across;
            column = (at - down * p.tiles_across) << p.tile_log;
            image = p.images > 1 ? down / p.tiles_down : 0;
            row = (down - image * p.tiles_down) * (PIXELS >> p.tile_log);
            lines = p.tap_sides[0];
            int steps = p.steps / BOXES_TAPS, share = steps, rest = 0;
            if (p.splits > 1) {
                share = steps / p.splits;
                rest = steps - share * p.splits;
            }
            first = share * split + min(split, rest);
            last = first + share + (split < rest);
        }
    };

    /* ---- results ---- */

    /* Four neighbouring filters of the tile's pixel m, of all blocks that share the sum, MOST at most, in order; all are asked for before the
     * first is there. from: this thread's filters of pixel 0 in each block. */
    template <int MOST>
    static __device__ __forceinline__ float4 total_of(const cuda_patch &p, const uint32_t (&from)[MOST],
                                                      const float *part, int m)
    {
        if constexpr (MOST == 1) {
            return *reinterpret_cast<const float4 *>(part + m * PART);
        } else {
            float4 one[MOST];
#pragma unroll
            for (int rank = 0; rank < MOST; rank++) {
                one[rank] = make_float4(0, 0, 0, 0);
                if (MOST == 2 || rank < p.splits) one[rank] = read_there(from[rank] + m * PART * 4);
            }
#pragma unroll
            for (int rank = 1; rank < MOST; rank++) {
                one[0].x += one[rank].x;
                one[0].y += one[rank].y;
                one[0].z += one[rank].z;
                one[0].w += one[rank].w;
            }
            return one[0];
        }
    }

    /* The same, or, with POOLS, the largest of 2x2 of them. */
    template <int MOST, bool POOLS>
    static __device__ __forceinline__ float4 result_of(const cuda_patch &p, const uint32_t (&from)[MOST],
                                                       const float *part, int m)
    {
        if (!POOLS) return total_of<MOST>(p, from, part, m);
        int at = (m >> 2) * 16 + (m & 3) * 2;
        float4 v = total_of<MOST>(p, from, part, at);
        v = larger(v, total_of<MOST>(p, from, part, at + 1));
        v = larger(v, total_of<MOST>(p, from, part, at + 8));
        return larger(v, total_of<MOST>(p, from, part, at + 9));
    }

    /* What is stored: the tile's results, or, with POOLS, the largest of each 2x2 of them. A thread has the same four filters of each of its
     * pixels, of which it reads some before it stores the first; each block that shares the sum has some pixels. Activations that are a lower and
     * an upper bound. */
    template <int MOST, bool POOLS>
    static __device__ __forceinline__ void store_quick(const cuda_patch &p, const block &b, const float *part)
    {
        constexpr int AT_ONCE = POOLS || MOST > 2 ? 1 : 4;
        const int thread = static_cast<int>(threadIdx.x), column = thread % QUADS * 4, filter = b.filter + column;
        if (filter >= p.filters) return;
        const sdlf_activation &act = p.activation;
        const bool relu = act.function == SDLF_RELU, clip = act.function == SDLF_CLIP;
        const float low = relu ? 0.0f : clip ? static_cast<float>(act.low) : -INFINITY;
        const float high = clip ? static_cast<float>(act.high) : INFINITY;
        float4 bias = make_float4(0, 0, 0, 0);
        if (p.bias != nullptr) bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
        uint32_t from[MOST] = {};
        part += column;
#pragma unroll
        for (int rank = 0; rank < MOST && MOST > 1; rank++)
            if (MOST == 2 || rank < p.splits) from[rank] = place_at(patch_address(part), rank);
        const int height = POOLS ? p.out_height / 2 : p.out_height, width = POOLS ? p.out_width / 2 : p.out_width;
        const int top = POOLS ? b.row / 2 : b.row, left = POOLS ? b.column / 2 : b.column, log = POOLS ? 2 : p.tile_log;
        const int mask = (1 << log) - 1, first = b.image * height; /* lines of earlier images */
        const int count = POOLS ? PIXELS / 4 : PIXELS, step = LANES * (MOST > 1 ? p.splits : 1);
        for (int begin = thread / QUADS + static_cast<int>(blockIdx.x) * LANES; begin < count;
             begin += AT_ONCE * step) {
            float4 value[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                value[i] = result_of<MOST, POOLS>(p, from, part, min(begin + i * step, count - 1));
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int m = begin + i * step, row = top + (m >> log), place = left + (m & mask);
                if (m >= count || row >= height || place >= width) continue;
                float4 v = value[i];
                v = make_float4(v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w);
                const int at = ((first + row) * width + place) * p.filters + filter;
                if (!POOLS && p.residual != nullptr) {
                    float4 more = *reinterpret_cast<const float4 *>(p.residual + at);
                    v = make_float4(v.x + more.x, v.y + more.y, v.z + more.z, v.w + more.w);
                }
                v = make_float4(smaller(larger(v.x, low), high), smaller(larger(v.y, low), high),
                                smaller(larger(v.z, low), high), smaller(larger(v.w, low), high));
                if (!POOLS || p.plane == 0) {
                    *reinterpret_cast<float4 *>(p.y + at) = v;
                } else {
                    float *y = p.y + (b.image * p.filters + filter) * p.plane + row * width + place;
                    y[0] = v.x;
                    y[p.plane] = v.y;
                    y[2 * p.plane] = v.z;
                    y[3 * p.plane] = v.w;
                }
            }
        }
    }

    /* The same for any activation, and for filters that are no quads or lie where they cannot be moved as such. */
    static __device__ __noinline__ void store_slowly(const cuda_patch &p, const block &b, const float *part, bool pools)
    {
        const int height = pools ? p.out_height / 2 : p.out_height, width = pools ? p.out_width / 2 : p.out_width;
        const int log = pools ? 2 : p.tile_log, count = pools ? PIXELS / 4 : PIXELS;
#pragma unroll 1
        for (int e = static_cast<int>(threadIdx.x) + static_cast<int>(blockIdx.x) * THREADS; e < count * FILTERS;
             e += THREADS * p.splits) {
            int m = e / FILTERS, column = e % FILTERS, filter = b.filter + column;
            int row = (pools ? b.row / 2 : b.row) + (m >> log);
            int place = (pools ? b.column / 2 : b.column) + (m & ((1 << log) - 1));
            if (row >= height || place >= width || filter >= p.filters) continue;
            float value = -INFINITY;
#pragma unroll 1
            for (int i = 0; i < (pools ? 4 : 1); i++) {
                int pixel = pools ? (m >> 2) * 16 + (m & 3) * 2 + i / 2 * 8 + i % 2 : m;
                const float *from = part + pixel * PART + column;
                float total = 0;
                for (int rank = 0; rank < p.splits; rank++) total += read_number(from, rank);
                value = pools ? larger(value, total) : total;
            }
            int64_t at = (static_cast<int64_t>(b.image * height + row) * width + place) * p.filters + filter;
            if (p.plane > 0) at = static_cast<int64_t>(b.image * p.filters + filter) * p.plane + row * width + place;
            if (p.bias != nullptr) value += p.bias[filter];
            if (p.residual != nullptr) value += p.residual[at];
            p.y[at] = activate(p.activation, value);
        }
    }

    static __device__ __forceinline__ float read_number(const float *from, int rank)
    {
        float number;
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(number) : "r"(place_at(patch_address(from), rank)));
        return number;
    }

    static __device__ __forceinline__ void store(const cuda_patch &p, const block &b, const float *part, bool pools)
    {
        if (!p.quick || !p.fours)
            store_slowly(p, b, part, pools);
        else if (p.splits > 2)
            pools ? store_quick<PATCH_SPLITS, true>(p, b, part) : store_quick<PATCH_SPLITS, false>(p, b, part);
        else if (p.splits > 1)
            pools ? store_quick<2, true>(p, b, part) : store_quick<2, false>(p, b, part);
        else
            pools ? store_quick<1, true>(p, b, part) : store_quick<1, false>(p, b, part);
    }
};

#endif
