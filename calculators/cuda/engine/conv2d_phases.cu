/* SPDX-License-Identifier: MIT */
/* The classes of the output's pixels in fprop and dgrad, and the maps by which TMA reads the windows of each (engine/image_params.cuh). */
#include "calculators/cuda/engine/image_params.cuh"

void engine_forward_phase(const engine_conv2d *conv, dgrad_phase *of)
{
    const int64_t out[2] = {conv->p, conv->q};
    const int size[2] = {conv->r, conv->s};
    for (int i = 0; i < 2; i++) {
        of->taps[i] = size[i];
        of->tap_offset[i] = conv->dilation[i];
        of->first[i] = 0;
        of->step[i] = 1;
        of->lower[i] = -conv->padding[i];
        of->stride[i] = conv->stride[i];
        of->count[i] = divider<int32_t>(out[i]);
        of->start[i] = 0;
        of->spread[i] = 1;
    }
    of->pixels = static_cast<int>(conv->n * conv->p * conv->q);
}

/* dx pixel at + stride i reads dy at pixel i + (at + padding - r) / stride for every r for which this is an integer. */
void engine_backward_phase(const engine_conv2d *conv, const int at[2], dgrad_phase *of)
{
    const int64_t in[2] = {conv->h, conv->w};
    const int size[2] = {conv->r, conv->s};
    int64_t pixels = conv->n;
    for (int i = 0; i < 2; i++) {
        const int stride = conv->stride[i], first = (at[i] + conv->padding[i]) % stride;
        const int64_t count = cuda_ceil_div(in[i] - at[i], stride);
        of->taps[i] = first < size[i] ? static_cast<int>(cuda_ceil_div(size[i] - first, stride)) : 0;
        const int last = of->taps[i] > 0 ? of->taps[i] - 1 : 0;
        of->tap_offset[i] = conv->dilation[i];
        of->first[i] = first + stride * last;
        of->step[i] = -stride;
        of->lower[i] = (at[i] + conv->padding[i] - first) / stride - last * conv->dilation[i];
        of->stride[i] = 1;
        of->count[i] = divider<int32_t>(count);
        of->start[i] = at[i];
        of->spread[i] = stride;
        pixels *= count;
    }
    of->pixels = static_cast<int>(pixels);
}

bool engine_map_windows(const engine_conv2d *conv, bool backward, int64_t channels, int chunk, dgrad_phase *of)
{
    im2col_shape image = {conv->x, conv->n, conv->h, conv->w, channels, {}, {}, {}, conv->pixel_step, conv->row_step};
    if (backward) image = {conv->y, conv->n, conv->p, conv->q, channels, {}, {}, {}, 0, 0};
    const int64_t size[2] = {image.height, image.width};
    for (int i = 0; i < 2; i++) {
        const int64_t last = static_cast<int64_t>(of->count[i].number - 1) * of->stride[i];
        image.lower[i] = of->lower[i];
        image.upper[i] = static_cast<int>(last + of->lower[i] - (size[i] - 1));
        image.stride[i] = of->stride[i];
    }
    return make_im2col_map(&of->read, conv->dtype, image, chunk, 128);
}
