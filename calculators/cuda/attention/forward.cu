/* SPDX-License-Identifier: MIT */
/* attention_forward: a thread block has 64 queries of a head, and iterates over the keys in tiles of 64; scores and their exponentials stay in
 * registers. Each query keeps the running maximum of the scores and the sum of exponentials; when a later tile has a larger score, the
 * accumulators are rescaled. 2 L S (D + E) FLOPs a head (three times as many on Tensor Cores in fp32). On 9.0, 16-bit operands without a mask are
 * computed by attention/forward_wgmma.cu. */
#include <type_traits>

#include "calculators/cuda/attention/blocks.cuh"

template <sdlf_math MATH> static __device__ __forceinline__ float power(float x)
{
    if constexpr (MATH == SDLF_MATH_FP32) return expf(x);
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

/* The online softmax: scores become exponentials, and the accumulators are rescaled, for rows g and g + 8. */
template <sdlf_math MATH, int D>
static __device__ __forceinline__ void online_softmax_update(float (&scores)[TILES][4], float (&y)[D / TILE][4],
                                                             float (&largest)[2], float (&sum)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float found = largest[half];
#pragma unroll
        for (int n = 0; n < TILES; n++) found = fmaxf(found, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        found = quad_max(found);
        float shift = found == -INFINITY ? 0.0f : found, factor = power<MATH>(largest[half] - shift), added = 0;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[n][i] = power<MATH>(scores[n][i] - shift);
                added += scores[n][i];
            }
        }
        sum[half] = sum[half] * factor + added; /* over this lane's columns */
        largest[half] = found;
#pragma unroll
        for (int n = 0; n < D / TILE; n++) y[n][2 * half] *= factor, y[n][2 * half + 1] *= factor;
    }
}

/* Dot products of a thread become scores: for rows `query` and query + 8, columns `key` and key + 1 of every tile. */
static __device__ __forceinline__ void finish_scores(const attention_arguments &p, const attention_head &at, int query,
                                                     int key, float (&scores)[TILES][4])
{
    if (p.mask != nullptr) {
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[n][i] = finish_score(p, at, query + i / 2 * 8, key + n * TILE + i % 2, scores[n][i]);
        return;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int limit = p.causal ? min(p.keys, query + 8 * half + p.keys - p.queries + 1) : p.keys;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float &score = scores[n][2 * half + i];
                score = key + n * TILE + i < limit ? score * p.scale : -INFINITY;
            }
    }
}

/* Thread blocks per multiprocessor, as limited by registers. */
template <sdlf_math MATH, int D> constexpr int forward_blocks = MATH == SDLF_MATH_FP32 || D > 64 ? 2 : 3;

