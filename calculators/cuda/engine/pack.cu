/* Packing and unfolding (engine/pack.h). A thread 8 elements of the copy; the copy is written once, and what is read stays in caches. */
#include "calculators/cuda/engine/pack.h"

#include "calculators/cuda/divider.cuh"

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

/* ---- unfolding ---- */

struct unfolding {
    int height, width, channels, taps; /* of x; R S */
    int stride[2], padding[2], dilation[2];
    divider<int32_t> rows, columns, filter_width, by_channels; /* P, Q, S, C */
};

static __global__ void unfold_pixels(const uint16_t *x, uint4 *to, int64_t count, divider<int32_t> across,
                                     const unfolding g)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int vector, p, q, s, c;
        const int n = divide(divide(divide(static_cast<int32_t>(i), across, vector), g.columns, q), g.rows, p);
        alignas(16) uint16_t values[8];
#pragma unroll
        for (int v = 0; v < 8; v++) {
            const int tap = divide(vector * 8 + v, g.by_channels, c), r = divide(tap, g.filter_width, s);
            const int h = p * g.stride[0] + r * g.dilation[0] - g.padding[0];
            const int w = q * g.stride[1] + s * g.dilation[1] - g.padding[1];
            const bool inside = tap < g.taps && h >= 0 && h < g.height && w >= 0 && w < g.width;
            values[v] =
                inside ? x[((static_cast<int64_t>(n) * g.height + h) * g.width + w) * g.channels + c] : uint16_t(0);
        }
        to[i] = *reinterpret_cast<const uint4 *>(values);
    }
}

engine_conv2d engine_unfolded(const engine_conv2d *conv)
{
    engine_conv2d made = *conv;
    made.h = conv->p;
    made.w = conv->q;
    made.c = conv->c * conv->r * conv->s;
    made.r = made.s = made.stride[0] = made.stride[1] = made.dilation[0] = made.dilation[1] = 1;
    made.padding[0] = made.padding[1] = 0;
    return made;
}

int64_t engine_unfold_bytes(const engine_conv2d *conv)
{
    const int64_t row = engine_packed_channels(conv->c * conv->r * conv->s);
    return (conv->n * conv->p * conv->q * row * 2 + 63) / 64 * 64;
}

sdlf_status engine_unfold(const cuda_calculator *calculator, const engine_conv2d *conv, void *to)
{
    const int64_t across = engine_packed_channels(conv->c * conv->r * conv->s) / 8;
    const int64_t count = conv->n * conv->p * conv->q * across;
    unfolding g = {};
    g.height = static_cast<int>(conv->h);
    g.width = static_cast<int>(conv->w);
    g.channels = static_cast<int>(conv->c);
    g.taps = conv->r * conv->s;
    for (int i = 0; i < 2; i++) {
        g.stride[i] = conv->stride[i];
        g.padding[i] = conv->padding[i];
        g.dilation[i] = conv->dilation[i];
    }
    g.rows = divider<int32_t>(conv->p);
    g.columns = divider<int32_t>(conv->q);
    g.filter_width = divider<int32_t>(conv->s);
    g.by_channels = divider<int32_t>(conv->c);
    launch_overlapped(calculator, unfold_pixels, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                      static_cast<const uint16_t *>(conv->x), static_cast<uint4 *>(to), count, divider<int32_t>(across),
                      g);
    return cuda_check_launch("unfolding of an image");
}
