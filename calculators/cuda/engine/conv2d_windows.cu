/* SPDX-License-Identifier: MIT */
/* The kernel of engine/conv2d_windows.cuh, and its launch. */
#include "calculators/cuda/engine/conv2d_windows.cuh"

#include "calculators/cuda/engine/image_epilogue.cuh"

enum {
    STAGES = 3,
    BN = 64,
    RUN = ENGINE_WINDOWS,
    RUNS = 2,
    STEP_BYTES = 16,
    CONSUMERS = 256,
    THREADS = CONSUMERS + 32
};

/* What a run's windows cover of a line. */
static __host__ __device__ __forceinline__ int piece_bytes(const windows_params &p)
{
    return (RUN - 1) * STEP_BYTES + p.row_bytes;
}

static __host__ __device__ __forceinline__ int stage_bytes(const windows_params &p)
{
    return RUNS * p.taps * piece_bytes(p);
}

static __host__ __device__ __forceinline__ int weight_bytes(const windows_params &p)
{
    return p.boxes * BN * K_BYTES;
}

struct windows_barriers {
    uint64_t weights, full[STAGES], empty[STAGES];
};

#ifdef SDLF_HAS_WGMMA

/* 8 rows of 16 bytes, 16 bytes apart, and the next 8 behind them; the second half of a product's 32 bytes of K begins a row later. */
static __device__ __forceinline__ uint64_t windows_descriptor(uint32_t address)
{
    return static_cast<uint64_t>(address >> 4 & 0x3fff) | static_cast<uint64_t>(STEP_BYTES >> 4) << 16 |
           static_cast<uint64_t>(8 * STEP_BYTES >> 4) << 32;
}

/* Where a run is: of what image, row, and windows of it. */
struct run_place {
    int image, row, first;

    __device__ __forceinline__ run_place(const windows_params &p, int run)
    {
        int at;
        const int line = divide(run, p.runs, at);
        first = at * RUN;
        image = divide(line, p.height, row);
    }
};

/* One thread: the weights, and the pieces of lines of all of the block's runs. */
static __device__ __forceinline__ void load_all(const windows_params &p, windows_barriers &bar, uint32_t weights,
                                                uint32_t ring, int slot, int column)
{
    const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&bar.weights));
    tma_expect(barrier, weight_bytes(p));
    for (int i = 0; i < p.boxes; i++)
        tma_load_2d(weights + i * BN * K_BYTES, &p.image.weights, barrier, i * p.image.chunks, column * BN);
    const int piece = piece_bytes(p);
    int stage = 0, parity = 1; /* the first round finds every stage empty */
    for (int tile = slot; tile < p.image.row_tiles; tile += p.image.slots) {
        const int runs = min(RUNS, p.all_runs - tile * RUNS);
        uint64_t *full = &bar.full[stage];
        barrier_await(&bar.empty[stage], parity);
        tma_expect(static_cast<uint32_t>(__cvta_generic_to_shared(full)), runs * p.taps * piece);
        uint32_t to = ring + stage * stage_bytes(p);
        for (int i = 0; i < runs; i++) {
            const run_place at(p, tile * RUNS + i);
            const char *from = p.x + (static_cast<int64_t>(at.image) * p.lines + at.row * p.stride) * p.line_bytes +
                               at.first * STEP_BYTES;
            for (int r = 0; r < p.taps; r++, to += piece)
                copy_bulk_to(to, from + r * p.dilation * p.line_bytes, piece, full);
        }
        if (++stage < STAGES) continue;
        stage = 0;
        parity ^= 1;
    }
}

/* Windows of the tile that are there. */
static __device__ __forceinline__ int count_windows(const windows_params &p, int tile)
{
    int count = 0;
    for (int i = 0; i < RUNS && tile * RUNS + i < p.all_runs; i++)
        count += min(RUN, p.image.width - run_place(p, tile * RUNS + i).first);
    return count;
}

#endif

