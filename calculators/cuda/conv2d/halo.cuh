/* SPDX-License-Identifier: MIT */
/* What the kernels of conv2d/halo.h share: the tile of a block, reading the patch, storing results.
 *
 * Elements of x are kept in shared memory as float32, and rounded when a warp reads them.
 *
 * Shared memory is XOR-swizzled in 16-byte chunks. A pixel's 8 chunks of 4 channels are at chunk ^ spread(pixel), a filter's 8
 * (tf32) or 4 (16 bits) at chunk ^ (filter % 8) or chunk ^ (filter / 2 % 4): reads of 8 pixels or 8 filters use all banks.
 *
 * In 16 bits, the channels of a k-step are ordered so that a lane finds all its 4 channels of a pixel in one chunk. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_CUH

#include "calculators/cuda/conv2d/halo_operands.cuh"

/* ---- tiles ---- */

/* PIXELS x FILTERS results a block, WARP_PIXELS x WARP_FILTERS a warp; the first WORKERS threads accumulate. */
template <typename OPERAND, bool THIN, int PIXELS, int FILTERS, int WARP_PIXELS, int WARP_FILTERS> struct halo_tile {
    static constexpr int WORKERS = 32 * (PIXELS / WARP_PIXELS) * (FILTERS / WARP_FILTERS);
    static constexpr int DOWN = WARP_PIXELS / 16, ACROSS = WARP_FILTERS / 8;
    static constexpr bool OPERANDS16 = OPERAND::BYTES == 2;
    static constexpr int ROW = HALO_CHANNELS * OPERAND::BYTES;   /* bytes of a filter in a k-step */
    static constexpr int STEP = FILTERS * ROW;                   /* bytes of weights of a k-step */
    static constexpr int PLACE = THIN ? 16 : 128;                /* bytes of a pixel in the patch */
    static constexpr int INNER = HALO_CHANNELS / OPERAND::DEPTH; /* mma instructions along K of a k-step */
    static constexpr int OF_LANE = OPERANDS16 ? 2 : 1;           /* patch rows that a lane addresses in 16 pixels */
    static constexpr int PART = FILTERS + 4;                     /* floats between two pixels' sums in shared memory */

    typedef float sums[DOWN][ACROSS][4];

    /* Bytes of patches and weights, or of the partial sums that overwrite them after the mainloop. */
    static __host__ __device__ int work(const cuda_halo &p, int stages)
    {
        int product = p.patches * p.patch_bytes + stages * STEP, parts = p.direct ? 0 : PIXELS * PART * 4;
        return product > parts ? product : parts;
    }

    struct block {
        int image, row, column, filter; /* the first of the tile */
        int split, first, last;         /* split, and its range of k-steps */

        __device__ block(const cuda_halo &p)
        {
            unsigned at = blockIdx.x;
            split = static_cast<int>(at % p.splits);
            at /= p.splits;
            filter = static_cast<int>(at % p.tiles_filters) * FILTERS;
            at /= p.tiles_filters;
            column = static_cast<int>(at % p.tiles_across) << p.tile_log;
            at /= p.tiles_across;
            row = static_cast<int>(at % p.tiles_down) * (PIXELS >> p.tile_log);
            image = static_cast<int>(at / p.tiles_down);
            int share = p.steps / p.splits, rest = p.steps % p.splits;
            first = share * split + min(split, rest);
            last = first + share + (split < rest);
        }
    };

    /* Index in the patch of the tile's pixel `m` for tap (0, 0). */
    static __device__ __forceinline__ int place_of(const cuda_halo &p, int m)
    {
        int down = m >> p.tile_log, right = m & ((1 << p.tile_log) - 1);
        return down * p.pixel_step[0] * p.patch_across + right * p.pixel_step[1];
    }

    /* Fill the tables: the offset in x of each patch pixel, -1 outside; the offset in the patch of each tap, -1 past the last. */
    template <int THREADS>
    static __device__ void make_tables(const cuda_halo &p, const block &b, int *source, int *tap_at)
    {
        for (int i = static_cast<int>(threadIdx.x); i < p.patch_pixels; i += THREADS) {
            int down = i / p.patch_across, right = i - down * p.patch_across;
            int h = b.row * p.stride[0] - p.padding[0] + down * p.source_step[0];
            int w = b.column * p.stride[1] - p.padding[1] + right * p.source_step[1];
            bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p.width);
            source[i] = inside ? ((b.image * p.height + h) * p.width + w) * p.channels : -1;
        }
        for (int i = static_cast<int>(threadIdx.x); i < HALO_TAPS; i += THREADS) {
            int down = i / p.taps_across, right = i - down * p.taps_across;
            int at = down * p.tap_step[0] * p.patch_across + right * p.tap_step[1];
            tap_at[i] = i < p.taps ? at : -1;
        }
    }

    /* Issue cp.async copies of the patch of a chunk of channels, as `thread` of THREADS. */
    template <int THREADS>
    static __device__ __forceinline__ void load_patch(const cuda_halo &p, char *to, const int *source, int chunk,
                                                      int thread)
    {
        if (THIN) {
            /* one pixel of zeros more, for taps that do not exist */
            for (int i = thread; i < (p.patch_pixels + 1) * HALO_THIN; i += THREADS) {
                int pixel = i / HALO_THIN, channel = i % HALO_THIN;
                int from = pixel < p.patch_pixels ? source[pixel] : -1;
                bool valid = from >= 0 && channel < p.channels;
                copy_async_number(reinterpret_cast<float *>(to) + i, p.x + (valid ? from + channel : 0), valid);
            }
        } else {
            int channel = chunk * HALO_CHANNELS + thread % 8 * 4;
            int part = thread % 8;
            bool exists = channel < p.channels;
#pragma unroll 4
            for (int pixel = thread / 8; pixel < p.patch_pixels; pixel += THREADS / 8) {
                int from = source[pixel];
                char *place = to + pixel * PLACE + (part ^ halo_spread(pixel)) * 16;
                bool valid = from >= 0 && exists;
                if (p.quads) {
                    copy_async(place, p.x + (valid ? from + channel : 0), valid);
                    continue;
                }
                for (int v = 0; v < 4; v++) {
                    valid = from >= 0 && channel + v < p.channels;
                    copy_async_number(reinterpret_cast<float *>(place) + v, p.x + (valid ? from + channel + v : 0),
                                      valid);
                }
            }
        }
    }

    /* Patch indices of the pixels that this lane addresses, of a warp whose first pixel is `top`. */
    static __device__ __forceinline__ void find_places(const cuda_halo &p, int (&place)[DOWN][OF_LANE], int top)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int r = 0; r < OF_LANE; r++)
                place[i][r] = place_of(p, top + (OPERANDS16 ? lane / 4 : lane % 16) + i * 16 + r * 8);
        }
    }

    /* Shared-memory addresses that this lane reads for the tap at offset `shift`; not for thin images. */
    static __device__ __forceinline__ void find_tap(const int (&place)[DOWN][OF_LANE], uint32_t (&from)[DOWN][OF_LANE],
                                                    uint32_t patch, int shift)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, part = OPERANDS16 ? lane % 4 : lane / 16;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int r = 0; r < OF_LANE; r++) {
                int at = place[i][r] + shift;
                from[i][r] = patch + at * PLACE + ((part ^ halo_spread(at)) << 4);
            }
        }
    }

    /* Load this lane's A operands of mma `inner` of a k-step whose first tap is `tap`. */
    static __device__ __forceinline__ void read_pixels(const cuda_halo &p, uint32_t (&a)[DOWN][4],
                                                       const int (&place)[DOWN][OF_LANE],
                                                       const uint32_t (&from)[DOWN][OF_LANE], uint32_t patch,
                                                       const int *tap_at, int tap, int inner)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, part = OPERANDS16 ? lane % 4 : lane / 16;
        int shift = 0;
        if (THIN) shift = tap_at[tap + inner * (OPERANDS16 ? 4 : 2) + part];
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            uint32_t at[OF_LANE];
#pragma unroll
            for (int r = 0; r < OF_LANE; r++)
                at[r] = THIN ? patch + (shift >= 0 ? place[i][r] + shift : p.patch_pixels) * PLACE
                             : from[i][r] ^ (inner << (OPERANDS16 ? 6 : 5));
            if constexpr (OPERANDS16) {
                float4 upper = halo_read_four(at[0]), lower = halo_read_four(at[1]);
                a[i][0] = OPERAND::pair(upper.x, upper.y);
                a[i][1] = OPERAND::pair(lower.x, lower.y);
                a[i][2] = OPERAND::pair(upper.z, upper.w);
                a[i][3] = OPERAND::pair(lower.z, lower.w);
            } else {
                halo_read_matrices(a[i], at[0]);
            }
        }
    }

    /* Round the tf32 operands that read_pixels loaded as float32. */
    static __device__ __forceinline__ void round_pixels(uint32_t (&a)[DOWN][4])
    {
        if constexpr (!OPERANDS16) {
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
#pragma unroll
                for (int v = 0; v < 4; v++) a[i][v] = OPERAND::weight(__uint_as_float(a[i][v]));
            }
        }
    }

    /* Index in y of the tile's pixel `m`; -1: outside. */
    static __device__ __forceinline__ int64_t result_of(const cuda_halo &p, const block &b, int m)
    {
        int row = b.row + (m >> p.tile_log), column = b.column + (m & ((1 << p.tile_log) - 1));
        if (row >= p.out_height || column >= p.out_width) return -1;
        return (static_cast<int64_t>(b.image) * p.out_height + row) * p.out_width + column;
    }

    /* Inlined once for every result of a thread. DIRECT: only the activations that need few instructions. */
    template <bool DIRECT>
    static __device__ __forceinline__ float epilogue(const cuda_halo &p, int filter, int64_t at, float value)
    {
        if (p.bias != nullptr) value += __ldg(p.bias + filter); /* may be loaded before earlier results are stored */
        if (p.residual != nullptr) value += p.residual[at];
        return activated<DIRECT>(p, value);
    }

    template <bool DIRECT> static __device__ __forceinline__ float activated(const cuda_halo &p, float value)
    {
        if (!DIRECT) return activate(p.activation, value);
        if (p.activation.function == SDLF_RELU) return value > 0 ? value : (value != value ? value : 0.0f);
        if (p.activation.function == SDLF_CLIP)
            return clamp(value, static_cast<float>(p.activation.low), static_cast<float>(p.activation.high));
        return value;
    }

    static __device__ __forceinline__ void store(const cuda_halo &p, const block &b, const sums &sum)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        int top = warp / (FILTERS / WARP_FILTERS) * WARP_PIXELS + lane / 4;
        int left = b.filter + warp % (FILTERS / WARP_FILTERS) * WARP_FILTERS + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int64_t pixel = result_of(p, b, top + i * 16 + half * 8);
                if (pixel < 0) continue;
