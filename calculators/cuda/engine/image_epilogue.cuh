/* SPDX-License-Identifier: MIT */
/* The epilogue of a tile of pixels: bias, residual, activation and statistics for batch normalisation, directly from the
 * accumulator registers of a warpgroup. A lane has two adjacent channels of each 8, of two rows; pairs of lanes exchange
 * theirs of 16 channels, so that each has 4, and the four lanes of a row load and store whole 32-byte sectors (64 bytes in
 * float32).
 *
 * A residual is loaded through the mainloop's ring, in stages after those of the operands, so that it is prefetched equally far ahead; or, if
 * a tile's pixels are not contiguous in memory or the blocks of a cluster share its columns, directly from global memory.
 *
 * Statistics are accumulated over all tiles of a block, in shared memory for each warp, and the warps' sums are added at the end. Deviations
 * are taken from the block's first row, so that a large mean cancels first. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_EPILOGUE_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_EPILOGUE_CUH

#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/engine/image_tile.cuh"

/* Of the block's channels: bias, the center of the deviations, and the sums over each warp's rows. */
template <int BN> struct channel_numbers {
    alignas(16) float bias[BN], center[BN];
    float2 sums[8][BN];
};

template <typename T, int BN, image_mode MODE, typename Ring = no_ring> struct image_epilogue {
    static constexpr int GROUPS = BN / 16;
    static constexpr bool STAGED = MODE == STAGED_RESIDUAL;
    using staged = staged_residual<T, BN, STAGED ? Ring::STAGE_BYTES : 128 * BN *static_cast<int>(sizeof(T))>;
    static constexpr int PART_GROUPS = GROUPS / staged::PARTS;
    channel_numbers<BN> &numbers;
    int column, end, lane, warp, first_group, last_group, rows; /* channels from `column` to before `end` */
    bool begun;

    __device__ __forceinline__ image_epilogue(const image_params &p, channel_numbers<BN> &shared, int tile, int rank)
        : numbers(shared), lane(static_cast<int>(threadIdx.x) % 32), warp(static_cast<int>(threadIdx.x) / 32),
          first_group(rank * GROUPS / p.cluster), last_group((rank + 1) * GROUPS / p.cluster), rows(0), begun(false)
    {
        const channel_range range = channels_of(p, tile, BN);
        column = range.first;
        end = range.end;
        for (int i = lane; i < BN; i += 32) numbers.sums[warp][i] = make_float2(0, 0);
        const int c = static_cast<int>(threadIdx.x), channel = column + c;
        if (c < BN) numbers.bias[c] = channel < end && p.bias != nullptr ? p.bias[channel] : 0.0f;
        barrier_of_threads(ENGINE_CONSUMERS);
    }

    __device__ __forceinline__ void add_bias(float (&c)[BN / 8][4]) const
    {
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const float2 bias = *reinterpret_cast<const float2 *>(&numbers.bias[8 * j + 2 * (lane % 4)]);
            c[j][0] += bias.x;
            c[j][1] += bias.y;
            c[j][2] += bias.x;
            c[j][3] += bias.y;
        }
    }

    /* Deviations in forward are from the first row of the block's first tile. */
    __device__ __forceinline__ void begin(const float (&c)[BN / 8][4])
    {
        if (warp == 0 && lane < 4) {
#pragma unroll
            for (int j = 0; j < BN / 8; j++) {
                numbers.center[8 * j + 2 * lane] = c[j][0];
                numbers.center[8 * j + 2 * lane + 1] = c[j][1];
            }
        }
        barrier_of_threads(ENGINE_CONSUMERS);
    }

    /* Apply bias, residual and activation to four values of columns c to c + 3. */
    __device__ __forceinline__ void complete(const image_params &p, float (&value)[4], int c,
                                             const bits4<T> &more) const
    {
#pragma unroll
        for (int v = 0; v < 4; v++) {
            value[v] += numbers.bias[c + v] + element(more, v);
            if constexpr (MODE == LINE_ACTIVATION || STAGED) value[v] = p.line.value(value[v]);
            if constexpr (MODE == ANY_ACTIVATION) value[v] = activate_often(p.activation, value[v]);
        }
    }

    /* The same for row `h` and a group of 16 columns without a residual, directly from the accumulators: they are rounded, and in CLIP_VALUES
     * clipped, before lanes exchange them. */
    __device__ __forceinline__ bits4<T> rounded(const image_params &p, const float (&c)[BN / 8][4], int group, int h,
                                                const float2 (&bias)[2]) const
    {
        bits4<T> stored;
        float value[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            value[i][0] = c[2 * group + i][2 * h] + bias[i].x;
            value[i][1] = c[2 * group + i][2 * h + 1] + bias[i].y;
        }
        if constexpr (sizeof(T) == 2) {
            using pair = pair16<T>;
            alignas(8) typename pair::type both[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                both[i] = pair::of(value[i][0], value[i][1]);
                if constexpr (MODE == CLIP_VALUES) {
                    const uint32_t low = p.clip_pair[0], high = p.clip_pair[1];
                    both[i] = clamp_pair(both[i], reinterpret_cast<const typename pair::type &>(low),
                                         reinterpret_cast<const typename pair::type &>(high));
                }
            }
            uint32_t(&words)[2] = *reinterpret_cast<uint32_t(*)[2]>(both);
            exchange_pair(words, lane);
            stored.word[0] = words[0];
            stored.word[1] = words[1];
        } else {
            float low[2] = {value[0][0], value[1][0]}, high[2] = {value[0][1], value[1][1]};
            exchange_pair(low, lane);
            exchange_pair(high, lane);
            float all[4] = {low[0], high[0], low[1], high[1]};
#pragma unroll
            for (int v = 0; MODE == CLIP_VALUES && v < 4; v++) all[v] = clamp(all[v], p.line.low, p.line.high);
            stored = pack4<T>(all);
        }
        return stored;
    }

    /* Bias and activation if there is no residual between them: applied to all of a thread's accumulators. */
    __device__ __forceinline__ void activate_fragments(const image_params &p, float (&c)[BN / 8][4]) const
    {
        with_activation<T>(p.activation, [&](auto f) {
#pragma unroll
            for (int part = 0; part < BN / 32; part++) {
                if (sizeof(T) == 2 && column + 32 * part >= end) break; /* (in float32 registers would be spilled) */
#pragma unroll
                for (int j = 4 * part; j < 4 * part + 4; j++) {
                    const float2 bias = *reinterpret_cast<const float2 *>(&numbers.bias[8 * j + 2 * (lane % 4)]);
                    c[j][0] = f(c[j][0] + bias.x);
                    c[j][1] = f(c[j][1] + bias.y);
                    c[j][2] = f(c[j][2] + bias.x);
                    c[j][3] = f(c[j][3] + bias.y);
                }
            }
        });
    }

    /* Accumulate the statistics of four values, as stored, of columns c to c + 3. */
    __device__ __forceinline__ void add(const bits4<T> &stored, int c, float2 (&sums)[4]) const
    {
        const float4 middle = *reinterpret_cast<const float4 *>(&numbers.center[c]);
        const float center[4] = {middle.x, middle.y, middle.z, middle.w};
#pragma unroll
        for (int v = 0; v < 4; v++) {
            const float distance = element(stored, v) - center[v];
            sums[v].x += distance;
            sums[v].y += distance * distance;
        }
    }

    /* The tile row of the lane's h-th row; and the first of its four channels of 16. */
    __device__ __forceinline__ int row_of(int h) const
    {
        return warp / 4 * 64 + warp % 4 * 16 + h * 8 + lane / 4;
    }
    __device__ __forceinline__ int first_of_16() const
    {
        return lane % 2 * 8 + lane % 4 / 2 * 4;
    }

    /* The whole epilogue of a tile without a residual and statistics. */
    template <typename Pixels>
    __device__ __forceinline__ void store_clipped(const image_params &p, const Pixels &pixels,
                                                  const float (&c)[BN / 8][4]) const
    {
        T *row[2];
        int groups[2]; /* groups of 16 channels that the lane stores */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int64_t pixel;
            const int first = column + first_of_16();
            groups[h] = pixels.locate(row_of(h), pixel) ? (end - first + 15) / 16 : 0;
            row[h] = static_cast<T *>(p.result) + pixel * p.channels + first;
        }
        const int last = min(last_group, (end - column + 15) / 16);