template <typename T, image_mode MODE>
static __global__ void __launch_bounds__(THREADS, 2) windows_kernel(const __grid_constant__ windows_params p)
{
#ifdef SDLF_HAS_WGMMA
    extern __shared__ uint8_t unaligned[];
    __shared__ windows_barriers bar;
    __shared__ channel_numbers<BN> numbers;
    if (threadIdx.x == 0) {
        barrier_init(&bar.weights, 1);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&bar.full[s], 1);
            barrier_init(&bar.empty[s], CONSUMERS / 32);
        }
        barriers_made();
    }
    __syncthreads();
    await_kernels();
    const int warp = static_cast<int>(threadIdx.x) / 32, group = warp / 4;
    const int slot = static_cast<int>(blockIdx.x) / p.image.column_tiles;
    const int column = static_cast<int>(blockIdx.x) - slot * p.image.column_tiles;
    const uint32_t weights = ring_start(unaligned), ring = weights + weight_bytes(p);
    if (warp == CONSUMERS / 32) {
        if (threadIdx.x % 32 == 0) load_all(p, bar, weights, ring, slot, column);
        return;
    }
    image_epilogue<T, BN, MODE> epilogue(p.image, numbers, column, 0);
    barrier_await(&bar.weights, 0);
    const int steps = p.row_bytes / 32;
    int stage = 0, parity = 0;
    float c[BN / 8][4];
    for (int tile = slot; tile < p.image.row_tiles; tile += p.image.slots) {
#pragma unroll
        for (int j = 0; j < BN / 8; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
        uint32_t line = ring + stage * stage_bytes(p) + group * p.taps * piece_bytes(p);
        barrier_await(&bar.full[stage], parity);
        for (int part = 0, k = 0; part < p.taps * steps; part++) {
            wgmma_begin();
            wgmma16<T, BN, 0, 0>::run(
                c, windows_descriptor(line),
                operand_descriptor<T, K_BYTES / static_cast<int>(sizeof(T)), 0>(weights, BN, 0, part));
            wgmma_commit();
            wgmma_await<1>();
            line += 32;
            if (++k < steps) continue;
            k = 0;
            line += piece_bytes(p) - p.row_bytes;
        }
        wgmma_await<0>();
        if (threadIdx.x % 32 == 0) barrier_arrive(&bar.empty[stage]);
        epilogue.finish(p.image, p.image.of[0], tile * RUNS * RUN, count_windows(p, tile), c, nullptr);
        if (++stage < STAGES) continue;
        stage = 0;
        parity ^= 1;
    }
    epilogue.leave(p.image, slot);
#endif
}

template <typename T> static auto kernel_of(const image_params &p) -> void (*)(windows_params)
{
    if (p.parts != nullptr) return windows_kernel<T, SUM_VALUES>;
    if (p.activation.function == SDLF_IDENTITY && p.bias == nullptr) return windows_kernel<T, ADD_RESIDUAL>;
    return is_line_activation(p.activation) ? windows_kernel<T, LINE_ACTIVATION> : windows_kernel<T, ANY_ACTIVATION>;
}

static void describe_image(windows_params *p, const engine_conv2d *packed)
{
    const int64_t runs = cuda_ceil_div(packed->q, RUN);
    image_class &of = p->image.of[0];
    for (int i = 0; i < 2; i++) {
        of.start[i] = 0;
        of.spread[i] = 1;
    }
    of.count[0] = p->height = divider<int32_t>(packed->p);
    of.count[1] = divider<int32_t>(runs * RUN);
    of.pixels = static_cast<int>(packed->n * packed->p * runs * RUN);
    p->runs = divider<int32_t>(runs);
    p->all_runs = static_cast<int>(packed->n * packed->p * runs);
}

sdlf_status engine_forward_windows(const cuda_calculator *calculator, const engine_conv2d *packed, image_params *params)
{
    const int size = static_cast<int>(sdlf_dtype_size(packed->dtype));
    windows_params p = {};
    p.image = *params;
    describe_image(&p, packed);
    p.x = static_cast<const char *>(packed->x);
    p.line_bytes = packed->row_step * size;
    p.lines = static_cast<int>(packed->h);
    p.stride = packed->stride[0];
    p.dilation = packed->dilation[0];
    p.taps = packed->r;
    p.row_bytes = static_cast<int>(packed->c) * size;
    p.boxes = static_cast<int>(cuda_ceil_div(p.taps * p.row_bytes, K_BYTES));
    p.image.chunks = K_BYTES / size; /* elements of a box */
    p.image.cluster = 1;
    p.image.column_tiles = static_cast<int>(cuda_ceil_div(packed->k, BN));
    p.image.row_tiles = static_cast<int>(cuda_ceil_div(p.all_runs, RUNS));
    p.image.slots = engine_slots(calculator, p.image.row_tiles, p.image.column_tiles);
    if (packed->moments != nullptr) packed->moments->count = p.image.slots;
    const tiled_shape weights = {packed->weights, 2, {packed->c * packed->r, packed->k}, {p.image.chunks, BN}};
    if (!make_tiled_map(&p.image.weights, packed->dtype, weights))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d_forward: the driver refuses a tensor map");
    const int shared = weight_bytes(p) + STAGES * stage_bytes(p) + 1024;    /* 1024: to align it */
    const int own = sizeof(windows_barriers) + sizeof(channel_numbers<BN>); /* which counts, too */
    sdlf_status status = SDLF_OK;
    with_storage(packed->dtype, [&](auto zero) {
        auto *kernel = kernel_of<decltype(zero)>(p.image);
        status = allow_shared(kernel, shared + own);
        if (status == SDLF_OK)
            launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(p.image.slots * p.image.column_tiles)),
                              dim3(THREADS), shared, p);
    });
    return status == SDLF_OK ? cuda_check_launch("conv2d_forward") : status;
}
