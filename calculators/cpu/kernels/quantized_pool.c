/* SPDX-License-Identifier: MIT */
/* quantized_pool2d. Contract: <sdlf/operations/quantization.h>. For NHWC images, a window is reduced position by position, a vector
 * of channels at a time; a task computes one output row. Other layouts are processed element by element. Moves x and y once. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized.h"

typedef uint8_t many __attribute__((vector_size(SDLF_VECTOR_BYTES)));

typedef struct context {
    const sdlf_operation *operation;
    quantised from;
    rounding to;
    bool last;     /* x and y are NHWC */
    bool as_it_is; /* max-pooling without rescaling or clamping */
} context;

/* Positions first .. last - 1 of a window that lie inside, and the index of position 0. */
typedef struct span {
    int64_t start, first, last;
} span;

static span span_of(const sdlf_window2d *window, int axis, int64_t index, int64_t size)
{
    int64_t dilation = window->dilation[axis], start = index * window->stride[axis] - window->padding_before[axis];
    return (span){.start = start,
                  .first = start >= 0 ? 0 : cpu_divide_up(-start, dilation),
                  .last = start >= size ? 0 : cpu_min(window->size[axis], cpu_divide_up(size - start, dilation))};
}

/* One pixel's window: position (0, 0) is `offset` bytes into the image, or before it; steps are in bytes. */
typedef struct window_at {
    const uint8_t *image;
    int64_t offset;
    span rows, columns;
    int64_t down, right;
} window_at;

static vector largest(const window_at *at, int64_t c, int64_t count, quantised from)
{
    bytes best = {0};
    for (int64_t r = at->rows.first; r < at->rows.last; r++) {
        for (int64_t s = at->columns.first; s < at->columns.last; s++) {
            bytes x = load_bytes(at->image + (at->offset + r * at->down + s * at->right + c), count) ^ from.flip;
            bytes larger = (bytes)(x > best);
            best = (x & larger) | (best & ~larger);
        }
    }
    return differences(best ^ from.flip, from);
}

static vector mean(const window_at *at, int64_t c, int64_t count, quantised from, float scale)
{
    ints sum = {0};
    for (int64_t r = at->rows.first; r < at->rows.last; r++) {
        for (int64_t s = at->columns.first; s < at->columns.last; s++) {
            bytes x = load_bytes(at->image + (at->offset + r * at->down + s * at->right + c), count) ^ from.flip;
            sum += widen_bytes(x) - from.zero;
        }
    }
    return __builtin_convertvector(sum, vector) * scale;
}

/* The maximum, for as many channels as a vector has bytes. */
static void largest_of_many(const window_at *at, uint8_t *y, int64_t c, uint8_t flip)
{
    many best = {0};
    for (int64_t r = at->rows.first; r < at->rows.last; r++) {
        for (int64_t s = at->columns.first; s < at->columns.last; s++) {
            many x;
            memcpy(&x, at->image + (at->offset + r * at->down + s * at->right + c), sizeof x);
            x ^= flip;
            many larger = (many)(x > best);
            best = (x & larger) | (best & ~larger);
        }
    }
    best ^= flip;
    memcpy(y + c, &best, sizeof best);
}

static void pool_pixel(const context *all, const window_at *at, uint8_t *y, int64_t channels)
{
    const sdlf_quantized_pool2d_options *o = &all->operation->quantized_pool2d;
    int64_t inside = (at->rows.last - at->rows.first) * (at->columns.last - at->columns.first), c = 0;
    int64_t divisor = o->count_padding ? (int64_t)o->window.size[0] * o->window.size[1] : inside;
    float share = o->scale / (float)divisor;
    for (; all->as_it_is && c + (int64_t)sizeof(many) <= channels; c += sizeof(many))
        largest_of_many(at, y, c, all->from.flip);
    for (; c < channels; c += LANES) {
        int64_t count = channels - c;
        vector v = o->average ? mean(at, c, count, all->from, share) : largest(at, c, count, all->from) * o->scale;
        store_bytes(y + c, round_to(v, &all->to), count);
    }
}

/* Row p of image n, and of channel n mod C if images are row-major. */
static void pool_row(void *argument, int64_t index, int thread)
{
    (void)thread;
    const context *all = argument;
    const sdlf_tensor *x = &all->operation->in[0], *y = &all->operation->out[0];
    const sdlf_window2d *window = &all->operation->quantized_pool2d.window;
    const int64_t *size = x->shape.dim, channels = all->last ? size[1] : 1;
    int64_t p = index % y->shape.dim[2], plane = index / y->shape.dim[2];
    int64_t area = channels * size[2] * size[3];
    window_at at = {.image = (const uint8_t *)x->data + plane * area,
                    .rows = span_of(window, 0, p, size[2]),
                    .down = window->dilation[0] * size[3] * channels,
                    .right = window->dilation[1] * channels};
    for (int64_t q = 0; q < y->shape.dim[3]; q++) {
        at.columns = span_of(window, 1, q, size[3]);
        at.offset = (at.rows.start * size[3] + at.columns.start) * channels;
        pool_pixel(all, &at, (uint8_t *)y->data + (index * y->shape.dim[3] + q) * channels, channels);
    }
}

sdlf_status quantized_pool2d_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_quantized_pool2d_options *o = &operation->quantized_pool2d;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    bool whole = y->dtype == SDLF_INT8 ? o->low == -128 && o->high == 127 : o->low == 0 && o->high == 255;
    context all = {.operation = operation,
                   .from = quantised_of(x, o->x_zero),
                   .to = rounding_to(o->y_zero, o->low, o->high),
                   .last = sdlf_tensor_is_channels_last(x) && sdlf_tensor_is_channels_last(y),
                   .as_it_is = !o->average && whole && o->scale == 1 && o->x_zero == o->y_zero && x->dtype == y->dtype};
    int64_t rows = y->shape.dim[0] * y->shape.dim[2] * (all.last ? 1 : y->shape.dim[1]);
    int64_t taps = (int64_t)o->window.size[0] * o->window.size[1];
    cpu_parallel_static_exact(cpu_from(calculator), rows, cpu_time_of_elements(sdlf_tensor_count(y) * taps) / 8,
                              pool_row, &all);
    return SDLF_OK;
}
