/* MaxPool, AveragePool and the global ones. */
#include "framework/formats/onnx/window.h"

static sdlf_pool2d_options options_of(const onnx_window *window)
{
    sdlf_pool2d_options options = {.window = {0}};
    for (int i = 0; i < 2; i++) {
        options.window[i] = window->size[i];
        options.stride[i] = window->stride[i];
        options.padding[i] = window->before[i];
        options.padding_extra[i] = window->after[i] - window->before[i];
    }
    return options;
}

static void convert_max_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_window window = onnx_window_of(c, x.shape, NULL);
    sdlf_pool2d_options options = options_of(&window);
    for (int i = 0; i < 2; i++) options.dilation[i] = window.dilation[i];
    options.ties = SDLF_TIES_FIRST;
    onnx_flow image = onnx_small_as_float(c, onnx_as_image(c, x));
    onnx_flow y = onnx_as_before(c, onnx_layer(c, "max_pool2d", &options, &image, 1), x.shape.rank);
    onnx_give(c, 0, onnx_cast(c, y, x.dtype));
}

/* The mean over a dilated window without padding: the sum of one slice for each of its positions. */
static onnx_flow dilated_mean(onnx_context *c, onnx_flow image, const onnx_window *window)
{
    onnx_flow sum = image;
    int64_t positions = (int64_t)window->size[0] * window->size[1];
    if (window->before[0] + window->before[1] + window->after[0] + window->after[1] > 0 || positions > 256) {
        onnx_unsupported(c, "attribute 'dilations' other than 1 with padding, or a window of more than 256 elements");
        return image;
    }
    for (int64_t i = 0; i < positions && onnx_ok(c); i++) {
        const int64_t at[2] = {i / window->size[1], i % window->size[1]};
        sdlf_slice_options slice = {.axes = sdlf_shape(2, 3)};
        slice.start.rank = slice.end.rank = slice.step.rank = 2;
        for (int d = 0; d < 2; d++) {
            int64_t reach = (int64_t)(window->size[d] - 1) * window->dilation[d];
            slice.start.dim[d] = at[d] * window->dilation[d];
            slice.end.dim[d] = image.shape.dim[2 + d] - reach + slice.start.dim[d];
            slice.step.dim[d] = window->stride[d];
            if (reach >= image.shape.dim[2 + d]) onnx_wrong(c, "its window is larger than its input");
        }
        onnx_flow terms[] = {sum, onnx_layer(c, "slice", &slice, &image, 1)};
        sum = i == 0 ? terms[1] : onnx_binary(c, "add", terms);
    }
    return onnx_with_number(c, "mul", sum, 1.0 / (double)positions);
}

static void convert_average_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_window window = onnx_window_of(c, x.shape, NULL);
    sdlf_pool2d_options options = options_of(&window);
    options.count_padding = onnx_integer(c, "count_include_pad", 0) != 0;
    onnx_flow image = onnx_as_image(c, x);
    if (onnx_ok(c) && (window.dilation[0] != 1 || window.dilation[1] != 1)) {
        onnx_give(c, 0, onnx_as_before(c, dilated_mean(c, image, &window), x.shape.rank));
        return;
    }
    if (options.count_padding && (window.added[0] > 0 || window.added[1] > 0)) {
        /* padding counts, what rounding up adds to it does not: so the padding becomes part of the image */
        sdlf_pad_options pad = {.before = {.rank = 4}, .after = {.rank = 4}};
        for (int i = 0; i < 2; i++) {
            pad.before.dim[2 + i] = window.before[i];
            pad.after.dim[2 + i] = window.after[i] - window.added[i];
            options.padding[i] = 0;
            options.padding_extra[i] = window.added[i];
        }
        options.count_padding = false;
        image = onnx_layer(c, "pad", &pad, &image, 1);
    }
    onnx_give(c, 0, onnx_as_before(c, onnx_layer(c, "avg_pool2d", &options, &image, 1), x.shape.rank));
}

/* The result of a global pooling, (N,C,1,1), with as many ones as x had dimensions. */
static onnx_flow as_global(onnx_context *c, onnx_flow y, int rank)
{
    sdlf_shape shape = {.rank = rank, .dim = {y.shape.dim[0], y.shape.dim[1]}};
    for (int i = 2; i < rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, y, shape);
}

static void convert_global_average_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), image = x.shape.rank == 4 ? x : onnx_as_column(c, x);
    onnx_give(c, 0, as_global(c, onnx_layer(c, "global_avg_pool2d", NULL, &image, 1), x.shape.rank));
}

const onnx_operator onnx_pooling_operators[] = {
    {.type = "MaxPool",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " auto_pad ceil_mode dilations kernel_shape pads storage_order strides ",
     .convert = convert_max_pool},
    {.type = "AveragePool",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides ",
     .convert = convert_average_pool},
    {.type = "GlobalAveragePool",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_global_average_pool},
    {.type = NULL},
};
