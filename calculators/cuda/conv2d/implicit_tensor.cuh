/* SPDX-License-Identifier: MIT */
/* Implicit GEMM on tensor cores: operands rounded to nearest to tf32, float16 or bfloat16, accumulated in float32.
 *
 * A block computes ROWS x COLUMNS results, a warp WARP_ROWS x WARP_COLUMNS of them, in k-steps of 16 words (a word is one tf32, or two
 * 16-bit elements that are neighbours along K). While the tensor cores multiply one k-step from shared memory, the next one is loaded
 * into registers; it is rounded once, when it is stored to the other half of shared memory.
 *
 * Lane 4 g + t of a warp holds words 2t and 2t + 1 of every 8 where mma expects t and t + 4: the order along K is free, and so a lane
 * reads neighbours. Row lengths of 24 words (a) and 132 or 68 (gathered) avoid bank conflicts. Global loads: a 16 bytes at a time where
 * lengths allow it, else element by element; the image one element a lane, neighbours in q in neighbouring lanes. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_TENSOR_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_TENSOR_CUH

#include "calculators/cuda/conv2d/implicit.cuh"
#include "calculators/cuda/mma.cuh"

/* How operands are rounded: WIDTH elements make a word; c += a b for a 16 x 8 word matrix and an 8 word x 8 one. */
struct implicit_tf32 {
    static constexpr int WIDTH = 1;
    static __device__ __forceinline__ uint32_t word(const float *value)
    {
        return operand_bits<SDLF_MATH_TF32>(value[0]);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_tf32(c, a, b);
    }
};

struct implicit_fp16 {
    static constexpr int WIDTH = 2;
    static __device__ __forceinline__ uint32_t word(const float *value)
    {
        __half2 pair = __floats2half2_rn(value[0], value[1]);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_fp16(c, a, b);
    }
};

struct implicit_bf16 {
    static constexpr int WIDTH = 2;
    static __device__ __forceinline__ uint32_t word(const float *value)
    {
        __nv_bfloat162 pair = __floats2bfloat162_rn(value[0], value[1]);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_bf16(c, a, b);
    }
};

