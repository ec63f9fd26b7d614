/* Packing rows of channels (engine/pack.h). A thread 8 elements of the copy; moves 2 (C + ceil8(C)) bytes a row. */
#include "calculators/cuda/engine/pack.h"

#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

static __global__ void pack_rows(const uint16_t *from, uint4 *to, int64_t count, int channels, int across)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t row = i / across;
        const int first = static_cast<int>(i - row * across) * 8;
        alignas(16) uint16_t values[8];
        for (int v = 0; v < 8; v++) values[v] = first + v < channels ? from[row * channels + first + v] : uint16_t(0);
        to[i] = *reinterpret_cast<const uint4 *>(values);
    }
}

sdlf_status engine_pack(const cuda_calculator *calculator, void **data, void *to, int64_t channels, int64_t rows)
{
    if (channels % 8 == 0) return SDLF_OK;
    const int across = static_cast<int>(engine_packed_channels(channels) / 8);
    launch_overlapped(calculator, pack_rows, cuda_blocks(calculator, rows * across, THREADS), THREADS, 0,
                      static_cast<const uint16_t *>(*data), static_cast<uint4 *>(to), rows * across,
                      static_cast<int>(channels), across);
    *data = to;
    return cuda_check_launch("packing of channels");
}
