/* The end of a small classifier's step in one launch: h = act(sum of a product's parts + bias), logits = h w^T + b, the loss with its
 * gradient, and the last layer's gemm_backward_sgd. Each by itself takes hardly longer than starting it.
 *
 * One cluster of up to 16 blocks. A block owns 4 LANES columns of h and the same of w; LANES neighbouring threads share a row, a
 * thread four of its columns, every LINES-th row up to ITEMS, with w's share of all UNITS in registers. Logits: each block's part of
 * the sums meets those of the others in shared memory; a block adds up every blocks-th row's, in order, and a thread computes its
 * loss; the gradient goes to all blocks. From it a thread makes dx of its numbers, and its share of w's gradient, which is added up
 * within a warp and then over the warps, in order, before w moves. The parts move once, 4 rows columns bytes each. */
#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/gemm/tall.h"
#include "calculators/cuda/lanes.cuh"
#include "calculators/cuda/rows/cross_entropy.cuh"
#include "calculators/cuda/sgd.cuh"
#include "calculators/cuda/together.h"

enum { THREADS = 512, WARPS = THREADS / WARP, MOST_BLOCKS = 16, MOST_ROWS = 64, PITCH = 16 /* of a row's logits */ };
enum { QUADS = PITCH / 4, ROW_WARPS = MOST_ROWS / WARP, MOST_PARTS = 8 /* that are on their way at once */ };

struct last_layers {
    cuda_row_parts from;
    const float *hidden_bias; /* may be NULL */
    float *h;
    float hidden_alpha;
    sdlf_activation hidden_activation;
    const float *bias; /* of the last layer's product; may be NULL */
    float *logits;
    float alpha;
    cross_entropy<float> loss;
    const float *rate;
    float *w, *v, *b, *bv, *dx; /* v, b, bv and dx may be NULL */
    sdlf_sgd_rule rule;
    sdlf_activation activation;
    int rows, columns, units;
};

template <int UNITS, int LANES> struct last_memory {
    float partial[MOST_ROWS][PITCH], dy[MOST_ROWS][PITCH]; /* others read and write these */
    float logits[MOST_ROWS][PITCH], gradient[MOST_ROWS][PITCH];
    double losses[MOST_BLOCKS][ROW_WARPS][4]; /* of the first block: row_sums of all */
    float sums[WARPS][UNITS * 4 * LANES];
};

/* ---- the others' shared memory ---- */

static __device__ __forceinline__ uint32_t address_in(const void *shared, int block)
{
    uint32_t other = 0;
#if __CUDA_ARCH__ >= 900
    uint32_t mine = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(block));
#else
    (void)shared;
    (void)block;
#endif
    return other;
}

static __device__ __forceinline__ void write_other(float *shared, int block, float4 four)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address_in(shared, block)), "f"(four.x),
                 "f"(four.y), "f"(four.z), "f"(four.w)
                 : "memory");
#else
    (void)four;
    (void)address_in(shared, block);
#endif
}

static __device__ __forceinline__ void write_other(double *shared, int block, double number)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(address_in(shared, block)), "d"(number) : "memory");
#else
    (void)number;
    (void)address_in(shared, block);
#endif
}

/* The same place's numbers of all blocks, added in order; on their way together. */
static __device__ __forceinline__ float4 add_all_blocks(const float *shared, int blocks)
{
    float4 other[MOST_BLOCKS], sum = {};
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS; k++) {
        if (k < blocks) other[k] = read_other(shared, k);
    }
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS; k++) {
        if (k < blocks) sum = plus(sum, other[k]);
    }
    return sum;
}

static __device__ __forceinline__ float dot(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + (a.z * b.z + a.w * b.w);
}

static __device__ __forceinline__ void add_scaled(float4 &to, float factor, float4 four)
{
    to.x += factor * four.x;
    to.y += factor * four.y;
    to.z += factor * four.z;
    to.w += factor * four.w;
}

/* ---- the steps ---- */

/* Four neighbours of h. */
static __device__ __forceinline__ float4 finish_hidden(const last_layers &l, int n, int i, float4 bias)
{
    const float *from = l.from.parts + i / 64 * l.from.block + n * l.from.line + i % 64;
    float4 sum = {};
    for (int first = 0; first < l.from.count; first += MOST_PARTS) {
        float4 part[MOST_PARTS];
#pragma unroll
        for (int k = 0; k < MOST_PARTS; k++) {
            if (first + k < l.from.count)
                part[k] = __ldcg(reinterpret_cast<const float4 *>(from + (first + k) * l.from.step));
        }
#pragma unroll
        for (int k = 0; k < MOST_PARTS; k++) {
            if (first + k < l.from.count) sum = plus(sum, part[k]);
        }
    }
    const float alpha = l.hidden_alpha;
    return make_float4(
        activate(l.hidden_activation, alpha * sum.x + bias.x), activate(l.hidden_activation, alpha * sum.y + bias.y),
        activate(l.hidden_activation, alpha * sum.z + bias.z), activate(l.hidden_activation, alpha * sum.w + bias.w));
}