template <typename MATH, int ROWS, int COLUMNS, int WARP_ROWS, int WARP_COLUMNS, bool WEIGHTS> struct implicit_tensor {
    static constexpr int THREADS = 32 * (ROWS / WARP_ROWS) * (COLUMNS / WARP_COLUMNS);
    static constexpr int WIDTH = MATH::WIDTH, STEP = IMPLICIT_DEPTH * WIDTH; /* elements along K in a k-step */
    static constexpr int A_STRIDE = IMPLICIT_DEPTH + 8, B_STRIDE = COLUMNS + 4;
    static constexpr int A_QUADS = ROWS * IMPLICIT_DEPTH / 4 / THREADS; /* quads of words that a thread loads */
    static constexpr int B_WORDS = COLUMNS * IMPLICIT_DEPTH / THREADS;
    static constexpr int DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8; /* mma tiles of a warp */

    using position_kind = typename implicit_kinds<WEIGHTS>::position;
    using column_kind = typename implicit_kinds<WEIGHTS>::column;

    struct shared {
        uint32_t a[2][ROWS * A_STRIDE];
        uint32_t b[2][IMPLICIT_DEPTH * B_STRIDE];
        position_kind position[2][STEP];
        int64_t a_offset[2][WEIGHTS ? STEP : 1];
        column_kind column[WEIGHTS ? COLUMNS : 1];
        int64_t result[COLUMNS];
    };

    /* The columns' taps, in backward weights; else NULL. */
    static __device__ __forceinline__ const implicit_tap *first_tap(const shared &mine)
    {
        if constexpr (WEIGHTS)
            return mine.column;
        else
            return nullptr;
    }

    /* The elements of a k-step that this thread loads. */
    struct cargo {
        float a[A_QUADS][4 * WIDTH];
        float b[B_WORDS][WIDTH];
    };

    /* Load from the rows that `a` points to; NULL past the last. */
    static __device__ __forceinline__ void load_a(cargo &cargo, const float *const *a, bool wide, int depth,
                                                  const int64_t *a_offset, int step)
    {
        int local = static_cast<int>(threadIdx.x) % 4 * 4 * WIDTH, position = step * STEP + local;
        if (wide) {
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
#pragma unroll
                for (int j = 0; j < 4 * WIDTH; j += 4) {
                    float4 four = {0, 0, 0, 0};
                    if (a[i] != nullptr && position + j < depth)
                        four = *reinterpret_cast<const float4 *>(a[i] + (WEIGHTS ? a_offset[local + j] : position + j));
                    cargo.a[i][j] = four.x;
                    cargo.a[i][j + 1] = four.y;
                    cargo.a[i][j + 2] = four.z;
                    cargo.a[i][j + 3] = four.w;
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
#pragma unroll
                for (int j = 0; j < 4 * WIDTH; j++) {
                    bool inside = a[i] != nullptr && position + j < depth;
                    cargo.a[i][j] = inside ? a[i][WEIGHTS ? a_offset[local + j] : position + j] : 0.0f;
                }
            }
        }
    }

    /* Word and column of the tile that a thread's i-th word belongs to. Neighbouring lanes have neighbouring columns,
     * which are pixels, in forward; neighbouring words along K in backward weights. */
    static __device__ __forceinline__ int b_word(int i)
    {
        return WEIGHTS ? static_cast<int>(threadIdx.x) % IMPLICIT_DEPTH
                       : static_cast<int>(threadIdx.x) / COLUMNS * B_WORDS + i;
    }
    static __device__ __forceinline__ int b_column(int i)
    {
        return WEIGHTS ? static_cast<int>(threadIdx.x) / IMPLICIT_DEPTH + i * (THREADS / IMPLICIT_DEPTH)
                       : static_cast<int>(threadIdx.x) % COLUMNS;
    }

    /* Forward and backward input: the thread's own pixel, one tap an element. */
    static __device__ __forceinline__ void load_b(cargo &cargo, const float *from, const implicit_tap *taps,
                                                  const implicit_tap *, const implicit_pixel &own)
    {
#pragma unroll
        for (int i = 0; i < B_WORDS; i++) {
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                implicit_tap tap = taps[b_word(i) * WIDTH + v];
                cargo.b[i][v] = (own.outside & tap.bits) == 0 ? from[tap.offset] : 0.0f;
            }
        }
    }

    /* Backward weights: the pixels of the thread's own word, one tap a column. */
    static __device__ __forceinline__ void load_b(cargo &cargo, const float *source, const implicit_pixel *pixels,
                                                  const implicit_tap *columns, const implicit_tap &)
    {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            implicit_pixel pixel = pixels[b_word(0) * WIDTH + v];
            const float *from = kept(source + pixel.offset);
#pragma unroll
            for (int i = 0; i < B_WORDS; i++) {
                implicit_tap tap = columns[b_column(i)];
                cargo.b[i][v] = (pixel.outside & tap.bits) == 0 ? from[tap.offset] : 0.0f;
            }
        }
    }

    static __device__ __forceinline__ void unload(const cargo &cargo, uint32_t *a, uint32_t *b)
    {
#pragma unroll
        for (int i = 0; i < A_QUADS; i++) {
            int quad = static_cast<int>(threadIdx.x) + i * THREADS;
            uint4 words = {MATH::word(&cargo.a[i][0]), MATH::word(&cargo.a[i][WIDTH]),
                           MATH::word(&cargo.a[i][2 * WIDTH]), MATH::word(&cargo.a[i][3 * WIDTH])};
            *reinterpret_cast<uint4 *>(a + quad / 4 * A_STRIDE + quad % 4 * 4) = words;
        }
#pragma unroll
        for (int i = 0; i < B_WORDS; i++) b[b_word(i) * B_STRIDE + b_column(i)] = MATH::word(cargo.b[i]);
    }

    static __device__ __forceinline__ void multiply(float (*sum)[ACROSS][4], const uint32_t *a, const uint32_t *b)
    {
        int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        int top = warp / (COLUMNS / WARP_COLUMNS) * WARP_ROWS + lane / 4;
        int left = warp % (COLUMNS / WARP_COLUMNS) * WARP_COLUMNS + lane / 4;
#pragma unroll
        for (int word = 0; word < IMPLICIT_DEPTH; word += 8) {
            uint32_t second[ACROSS][2];
            int at = word + lane % 4 * 2;
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                second[j][0] = b[at * B_STRIDE + left + j * 8];
                second[j][1] = b[(at + 1) * B_STRIDE + left + j * 8];
            }
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
                uint2 upper = *reinterpret_cast<const uint2 *>(a + (top + i * 16) * A_STRIDE + at);
                uint2 lower = *reinterpret_cast<const uint2 *>(a + (top + i * 16 + 8) * A_STRIDE + at);
                uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
#pragma unroll
                for (int j = 0; j < ACROSS; j++) MATH::multiply(sum[i][j], first, second[j]);
            }
        }
    }

    static __device__ __forceinline__ void store(const cuda_implicit &p, const implicit_block<float> &block,
                                                 float (*sum)[ACROSS][4], const int64_t *result)
    {
        int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        int top = warp / (COLUMNS / WARP_COLUMNS) * WARP_ROWS + lane / 4 + block.row;
        int left = warp % (COLUMNS / WARP_COLUMNS) * WARP_COLUMNS + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    int row = top + i * 16 + v / 2 * 8;
                    int64_t at = result[left + j * 8 + v % 2];
                    if (row < p.rows && at >= 0)
                        implicit_store(p, block.group, row, at + row * p.result_row, sum[i][j][v]);
                }
            }
        }
    }

    static __device__ void run(const cuda_implicit &p)
    {
        __shared__ shared mine;
        implicit_block<float> block(p, ROWS, COLUMNS, STEP);
        if (block.column >= block.columns) return; /* a phase smaller than the largest */
        implicit_positions<float, STEP, WEIGHTS> positions(block);
        column_kind own;
        implicit_column(&own, p, block, WEIGHTS ? 0 : b_column(0));
        if (WEIGHTS) {
            for (int j = static_cast<int>(threadIdx.x); j < COLUMNS; j += THREADS)
                implicit_column(&mine.column[j], p, block, j);
        }
        for (int j = static_cast<int>(threadIdx.x); j < COLUMNS; j += THREADS)
            mine.result[j] = block.result_offset(p, j);
        const float *source = block.source;
        if constexpr (!WEIGHTS) source += own.offset;
        source = kept(source);
        const float *a[A_QUADS]; /* the rows of this thread's quads */
#pragma unroll
        for (int i = 0; i < A_QUADS; i++) {
            int row = (static_cast<int>(threadIdx.x) + i * THREADS) / 4 + block.row;
            a[i] = kept(row < p.rows ? block.a + row * block.a_row : nullptr);
        }
        int depth = block.depth;
        bool wide = p.wide;
        float sum[DOWN][ACROSS][4] = {};
        cargo cargo;
        positions.write(p, block, mine.position[0], mine.a_offset[0]);
        __syncthreads();
        if (block.first < block.last) {
            load_a(cargo, a, wide, depth, mine.a_offset[0], block.first);
            load_b(cargo, source, mine.position[0], first_tap(mine), own);
            positions.write(p, block, mine.position[1], mine.a_offset[1]);
            unload(cargo, mine.a[0], mine.b[0]);
            __syncthreads();
        }
        for (int step = block.first, half = 0; step < block.last; step++, half ^= 1) {
            bool more = step + 1 < block.last;
            if (more) {
                load_a(cargo, a, wide, depth, mine.a_offset[half ^ 1], step + 1);
                load_b(cargo, source, mine.position[half ^ 1], first_tap(mine), own);
                positions.write(p, block, mine.position[half], mine.a_offset[half]);
            }
            multiply(sum, mine.a[half], mine.b[half]);
            if (more) unload(cargo, mine.a[half ^ 1], mine.b[half ^ 1]);
            __syncthreads();
        }
        store(p, block, sum, mine.result);
    }
};

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS, 512 / TILE::THREADS)
    implicit_product(const __grid_constant__ cuda_implicit problem)
{
    TILE::run(problem);
}

/* Launch the GEMM with the tile of that number (cuda_implicit_tiles). */
template <typename MATH, bool WEIGHTS>
static void implicit_launch_tensor(cudaStream_t stream, const cuda_implicit &p, int tile)
{
    unsigned blocks = static_cast<unsigned>(static_cast<int64_t>(p.row_tiles) * p.column_tiles * p.splits *
                                            p.phases[0] * p.phases[1] * p.groups);
    using large = implicit_tensor<MATH, 128, 128, 64, 32, WEIGHTS>;
    using middle = implicit_tensor<MATH, 64, 128, 32, 32, WEIGHTS>;
    using small = implicit_tensor<MATH, 64, 64, 32, 32, WEIGHTS>;
    using flat = implicit_tensor<MATH, 32, 128, 32, 32, WEIGHTS>;
    switch (tile) {
    case 0: implicit_product<large><<<blocks, large::THREADS, 0, stream>>>(p); break;
    case 1: implicit_product<middle><<<blocks, middle::THREADS, 0, stream>>>(p); break;
    case 2: implicit_product<small><<<blocks, small::THREADS, 0, stream>>>(p); break;
    default: implicit_product<flat><<<blocks, flat::THREADS, 0, stream>>>(p); break;
    }
}

#endif
