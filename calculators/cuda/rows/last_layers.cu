/* The end of a small classifier's step in one launch: h = act(sum of a product's parts + bias), logits = h w^T + b, the loss with its
 * gradient, and the last layer's gemm_backward_sgd. Each by itself takes hardly longer than starting it.
 *
 * One cluster of up to 16 blocks. A block owns 4 LANES columns of h and the same of w; LANES neighbouring threads share a row, a
 * thread four of its columns, every LINES-th row up to ITEMS, with w's share of all UNITS in registers. Logits: each block sends its
 * part of the sums to the block that owns the row, every blocks-th; that one adds them up in order, computes the loss, 16 lanes a row,
 * and sends the gradient to all blocks (rows/last_loss.cuh). From it a thread makes dx of its numbers, and its share of w's gradient, which is
 * added up within a warp and then over the warps, in order, before w moves. What no kernel that is under way writes is read
 * before the wait for the parts, and these are on their way together: 4 rows columns bytes each. */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/gemm/tall.h"
#include "calculators/cuda/rows/last_loss.cuh"
#include "calculators/cuda/rows/last_steps.cuh"

template <int UNITS, int LANES, int ITEMS>
static __global__ void __launch_bounds__(THREADS, 1) compute_last_layers(last_layers l)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    last_memory<UNITS, LANES> &m = *reinterpret_cast<last_memory<UNITS, LANES> *>(bytes);
    const int COLUMNS = 4 * LANES, LINES = THREADS / LANES, OWN = (UNITS * COLUMNS + THREADS - 1) / THREADS;
    const int lane = threadIdx.x % LANES, line = threadIdx.x / LANES, first = blockIdx.x * COLUMNS,
              i = first + 4 * lane;
    const bool finishes = blockIdx.x == 0 && threadIdx.x / WARP == WARPS - 1;
    float4 w[UNITS], h[ITEMS] = {}, hidden_bias = {};
    float weight[OWN], speed[OWN], rate = *l.rate; /* of the weights that this thread moves */
    arrive_at_cluster();                           /* each block has begun before others write to it */
    /* Nothing of these is written by the product that comes before, and all that stands before it has ended. */
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        int e = threadIdx.x + k * THREADS, u = e / COLUMNS, at = u * l.columns + first + e % COLUMNS;
        weight[k] = u < l.units ? l.w[at] : 0.0f;
        speed[k] = u < l.units && l.v != nullptr ? l.v[at] : 0.0f;
    }
    if (l.hidden_bias != nullptr) hidden_bias = *reinterpret_cast<const float4 *>(l.hidden_bias + i);
    const last_element element = read_element(l);
    const double3 before = finishes ? metrics_before(l.loss) : make_double3(0, 0, 0);
    await_kernels();
    finish_hidden(h, l, line, LINES, i, hidden_bias);
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        int e = threadIdx.x + k * THREADS;
        if (e < UNITS * COLUMNS) m.w[e / COLUMNS][e % COLUMNS] = weight[k];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < UNITS; u++) w[u] = *reinterpret_cast<const float4 *>(&m.w[u][4 * lane]);
    wait_for_cluster();
    send_logits(l, m, h, w, line, LINES);
    __syncwarp();
    arrive_at_cluster();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int64_t n = line + k * LINES;
        if (n < l.rows) *reinterpret_cast<float4 *>(l.h + n * l.columns + i) = h[k];
    }
    __syncwarp();
    wait_for_cluster();
    compute_losses(l, m, element);
    __syncwarp();
    wait_for_cluster();
    arrive_at_cluster(); /* all losses are with the first block */
    go_back(l, m, h, w, line, LINES, lane, i);
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
    __syncwarp();
    const int u =
        blockIdx.x + (threadIdx.x / WARP - WARPS / 2) * gridDim.x; /* each block some, by warps that have few weights */
    if (l.b != nullptr && u >= static_cast<int>(blockIdx.x) && u < l.units) move_bias(l, m, u, rate);
    __syncwarp();
    wait_for_cluster();
    if (finishes) finish_loss(l, m, before);
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
        !cuda_gemm_may_leave_parts(calculator, hidden) || hidden->algorithm != GEMM_AUTO ||
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