/* The block's rows: logits, losses and the gradient, which all blocks get. */
template <int UNITS, int LANES>
static __device__ __forceinline__ void compute_losses(const last_layers &l, last_memory<UNITS, LANES> &m)
{
    const int blocks = gridDim.x, block = blockIdx.x, mine = (l.rows - block + blocks - 1) / blocks;
    for (int e = threadIdx.x; e < mine * QUADS; e += THREADS) {
        int k = e / QUADS, n = block + k * blocks, u = e % QUADS * 4;
        float4 sum = add_all_blocks(&m.partial[n][u], blocks);
        const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (u + i >= l.units) break;
            float logit = l.alpha * sums[i] + (l.bias != nullptr ? l.bias[u + i] : 0.0f);
            m.logits[k][u + i] = logit;
            l.logits[n * l.units + u + i] = logit;
        }
    }
    __syncthreads();
    const int k = threadIdx.x;
    if (k < (mine + WARP - 1) / WARP * WARP) {
        row_sums sums = {};
        if (k < mine) {
            int64_t n = block + k * blocks;
            cross_entropy<float> e = l.loss;
            e.logits = &m.logits[k][0] - n * e.classes;
            e.dlogits = &m.gradient[k][0] - n * e.classes;
            sums = row_of_thread<UNITS>(e, n);
        }
        sums = add_warp(sums);
        double *to = &m.losses[block][k / WARP][0];
        if (k % WARP == 0) {
            write_other(to, 0, sums.loss);
            write_other(to + 1, 0, sums.weighted);
            write_other(to + 2, 0, static_cast<double>(sums.correct));
            write_other(to + 3, 0, static_cast<double>(sums.counted));
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < mine * QUADS * blocks; e += THREADS) {
        int u = e % QUADS * 4, to = e / QUADS % blocks, row = e / QUADS / blocks, n = block + row * blocks;
        float4 four = *reinterpret_cast<const float4 *>(&m.gradient[row][u]);
        write_other(&m.dy[n][u], to, four);
        const float numbers[4] = {four.x, four.y, four.z, four.w};
        if (to != block) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (u + i < l.units) l.loss.dlogits[n * l.units + u + i] = numbers[i];
        }
    }
}

/* By one warp of the first block. */
template <int UNITS, int LANES>
static __device__ __forceinline__ void finish_loss(const last_layers &l, const last_memory<UNITS, LANES> &m)
{
    const int lane = threadIdx.x % WARP, blocks = gridDim.x;
    row_sums all = {};
    if (lane < blocks) {
        int mine = (l.rows - lane + blocks - 1) / blocks;
        for (int warp = 0; warp < (mine + WARP - 1) / WARP; warp++) {
            const double *from = m.losses[lane][warp];
            add(all, {from[0], from[1], static_cast<int64_t>(from[2]), static_cast<int64_t>(from[3])});
        }
    }
    all = add_warp(all);
    if (lane == 0) finish(l.loss, all, metrics_before(l.loss));
}

template <int UNITS, int LANES, int ITEMS>
static __global__ void __launch_bounds__(THREADS, 1) compute_last_layers(last_layers l)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    last_memory<UNITS, LANES> &m = *reinterpret_cast<last_memory<UNITS, LANES> *>(bytes);
    const int COLUMNS = 4 * LANES, LINES = THREADS / LANES, OWN = (UNITS * COLUMNS + THREADS - 1) / THREADS;
    const int lane = threadIdx.x % LANES, line = threadIdx.x / LANES, first = blockIdx.x * COLUMNS,
              i = first + 4 * lane;
    float4 w[UNITS], h[ITEMS], hidden_bias = {};
    float weight[OWN], speed[OWN], rate = *l.rate; /* of the weights that this thread moves */
    /* Nothing of these is written by the product that comes before, and all that stands before it has ended. */