/* T: the storage type of the operands. The next tile of keys and values is loaded while the current one is multiplied. */
template <typename T, sdlf_math MATH, int D>
static __global__ void __launch_bounds__(ATTENTION_THREADS, (forward_blocks<MATH, D>))
    attention_forward(attention_arguments p)
{
    extern __shared__ uint32_t shared[];
    constexpr int LINE = block_line<T, D>, BLOCK = ATTENTION_BLOCK * LINE;
    T *stages = reinterpret_cast<T *>(shared);
    int first = static_cast<int>(blockIdx.x) * ATTENTION_BLOCK, lane = static_cast<int>(threadIdx.x) % WARP;
    int row = static_cast<int>(threadIdx.x) / WARP * WARP_ROWS, g = lane / 4, t = lane % 4;
    wait_and_launch_dependent_grids();
    const attention_head at =
        attention_head_of(p, static_cast<int>(blockIdx.y) / p.heads, static_cast<int>(blockIdx.y) % p.heads);
    const attention_rows k = head_rows<T>(p.k, at.sample, at.group), v = head_rows<T>(p.v, at.sample, at.group);
    copy_block<T, D>(stages + 2 * BLOCK, head_rows<T>(p.q, at.sample, at.head), first);
    copy_block<T, D>(stages, k, 0);
    copy_block<T, D>(stages + BLOCK, v, 0);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    uint32_t q[reduction_words<MATH, D> / 8][4];
    load_rows<MATH, D>(q, stages + 2 * BLOCK + row * LINE);
    float scores[TILES][4], y[D / TILE][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    int visible = p.causal ? min(p.keys, first + ATTENTION_BLOCK + p.keys - p.queries) : p.keys;
    for (int key = 0, stage = 0; key < visible; key += ATTENTION_BLOCK, stage ^= 1) {
        const T *now = stages + stage * 2 * BLOCK;
        const int tiles = (visible - key + TILE - 1) / TILE; /* that contain keys */
        cp_async_wait<0>();
        __syncthreads(); /* this stage is loaded, and no warp reads the other one any longer */
        if (key + ATTENTION_BLOCK < visible) {
            T *next = stages + (stage ^ 1) * 2 * BLOCK;
            copy_block<T, D>(next, k, key + ATTENTION_BLOCK);
            copy_block<T, D>(next + BLOCK, v, key + ATTENTION_BLOCK);
            cp_async_commit();
        }
        multiply_keys<MATH, D>(scores, q, now, tiles);
        finish_scores(p, at, first + row + g, key + 2 * t, scores);
        online_softmax_update<MATH, D>(scores, y, largest, sum);
        multiply_values<MATH, D>(y, scores, now + BLOCK, tiles);
    }
    write_results<T, D>(p, at, first + row, y, largest, sum);
}

/* Call function(zero of the storage type, math mode, D), the latter two as constants. Operands in 16-bit storage are multiplied in their type. */
template <typename Function>
static void with_forward_shape(sdlf_dtype dtype, sdlf_math math, int depth, Function function)
{
    auto stored = [&](auto zero) {
        constexpr sdlf_math of = operand_math_of<decltype(zero)>;
        with_attention_depth(depth,
                             [&](auto columns) { function(zero, std::integral_constant<sdlf_math, of>(), columns); });
    };
    if (dtype == SDLF_FLOAT16)
        stored(__half());
    else if (dtype == SDLF_BFLOAT16)
        stored(__nv_bfloat16());
    else
        with_attention_shape(math, depth, [&](auto mode, auto columns) { function(0.0f, mode, columns); });
}

/* Two stages, each of k and v. */
int attention_forward_shared(sdlf_dtype dtype, sdlf_math math, int depth)
{
    int bytes = 0;
    with_forward_shape(dtype, math, depth, [&](auto zero, auto, auto columns) {
        using T = decltype(zero);
        bytes = 4 * ATTENTION_BLOCK * block_line<T, columns.value> * static_cast<int>(sizeof(T));
    });
    return bytes;
}

sdlf_status attention_forward_cuda(sdlf_calculator *base, const sdlf_operation *operation)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    attention_arguments p = attention_arguments_of(operation);
    sdlf_dtype dtype = operation->in[0].dtype;
    if (sdlf_tensor_count(&operation->out[0]) == 0) return SDLF_OK;
    if (attention_suits_wgmma(calculator, &p, dtype)) return attention_forward_wgmma(calculator, &p, dtype);
    int depth = attention_depth(operation), shared = attention_forward_shared(dtype, calculator->math, depth);
    dim3 blocks(static_cast<unsigned>(cuda_ceil_div(p.queries, ATTENTION_BLOCK)),
                static_cast<unsigned>(p.samples * p.heads));
    sdlf_status status = SDLF_OK;
    with_forward_shape(dtype, calculator->math, depth, [&](auto zero, auto mode, auto columns) {
        auto *kernel = attention_forward<decltype(zero), mode.value, columns.value>;
        status = allow_shared(kernel, shared);
        if (status == SDLF_OK) launch_cluster(calculator, kernel, blocks, dim3(ATTENTION_THREADS), shared, dim3(1), p);
    });
    return status == SDLF_OK ? cuda_check_launch("attention_forward") : status;
}
