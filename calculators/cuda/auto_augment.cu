/* SPDX-License-Identifier: MIT */
/* TrivialAugment and RandAugment of the images that a gather_batch picks, in its workspace (framework/operations/changed_pictures.h). The
 * arithmetic is that of framework/operations/auto_augment.h, so all calculators produce the same bits.
 *
 * One block per image, whose augmentation steps alternate between two buffers of the workspace; threads stride over the pixels. Sums and
 * counts are integers, so the order of addition does not matter. A step reads and writes one byte per value. */
#include "calculators/augmentation.h"
#include "calculators/cuda/kernels.cuh"

namespace
{

enum { THREADS = 512, VALUES = 256 };

struct changing {
    sdlf_augment_step step;
    unsigned long long sum;
    uint32_t count[VALUES];
    uint8_t table[VALUES];
};

__device__ void move(uint8_t *to, const sdlf_augment_picture &p, const sdlf_augment_step &step)
{
    const int64_t area = p.height * p.width;
    for (int64_t i = threadIdx.x; i < area; i += blockDim.x) {
        const int64_t from = sdlf_augment_source(&step, i / p.width, i % p.width, p.height, p.width);
        for (int64_t c = 0; c < p.channels; c++) to[c * area + i] = from >= 0 ? p.pixels[c * area + from] : 0;
    }
}

__device__ void blend(uint8_t *to, const sdlf_augment_picture &p, changing &shared)
{
    const int64_t area = p.height * p.width;
    if (shared.step.operation == SDLF_AUGMENT_CONTRAST) {
        if (threadIdx.x == 0) shared.sum = 0;
        __syncthreads();
        unsigned long long sum = 0;
        for (int64_t i = threadIdx.x; i < area; i += blockDim.x) sum += sdlf_augment_byte(sdlf_augment_grey(&p, i));
        atomicAdd(&shared.sum, sum);
        __syncthreads();
        if (threadIdx.x == 0) shared.step.mean = sdlf_augment_mean(shared.sum, area);
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < area; i += blockDim.x)
        for (int64_t c = 0; c < p.channels; c++)
            to[c * area + i] = sdlf_augment_blend(&shared.step, &p, c, i / p.width, i % p.width);
}

__device__ void look_up(uint8_t *to, const sdlf_augment_picture &p, changing &shared)
{
    const int64_t area = p.height * p.width;
    for (int64_t c = 0; c < p.channels; c++) {
        const uint8_t *from = p.pixels + c * area;
        for (int v = static_cast<int>(threadIdx.x); v < VALUES; v += static_cast<int>(blockDim.x)) {
            shared.count[v] = 0;
            shared.table[v] = sdlf_augment_value(&shared.step, v);
        }
        __syncthreads();
        if (shared.step.operation > SDLF_AUGMENT_SOLARIZE) {
            for (int64_t i = threadIdx.x; i < area; i += blockDim.x) atomicAdd(&shared.count[from[i]], 1u);
            __syncthreads();
            if (threadIdx.x == 0) sdlf_augment_stretch(&shared.step, shared.table, shared.count, area);
            __syncthreads();
        }
        for (int64_t i = threadIdx.x; i < area; i += blockDim.x) to[c * area + i] = shared.table[from[i]];
        __syncthreads();
    }
}

/* The last step writes to `pictures`, the one before to `scratch`, and so on. */
__global__ void auto_augment(const uint8_t *x, const int32_t *index, const int64_t *epoch, const int32_t *number,
                             uint8_t *pictures, uint8_t *scratch, int32_t *places, int32_t *numbers,
                             sdlf_augment_picture shape, sdlf_auto_augment policy, uint64_t seed)
{
    __shared__ changing shared;
    wait_and_launch_dependent_grids();
    const int64_t n = blockIdx.x, image = number != NULL ? number[index[n]] : index[n];
    const int64_t size = shape.channels * shape.height * shape.width;
    const int steps = sdlf_auto_augment_steps(&policy);
    sdlf_augment_picture from = shape;
    from.pixels = x + index[n] * size;
    if (threadIdx.x == 0) {
        places[n] = static_cast<int32_t>(n);
        numbers[n] = static_cast<int32_t>(image);
    }
    for (int i = 0; i < steps; i++) {
        uint8_t *to = ((steps - i) % 2 == 1 ? pictures : scratch) + n * size;
        if (threadIdx.x == 0)
            shared.step = sdlf_auto_augment_draw(&policy, seed, image, *epoch, i, shape.height, shape.width);
        __syncthreads();
        if (shared.step.operation <= SDLF_AUGMENT_ROTATE)
            move(to, from, shared.step);
        else if (shared.step.operation <= SDLF_AUGMENT_SHARPNESS)
            blend(to, from, shared);
        else
            look_up(to, from, shared);
        __syncthreads();
        from.pixels = to;
    }
}

} // namespace

extern "C" sdlf_status cuda_auto_augment(sdlf_calculator *base, const sdlf_operation *gather)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_changed_pictures at = sdlf_changed_layout(gather);
    const sdlf_tensor &x = gather->in[0];
    const sdlf_augment_picture shape = {NULL, x.shape.dim[1], x.shape.dim[2], x.shape.dim[3]};
    char *room = static_cast<char *>(gather->workspace.data);
    launch_overlapped(calculator, auto_augment, static_cast<unsigned>(gather->out[0].shape.dim[0]), THREADS, 0,
                      data_of<uint8_t>(x), data_of<int32_t>(gather->in[1]), data_of<int64_t>(gather->in[2]),
                      data_of<int32_t>(gather->in[3]), reinterpret_cast<uint8_t *>(room + at.pictures),
                      reinterpret_cast<uint8_t *>(room + at.scratch), reinterpret_cast<int32_t *>(room + at.places),
                      reinterpret_cast<int32_t *>(room + at.numbers), shape, gather->gather.automatic,
                      gather->gather.augment.seed);
    return cuda_check_launch("auto_augment");
}