#pragma unroll
    for (int u = 0; u < UNITS; u++)
        w[u] = u < l.units ? *reinterpret_cast<const float4 *>(l.w + u * l.columns + i) : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        int e = threadIdx.x + k * THREADS, u = e / COLUMNS, at = u * l.columns + first + e % COLUMNS;
        bool moves = u < l.units;
        weight[k] = moves ? l.w[at] : 0.0f;
        speed[k] = moves && l.v != nullptr ? l.v[at] : 0.0f;
    }
    if (l.hidden_bias != nullptr) hidden_bias = *reinterpret_cast<const float4 *>(l.hidden_bias + i);
    for (int e = threadIdx.x; e < MOST_ROWS * PITCH; e += THREADS) (&m.gradient[0][0])[e] = 0.0f;
    await_kernels();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int n = line + k * LINES;
        h[k] = n < l.rows ? finish_hidden(l, n, i, hidden_bias) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int n = line + k * LINES;
        float sums[PITCH];
#pragma unroll
        for (int u = 0; u < PITCH; u++) sums[u] = u < UNITS ? dot(h[k], w[u < UNITS ? u : 0]) : 0.0f;
        int u = add_lanes<LANES / 2, 1>(sums);
        if (n >= l.rows) continue;
        *reinterpret_cast<float4 *>(l.h + static_cast<int64_t>(n) * l.columns + i) = h[k];
#pragma unroll
        for (int j = 0; j < PITCH / LANES; j++) m.partial[n][u + j] = sums[j];
    }
    await_cluster();
    compute_losses(l, m);
    await_cluster();
    float4 g[UNITS] = {};
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int n = line + k * LINES;
        if (n >= l.rows) continue;
        float4 dx = {};
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            add_scaled(g[u], m.dy[n][u], h[k]);
            add_scaled(dx, m.dy[n][u], w[u]);
        }
        dx.x *= activation_slope(l.activation, h[k].x);
        dx.y *= activation_slope(l.activation, h[k].y);
        dx.z *= activation_slope(l.activation, h[k].z);
        dx.w *= activation_slope(l.activation, h[k].w);
        if (l.dx != nullptr) *reinterpret_cast<float4 *>(l.dx + static_cast<int64_t>(n) * l.columns + i) = dx;
    }
    const int LEFT = UNITS * LANES / WARP; /* quads of sums that a lane keeps */
    float numbers[4 * UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        numbers[4 * u] = g[u].x;
        numbers[4 * u + 1] = g[u].y;
        numbers[4 * u + 2] = g[u].z;
        numbers[4 * u + 3] = g[u].w;
    }
    int kept = add_lanes<WARP / 2, LANES>(numbers) / 4;
#pragma unroll
    for (int j = 0; j < LEFT; j++)
        *reinterpret_cast<float4 *>(&m.sums[threadIdx.x / WARP][(kept + j) * COLUMNS + 4 * lane]) =
            make_float4(numbers[4 * j], numbers[4 * j + 1], numbers[4 * j + 2], numbers[4 * j + 3]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        int e = threadIdx.x + k * THREADS, u = e / COLUMNS, at = u * l.columns + first + e % COLUMNS;
        if (u >= l.units) break;
        float sum = m.sums[0][e];
#pragma unroll
        for (int warp = 1; warp < WARPS; warp++) sum += m.sums[warp][e];
        move_at(&weight[k], l.v != nullptr ? &speed[k] : nullptr, sum, rate, l.rule, l.rule.decay);
        l.w[at] = weight[k];
        if (l.v != nullptr) l.v[at] = speed[k];
    }
    if (blockIdx.x != 0) return;
    const int u = threadIdx.x / WARP;
    if (u < l.units && l.b != nullptr) {
        float sum = 0;
        for (int n = threadIdx.x % WARP; n < l.rows; n += WARP) sum += m.dy[n][u];
        for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (threadIdx.x % WARP == 0)
            move_at(l.b + u, l.bv != nullptr ? l.bv + u : nullptr, sum, rate, l.rule, l.rule.bias_decay);
    }
    if (u == WARPS - 1) finish_loss(l, m);
}

/* ---- launching ---- */

/* Columns of a block: more blocks where the layer is small. */
static int columns_of(int64_t columns)
{
    return columns <= 4 * 4 * MOST_BLOCKS ? 4 * 4 : 4 * 16;
}

template <int UNITS, int LANES, int ITEMS>
static sdlf_status launch(const cuda_calculator *calculator, const last_layers *l, int *fitting)
{
    const auto kernel = compute_last_layers<UNITS, LANES, ITEMS>;
    const int shared = (int)sizeof(last_memory<UNITS, LANES>);
    const unsigned blocks = (unsigned)(l->columns / (4 * LANES));
    sdlf_status status = allow_shared(kernel, shared);
    if (status == SDLF_OK)
        status =
            cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters");
    if (status != SDLF_OK) return status;
    if (fitting == nullptr) {
        launch_cluster(calculator, kernel, dim3(blocks), dim3(THREADS), shared, dim3(blocks), *l);
        return cuda_check_launch("softmax_cross_entropy_forward");
    }
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = static_cast<size_t>(shared);
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (cudaOccupancyMaxActiveClusters(fitting, kernel, &config) == cudaSuccess) return SDLF_OK;
    cudaGetLastError(); /* no such cluster here */
    *fitting = 0;
    return SDLF_OK;
}

