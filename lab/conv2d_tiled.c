/* SPDX-License-Identifier: MIT */
/* Tiled convolution: rectangles that fit shared memory, and what runs before and after the kernels. */
#include "lab/conv2d_tiled.h"

#include "lab/conv2d.h"

/* Channels that a block has in shared memory at a time: one, or, in backward weights, those that 64 taps span. */
static int64_t channels_of(const cuda_implicit *p)
{
    int64_t window = (int64_t)p->taps[0] * p->taps[1];
    if (!p->weights) return 1;
    int64_t most = (TILED_TAPS - 1 + window - 1) / window + 1, channels = p->columns / window;
    return most < channels ? most : channels;
}

/* Elements of the image, with halo, that `pixels` along an axis need. Phases of backward input extend no further than
 * the whole window divided by the stride, and one more. */
static int64_t side_of(const cuda_implicit *p, int axis, int64_t pixels)
{
    int64_t reach = (int64_t)(p->taps[axis] - 1) * p->dilation[axis];
    if (p->transposed) return pixels + reach / p->stride[axis] + 1;
    return (pixels - 1) * p->stride[axis] + reach + 1;
}

static int64_t image_numbers(const cuda_implicit *p, int64_t height, int64_t width)
{
    return cuda_ceil_div(channels_of(p) * side_of(p, 0, height) * side_of(p, 1, width), 4) * 4;
}

static int64_t other_numbers(const cuda_implicit *p, int64_t height, int64_t width)
{
    return TILED_FILTERS * (p->weights ? height * width : (int64_t)TILED_TAPS);
}

/* The rectangle: as wide as rows are, up to 32, then as high as 256 pixels allow (64 in backward weights, where dy is
 * in shared memory, too); halved until it fits. False if not even one pixel fits. */
static bool fit(const cuda_implicit *p, sdlf_dtype dtype, lab_tiled *t)
{
    int64_t numbers = TILED_BYTES / (int64_t)sdlf_dtype_size(dtype),
            most = p->weights ? TILED_PIXELS / 4 : TILED_PIXELS;
    int64_t rows = cuda_ceil_div(p->extent[0], p->phases[0]), columns = cuda_ceil_div(p->extent[1], p->phases[1]);
    int64_t width = columns < 32 ? columns : 32, height = most / width < rows ? most / width : rows;
    if (height < 1) height = 1;
    while (image_numbers(p, height, width) + other_numbers(p, height, width) > numbers) {
        if (height == 1 && width == 1) return false;
        if (height >= width)
            height /= 2;
        else
            width /= 2;
    }
    t->height = (int)height;
    t->width = (int)width;
    t->down = (int)cuda_ceil_div(rows, height);
    t->across = (int)cuda_ceil_div(columns, width);
    t->image_numbers = (int)image_numbers(p, height, width);
    t->other_numbers = (int)other_numbers(p, height, width);
    return true;
}

static int64_t batch_of(const sdlf_operation *op)
{
    return op->in[0].shape.dim[0]; /* of x or dy */
}

/* Parts of backward weights: enough blocks to fill the device, with at least a rectangle each, and 64 MiB of parts at most. */
static int parts_of(const cuda_calculator *calculator, const cuda_implicit *p, const lab_tiled *t, sdlf_dtype dtype,
                    int64_t batch)
{
    if (!p->weights) return 1;
    int64_t blocks = (int64_t)p->row_tiles * p->column_tiles * p->groups;
    int64_t parts = cuda_ceil_div((int64_t)calculator->multiprocessors * 8, blocks);
    int64_t most = (INT64_C(64) << 20) / (p->result_count * (int64_t)sdlf_dtype_size(dtype));
    if (parts > most) parts = most;
    if (parts > batch * t->down * t->across) parts = batch * t->down * t->across;
    return parts < 1 ? 1 : (int)parts;
}

static bool prepare(const cuda_calculator *calculator, const sdlf_operation *op, cuda_implicit *p, lab_tiled *t)
{
    if (!cuda_implicit_counts(op)) return false;
    *p = cuda_implicit_of(op);
    sdlf_dtype dtype = op->out[0].dtype;
    if (!fit(p, dtype, t)) return false;
    p->row_tiles = (int)cuda_ceil_div(p->rows, TILED_FILTERS);
    p->column_tiles = (int)cuda_ceil_div(p->columns, TILED_TAPS);
    p->splits = parts_of(calculator, p, t, dtype, batch_of(op));
    return lab_tiled_blocks(p, t, batch_of(op)) <= INT32_MAX;
}

bool lab_conv2d_tiled_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_implicit p;
    lab_tiled t;
    return prepare((const cuda_calculator *)calculator, op, &p, &t);
}

int64_t lab_conv2d_tiled_workspace(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_implicit p;
    lab_tiled t;
    if (!prepare((const cuda_calculator *)calculator, op, &p, &t)) return 0;
    return cuda_implicit_workspace(&p, op->out[0].dtype);
}

sdlf_status lab_conv2d_tiled(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_implicit p;
    lab_tiled t;
    if (!prepare(cuda_calculator_from(calculator), op, &p, &t))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d, tiled: a window of %dx%d does not fit shared memory",
                         op->conv2d.window.size[0], op->conv2d.window.size[1]);
    cuda_epilogue epilogue = cuda_implicit_bind(&p, op);
    sdlf_status status = cuda_implicit_begin(calculator, &p, op);
    if (status == SDLF_OK) status = lab_tiled_run(calculator, &p, &t, op->out[0].dtype, batch_of(op));
    return status == SDLF_OK ? cuda_implicit_end(calculator, &p, op, &epilogue) : status;
}