#pragma unroll
                for (int j = 0; j < ACROSS; j++) {
                    int filter = left + j * 8;
                    int64_t at = pixel * p.filters + filter;
                    if (p.pairs) {
                        if (filter >= p.filters) continue;
                        float2 two = {epilogue<true>(p, filter, at, sum[i][j][2 * half]),
                                      epilogue<true>(p, filter + 1, at + 1, sum[i][j][2 * half + 1])};
                        *reinterpret_cast<float2 *>(p.y + at) = two;
                    } else {
                        if (filter < p.filters) p.y[at] = epilogue<true>(p, filter, at, sum[i][j][2 * half]);
                        if (filter + 1 < p.filters)
                            p.y[at + 1] = epilogue<true>(p, filter + 1, at + 1, sum[i][j][2 * half + 1]);
                    }
                }
            }
        }
    }

    /* Write this block's sums to its shared memory, over patches and weights, which nobody reads any more. */
    static __device__ __forceinline__ void store_partial_sums(const sums &sum, float *part)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        int top = warp / (FILTERS / WARP_FILTERS) * WARP_PIXELS + lane / 4;
        int left = warp % (FILTERS / WARP_FILTERS) * WARP_FILTERS + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
#pragma unroll
                for (int j = 0; j < ACROSS; j++)
                    *reinterpret_cast<float2 *>(part + (top + i * 16 + half * 8) * PART + left + j * 8) =
                        make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
            }
        }
    }

    /* Once all partial sums are there, each block of the cluster adds and stores its share of the tile, in quads. */
    template <int THREADS>
    static __device__ __forceinline__ void reduce_splits(const cuda_halo &p, const block &b, float *part)
    {
        if (p.splits > 1)
            cluster_sync();
        else
            __syncthreads();
        for (int quad = static_cast<int>(threadIdx.x) + b.split * THREADS; quad < PIXELS * FILTERS / 4;
             quad += THREADS * p.splits) {
            int m = quad / (FILTERS / 4), column = quad % (FILTERS / 4) * 4;
            int64_t pixel = result_of(p, b, m);
            if (pixel < 0 || b.filter + column >= p.filters) continue;
            const float4 total = halo_sum_parts(halo_address(part + m * PART + column), p.splits);
            const float value[4] = {total.x, total.y, total.z, total.w};
#pragma unroll
            for (int v = 0; v < 4; v++) {
                int filter = b.filter + column + v;
                int64_t at = pixel * p.filters + filter;
                if (filter < p.filters) p.y[at] = epilogue<false>(p, filter, at, value[v]);
            }
        }
        __syncwarp();
        if (p.splits > 1) cluster_sync(); /* others may still read from this block */
    }
};

#endif