/* Launches it, or, where `fitting` is not NULL, says how many such clusters the device holds. */
static sdlf_status dispatch(const cuda_calculator *calculator, const last_layers *l, int *fitting)
{
    if (columns_of(l->columns) == 16) return launch<16, 4, 1>(calculator, l, fitting);
    if (l->units <= 10) {
        if (l->rows <= 32) return launch<10, 16, 1>(calculator, l, fitting);
        return launch<10, 16, 2>(calculator, l, fitting);
    }
    if (l->rows <= 32) return launch<16, 16, 1>(calculator, l, fitting);
    return launch<16, 16, 2>(calculator, l, fitting);
}

static last_layers last_layers_of(const cuda_last_layers *l)
{
    last_layers made = {};
    made.hidden_bias = optional<float>(l->hidden->in[2]);
    made.h = data_of<float>(l->hidden->out[0]);
    made.hidden_alpha = l->hidden->gemm.alpha;
    made.hidden_activation = l->hidden->gemm.activation;
    made.bias = optional<float>(l->product->in[2]);
    made.logits = data_of<float>(l->product->out[0]);
    made.alpha = l->product->gemm.alpha;
    made.loss = {.logits = made.logits,
                 .dloss = optional<float>(l->loss->in[2]),
                 .weights = optional<float>(l->loss->in[3]),
                 .labels = data_of<int32_t>(l->loss->in[1]),
                 .p = data_of<float>(l->loss->out[0]),
                 .loss = data_of<float>(l->loss->out[1]),
                 .dlogits = data_of<float>(l->loss->out[3]),
                 .metrics = optional<double>(l->loss->out[2]),
                 .rows = l->loss->in[0].shape.dim[0],
                 .classes = l->loss->in[0].shape.dim[1]};
    set_targets(made.loss, l->loss->cross_entropy.smoothing);
    made.rate = data_of<float>(l->backward->in[2]);
    made.w = data_of<float>(l->backward->out[0]);
    made.v = optional<float>(l->backward->out[1]);
    made.dx = optional<float>(l->backward->out[2]);
    made.b = optional<float>(l->backward->out[3]);
    made.bv = optional<float>(l->backward->out[4]);
    made.rule = l->backward->gemm_backward.sgd;
    made.activation = l->backward->gemm_backward.activation;
    made.rows = (int)l->loss->in[0].shape.dim[0];
    made.columns = (int)l->hidden->out[0].shape.dim[1];
    made.units = (int)l->loss->in[0].shape.dim[1];
    return made;
}

extern "C" bool cuda_last_layers_suit(const cuda_calculator *calculator, const cuda_last_layers *l)
{
    const sdlf_operation *hidden = l->hidden, *product = l->product;
    const int64_t rows = hidden->out[0].shape.dim[0], columns = hidden->out[0].shape.dim[1];
    if (!calculator->overlaps || l->loss->in[0].dtype != SDLF_FLOAT32) return false;
    if (rows > MOST_ROWS || l->loss->in[0].shape.dim[1] > PITCH || columns % 64 != 0 ||
        columns > columns_of(columns) * MOST_BLOCKS)
        return false;
    if (sdlf_tensor_present(&hidden->in[3]) || sdlf_tensor_present(&product->in[3]) || !product->gemm.transpose_b ||
        product->gemm.transpose_a || product->gemm.activation.function != SDLF_IDENTITY ||
        gemm_automatic_cuda(&calculator->base, hidden) != GEMM_FEW_ROWS || hidden->algorithm != GEMM_AUTO ||
        product->algorithm != GEMM_AUTO)
        return false;
    const last_layers made = last_layers_of(l);
    uintptr_t addresses = reinterpret_cast<uintptr_t>(made.h) | reinterpret_cast<uintptr_t>(made.w) |
                          reinterpret_cast<uintptr_t>(made.dx) | reinterpret_cast<uintptr_t>(made.hidden_bias);
    int fitting = 0;
    return addresses % 16 == 0 && dispatch(calculator, &made, &fitting) == SDLF_OK && fitting > 0;
}

extern "C" sdlf_status cuda_last_layers_run(sdlf_calculator *base, const cuda_last_layers *l,
                                            const cuda_row_parts *parts)
{
    last_layers made = last_layers_of(l);
    made.from = *parts;
    return dispatch(cuda_calculator_from(base), &made, nullptr);
}