#pragma unroll
        for (int a = 0; a < GROUPS; a++) {
            if (a < first_group || a >= last) continue;
            float2 bias[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                bias[i] = *reinterpret_cast<const float2 *>(&numbers.bias[16 * a + 8 * i + 2 * (lane % 4)]);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const bits4<T> stored = rounded(p, c, a, h, bias);
                if (a < groups[h]) store_bits4<T>(row[h] + 16 * a, stored);
            }
        }
    }

    /* The epilogue of a tile with `count` valid pixels. pixels.locate(row, pixel): true if the tile's row is valid; sets its pixel in the output. */
    template <typename Pixels>
    __device__ __forceinline__ void finish(const image_params &p, const Pixels &pixels, int count,
                                           float (&c)[BN / 8][4], Ring *ring)
    {
        if constexpr (MODE == CLIP_VALUES) {
            store_clipped(p, pixels, c);
            return;
        }
        const bool alone = MODE == SUM_VALUES || (MODE == ANY_ACTIVATION && p.residual == nullptr);
        if (MODE == ANY_ACTIVATION && alone) activate_fragments(p, c);
        if constexpr (MODE == SUM_VALUES) {
            if (p.bias != nullptr) add_bias(c);
            if (!begun) begin(c);
            begun = true;
        }
        rows += count;
        const int within = first_of_16();
        const int left = end - column - within; /* a group of 16 is valid if it begins below */
        const uint32_t in_stage = staged::first_of(row_of(0), within);
        int64_t to[2]; /* in the output; -1: no such pixel */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int64_t pixel;
            const bool there = pixels.locate(row_of(h), pixel);
            to[h] = there ? pixel * p.channels + column + within : -1;
        }
