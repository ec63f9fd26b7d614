/* SPDX-License-Identifier: MIT */
/* Direct convolution: what it supports, and the packing of its images and filters. See direct.h. */
#include "calculators/cpu/kernels/direct.h"
#include "calculators/cpu/kernels/interleave.h"

/* Maximum elements of a packed image, which shares the second-level cache with filters and outputs. */
enum { MAXIMUM_IMAGE = 1 << 17 };

bool direct_takes_cpu(const convolution *v)
{
    if (v->groups != 1 || v->stride[0] != 1 || v->stride[1] != 1 || v->dilation[0] != 1 || v->dilation[1] != 1)
        return false;
    int64_t side[2] = {v->r, v->s}, input[2] = {v->h, v->w}, output[2] = {v->p, v->q};
    for (int i = 0; i < 2; i++) { /* padding before and after, less than the window */
        int64_t after = output[i] - input[i] + side[i] - 1 - v->before[i];
        if (v->before[i] >= side[i] || after >= side[i]) return false;
    }
    int64_t padded = (v->h + v->r) * (v->w + v->s);
    return padded <= MAXIMUM_IMAGE && padded * cpu_max(v->c, cpu_round_up(v->k, LANES)) <= MAXIMUM_IMAGE &&
           v->k * v->taps <= MAXIMUM_IMAGE;
}

/* Vectors of filters should be well filled, and the loop along a window's row should not be too short. */
bool direct_pays_cpu(const convolution *v)
{
    return 2 * v->k >= cpu_round_up(v->k, LANES) && v->taps >= 8;
}

bool direct_pays_forward_cpu(const convolution *v)
{
    bool small = v->n * v->p_q <= 1024; /* im2col would take longer than it saves */
    return v->r_s > 1 && ((small && v->taps >= 25) || (v->taps >= 18 && direct_pays_cpu(v)));
}

direct_image direct_input_image_cpu(const convolution *v)
{
    return (direct_image){.channels = v->c,
                          .height = v->p + v->r - 1,
                          .width = v->q + v->s - 1,
                          .top = v->before[0],
                          .left = v->before[1]};
}

direct_image direct_gradient_image_cpu(const convolution *v)
{
    return (direct_image){.channels = cpu_round_up(v->k, LANES),
                          .height = v->h + v->r - 1,
                          .width = v->w + v->s - 1,
                          .top = v->r - 1 - v->before[0],
                          .left = v->s - 1 - v->before[1]};
}

static direct_filter make_filter(int64_t channels, int64_t filters, const convolution *v, const direct_image *image)
{
    return (direct_filter){.channels = channels,
                           .filters = filters,
                           .padded_filters = cpu_round_up(filters, LANES),
                           .r = v->r,
                           .run = v->s * channels,
                           .row = image->width * image->channels};
}

direct_filter direct_forward_filter_cpu(const convolution *v)
{
    direct_image image = direct_input_image_cpu(v);
    return make_filter(v->c, v->k, v, &image);
}

direct_filter direct_backward_filter_cpu(const convolution *v)
{
    direct_image image = direct_gradient_image_cpu(v);
    return make_filter(image.channels, v->c, v, &image);
}

int64_t direct_filter_size_cpu(const direct_filter *filter)
{
    return filter->r * filter->run * filter->padded_filters;
}

/* ---- packing ---- */

/* The position of filter f; its taps are `width` elements apart: blocks of DIRECT_VECTORS vectors, the last narrower. */
static element *packed_filter(element *packed, const direct_filter *filter, int64_t f, int64_t *width)
{
    int64_t block = DIRECT_VECTORS * LANES, first = f / block * block, taps = filter->r * filter->run;
    *width = cpu_min(block, filter->padded_filters - first);
    return packed + first * taps + f - first;
}

typedef struct packing {
    element *packed;
    const element *w;
    const convolution *v;
    direct_filter filter;
} packing;

/* A block of filters: transposes LANES of them and as many taps at a time, (c,r,s) in w and (r,s,c) here. */
static void pack_block(void *argument, int64_t index, int thread)
{
    const packing *p = argument;
    const convolution *v = p->v;
    int64_t first = index * LANES, count = cpu_min(LANES, v->k - first), width;
    element *to = packed_filter(p->packed, &p->filter, first, &width);
    (void)thread;
    for (int64_t tap = 0; tap < v->taps; tap += LANES) {
        element block[LANES * LANES] = {0};
        int64_t some = cpu_min(LANES, v->taps - tap);
        const element *from = p->w + first * v->taps + tap;
        if (count == LANES && some == LANES)
            transpose_block(block, LANES, from, v->taps);
        else
            transpose(block, LANES, from, v->taps, count, some);
        int64_t c = tap / v->r_s, i = tap - c * v->r_s;
        for (int64_t j = 0; j < some; j++) {
            store(to + (i * v->c + c) * width, load(block + j * LANES));
            if (++i == v->r_s) i = 0, c++;
        }
    }
}

void direct_pack_forward_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w)
{
    packing p = {packed, w, v, direct_forward_filter_cpu(v)};
    cpu_parallel(cpu, cpu_divide_up(v->k, LANES), v->k * v->taps, pack_block, &p);
}

void direct_pack_backward_cpu(element *packed, const convolution *v, const element *w)
{
    direct_filter filter = direct_backward_filter_cpu(v);
    memset(packed, 0, (size_t)direct_filter_size_cpu(&filter) * sizeof *packed);
    for (int64_t c = 0; c < v->c; c++) {
        int64_t width;
        element *to = packed_filter(packed, &filter, c, &width);
        for (int64_t k = 0; k < v->k; k++) {
            const element *from = w + (k * v->c + c) * v->r_s;
            for (int64_t i = 0; i < v->r_s; i++) to[((v->r_s - 1 - i) * filter.channels + k) * width] = from[i];
        }
    }
}

void direct_load_rows_cpu(element *to, const direct_image *image, int64_t first, const element *x, int64_t channels,
                          int64_t h, int64_t w, element *flat)
{
    int64_t from = cpu_max(first - image->top, 0), rows = cpu_min(first + image->height - image->top, h) - from;
    memset(to, 0, (size_t)(image->height * image->width * image->channels) * sizeof *to);
    x += from * w;
    if (channels > 1 && rows > 0) {
        transpose(flat, channels, x, h * w, channels, rows * w);
        x = flat;
    }
    for (int64_t i = 0; i < rows; i++) {
        element *row = to + ((from + i + image->top - first) * image->width + image->left) * image->channels;
        if (channels == image->channels) {
            memcpy(row, x + i * w * channels, (size_t)(w * channels) * sizeof *row);
        } else {
            for (int64_t j = 0; j < w; j++) {
                memcpy(row + j * image->channels, x + (i * w + j) * channels, (size_t)channels * sizeof *row);
            }
        }
    }
}

void direct_load_cpu(element *to, const direct_image *image, const element *x, int64_t channels, int64_t h, int64_t w,
                     element *flat)
{
    direct_load_rows_cpu(to, image, 0, x, channels, h, w, flat);
}
