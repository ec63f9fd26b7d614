/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward: its calculator-independent checks and costs, and its member operations. */
#include "calculators/fusions/conv2d_pool.h"

#include "framework/operations/check.h"

enum { CONVOLUTION, POOL, TURN, MEMBERS };

sdlf_tensor conv2d_pool_between(const sdlf_operation *fused, const sdlf_tensor *x, const sdlf_tensor *w)
{
    const sdlf_window2d *window = &conv2d_pool_options_of(fused)->window;
    const int64_t *dim = x->shape.dim;
    sdlf_shape shape = sdlf_shape(dim[0], w->shape.dim[0], sdlf_window2d_output(window, 0, dim[2]),
                                  sdlf_window2d_output(window, 1, dim[3]));
    return sdlf_tensor_view(x->dtype, shape, NULL);
}

sdlf_status conv2d_pool_check(const sdlf_operation *fused, const sdlf_tensor *x, const sdlf_tensor *w,
                              const sdlf_tensor *y, const sdlf_tensor *mask)
{
    const conv2d_pool_options *options = conv2d_pool_options_of(fused);
    sdlf_check check = {.operation = fused};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_convolution(&check, x, w, &options->window, options->groups);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape kernel = sdlf_shape(w->shape.dim[0], x->shape.dim[1] / options->groups, options->window.size[0],
                                   options->window.size[1]);
    sdlf_expect_operand(&check, w, t, kernel);
    sdlf_expect_dtype(&check, y, t);
    sdlf_expect_operand(&check, mask, SDLF_UINT8, y->shape);
    if (check.status != SDLF_OK) return check.status;
    const sdlf_operation pool = {
        .kind = SDLF_MAX_POOL2D_FORWARD,
        .in = {conv2d_pool_between(fused, x, w)},
        .out = {sdlf_tensor_view(t, y->shape, NULL), sdlf_tensor_view(SDLF_UINT8, y->shape, NULL)},
        .pool2d = {.window = options->pool, .ties = options->ties}};
    return sdlf_operation_check(&pool);
}

static sdlf_status check_forward(const sdlf_operation *fused)
{
    const sdlf_tensor *w = &fused->in[1], *y = &fused->out[0], *mask = &fused->out[1];
    sdlf_check check = {.operation = fused, .status = conv2d_pool_check(fused, &fused->in[0], w, y, mask)};
    sdlf_expect_operand(&check, &fused->in[2], fused->in[0].dtype, sdlf_shape(w->shape.dim[0]));
    if (check.status == SDLF_OK && sdlf_tensor_present(mask) && sdlf_operation_is_channels_last(fused))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "operand 'mask' is given, but others are channels last: only row-major ones have masks");
    return check.status;
}

/* Every position of every window is convolved and compared. */
static int64_t forward_flops(const sdlf_operation *fused)
{
    const int *pool = conv2d_pool_options_of(fused)->pool.size;
    int64_t positions = sdlf_product(sdlf_tensor_count(&fused->out[0]), pool[0], pool[1], 1);
    return sdlf_sum(sdlf_product(2, positions, sdlf_shape_span(fused->in[1].shape, 1, 4), 1), positions);
}

/* True for ReLU or the identity. */
static bool may_rectify(const sdlf_activation *activation)
{
    return activation->function == SDLF_RELU || activation->function == SDLF_IDENTITY;
}

bool conv2d_pool_is_same_image(const sdlf_tensor *made, const sdlf_tensor *read)
{
    return made->dtype == read->dtype && sdlf_shape_equal(made->shape, read->shape) &&
           sdlf_tensor_is_channels_last(made) == sdlf_tensor_is_channels_last(read);
}

static bool join_forward(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *conv = member[CONVOLUTION], *pool = member[POOL], *turn = member[TURN];
    const sdlf_activation *first = &conv->conv2d.activation, *second = &pool->pool2d.activation;
    if (!may_rectify(first) || first->function == second->function) return false;
    if (sdlf_tensor_present(&conv->in[3]) || !conv2d_pool_is_same_image(&conv->out[0], &pool->in[0])) return false;
    if (turn != NULL && !conv2d_pool_is_same_image(&pool->out[0], &turn->in[0])) return false;
    if (turn != NULL && !(sdlf_tensor_is_channels_last(&turn->in[0]) && sdlf_tensor_is_contiguous(&turn->out[0])))
        return false;
    for (int i = 0; i < 3; i++) fused->in[i] = conv->in[i];
    fused->out[0] = turn != NULL ? turn->out[0] : pool->out[0];
    fused->out[1] = pool->out[1];
    *conv2d_pool_options_in(fused) = (conv2d_pool_options){.window = conv->conv2d.window,
                                                           .groups = conv->conv2d.groups,
                                                           .pool = pool->pool2d.window,
                                                           .ties = pool->pool2d.ties};
    return true;
}

static unsigned split_forward(const sdlf_operation *fused, sdlf_operation *member)
{
    const conv2d_pool_options *options = conv2d_pool_options_of(fused);
    const sdlf_tensor *in = fused->in, *out = fused->out;
    const bool last = sdlf_operation_is_channels_last(fused), turns = sdlf_operation_is_mixed(fused);
    sdlf_tensor between = conv2d_pool_between(fused, &in[0], &in[1]), y = out[0];
    if (last) between = sdlf_tensor_channels_last(between);
    if (turns) y = sdlf_tensor_channels_last(sdlf_tensor_view(y.dtype, y.shape, NULL));
    member[CONVOLUTION] = (sdlf_operation){.in = {in[0], in[1], in[2]},
                                           .out = {between},
                                           .conv2d = {.window = options->window, .groups = options->groups}};
    member[POOL] = (sdlf_operation){
        .in = {between},
        .out = {y, out[1]},
        .pool2d = {.window = options->pool, .ties = options->ties, .activation = {.function = SDLF_RELU}}};
    if (turns) member[TURN] = (sdlf_operation){.in = {y}, .out = {out[0]}};
    return 1u << CONVOLUTION | 1u << POOL | (turns ? 1u << TURN : 0);
}

const sdlf_fusion sdlf_conv2d_pool_forward_fusion = {
    .type =
        {
            .name = "conv2d_relu_max_pool_forward",
            .in = {{.name = "x"}, {.name = "w"}, {.name = "bias", .optional = true}},
            .out = {{.name = "y"}, {.name = "mask", .optional = true}},
            .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
            .stays_row_major = 1u << SDLF_MAX_INPUTS,
            .storage = 1u << 0 | 1u << 1 | 1u << SDLF_MAX_INPUTS,
            .float32_beside = 1u << 1,
            .packed = 1u << 1,
            .unread = 1u << 1,
            .check = check_forward,
            .flops = forward_flops,
        },
    .members = MEMBERS,
    .member = {SDLF_CONV2D_FORWARD, SDLF_MAX_POOL2D_FORWARD, SDLF_COPY},
    .edges = 2,
    .edge = {{CONVOLUTION, 0, POOL, 0}, {POOL, 0, TURN, 0}},
    .variant = {1u << CONVOLUTION | 1u << POOL | 1u << TURN, 1u << CONVOLUTION | 1u << POOL},
    .early = 1u << CONVOLUTION,
    .infer = true,
    .train = true,
    .join = join_forward,
    .split = split_forward,
};