#pragma unroll
        for (int a = 0; a < GROUPS; a++) {
            if (a < first_group || a >= last_group) continue;
            if (MODE != SUM_VALUES && !STAGED && column + 16 * a >= end) break;
            bits4<T> more[2] = {};
            if constexpr (STAGED) { /* load both before either is used */
                if (a % PART_GROUPS == 0) ring->consumer_wait();
#pragma unroll
                for (int h = 0; h < 2; h++) more[h] = staged::load(ring->tile_a() + in_stage, a % PART_GROUPS, 8 * h);
            }
            float2 sums[MODE == SUM_VALUES ? 4 : 1] = {};
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int64_t at = to[h] + 16 * a;
                const bool is_there = to[h] >= 0 && 16 * a < left;
                bits4<T> stored;
                if (alone) {
                    stored = rounded(p, c, a, h, {});
                    if (!is_there) continue;
                } else {
                    float low[2] = {c[2 * a][2 * h], c[2 * a + 1][2 * h]};
                    float high[2] = {c[2 * a][2 * h + 1], c[2 * a + 1][2 * h + 1]};
                    exchange_pair(low, lane);
                    exchange_pair(high, lane);
                    if (!is_there) continue;
                    float value[4] = {low[0], high[0], low[1], high[1]};
                    if (!STAGED && p.residual != nullptr)
                        more[h] = load_bits4<T>(static_cast<const T *>(p.residual) + at);
                    complete(p, value, 16 * a + within, more[h]);
                    stored = pack4<T>(value);
                }
                store_bits4<T>(static_cast<T *>(p.result) + at, stored);
                if constexpr (MODE == SUM_VALUES) add(stored, 16 * a + within, sums);
            }
            if constexpr (STAGED) {
                if (a % PART_GROUPS == PART_GROUPS - 1) ring->consumer_release();
            }
            if constexpr (MODE == SUM_VALUES) {
                const float2 sum = add_over_rows(sums, lane);
                if (lane & 4) continue;
                float2 &all = numbers.sums[warp][16 * a + within + lane / 8];
                all.x += sum.x;
                all.y += sum.y;
            }
        }
    }

    /* Adds the warps' sums, and writes the block's part of the statistics. */
    __device__ __forceinline__ void leave(const image_params &p, int part) const
    {
        if constexpr (MODE == SUM_VALUES) {
            barrier_of_threads(ENGINE_CONSUMERS);
            const int c = static_cast<int>(threadIdx.x), channel = column + c;
            if (c >= BN || channel >= end || c / 16 < first_group || c / 16 >= last_group) return;
            float2 sum = make_float2(0, 0);
#pragma unroll
            for (int w = 0; w < ENGINE_CONSUMERS / 32; w++) {
                sum.x += numbers.sums[w][c].x;
                sum.y += numbers.sums[w][c].y;
            }
            const float distance = rows > 0 ? sum.x / static_cast<float>(rows) : 0.0f;
            const float squares = sum.y - sum.x * distance;
            const float2 moments = make_float2(numbers.center[c] + distance, squares < 0 ? 0.0f : squares);
            p.parts[static_cast<int64_t>(part) * p.channels + channel] = rows > 0 ? moments : make_float2(0, 0);
            if (channel == 0) p.rows[part] = static_cast<float>(rows);
        }
    }
};

#endif
