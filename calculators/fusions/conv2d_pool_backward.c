/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_backward, with and without the updates: their calculator-independent checks and costs, and their
 * member operations. */
#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/sgd.h"
#include "framework/operations/check.h"

enum { POOL, INPUT, WEIGHTS, MEMBERS, UPDATE = MEMBERS, BIAS_UPDATE, SGD_MEMBERS };

enum {
    DX = 1 << INPUT,
    DW = 1 << WEIGHTS,
    GRADIENTS = 1 << POOL | DW,
    UPDATED = GRADIENTS | 1 << UPDATE,
    BIAS = 1 << BIAS_UPDATE,
};

static sdlf_check check_gradients(const sdlf_operation *fused)
{
    const conv2d_pool_operands o = conv2d_pool_operands_of(fused);
    sdlf_check check = {.operation = fused, .status = conv2d_pool_check(fused, o.x, o.w, o.dy, o.mask)};
    sdlf_expect_operand(&check, o.dx, o.x->dtype, o.x->shape);
    return check;
}

/* Only the marked positions have a gradient: about one a window, for each of dw and dx if wanted. */
static int64_t gradient_flops(const sdlf_operation *fused, bool wants_dw)
{
    const conv2d_pool_operands o = conv2d_pool_operands_of(fused);
    int64_t wanted = wants_dw + sdlf_tensor_present(o.dx);
    return sdlf_product(2 * wanted, sdlf_tensor_count(o.dy), sdlf_shape_span(o.w->shape, 1, 4), 1);
}

/* ---- joining and splitting: shared by both ---- */

static bool may_join(const sdlf_operation *const *member)
{
    const sdlf_operation *pool = member[POOL], *input = member[INPUT], *weights = member[WEIGHTS];
    if (!sdlf_tensor_present(&pool->in[3])) return false;
    if (input != NULL && sdlf_tensor_present(&input->in[2])) return false;
    if (input != NULL && !conv2d_pool_is_same_image(&pool->out[0], &input->in[0])) return false;
    return weights == NULL || conv2d_pool_is_same_image(&pool->out[0], &weights->in[1]);
}

static conv2d_pool_options options_of_members(const sdlf_operation *const *member)
{
    const sdlf_operation *pool = member[POOL], *conv = member[WEIGHTS] != NULL ? member[WEIGHTS] : member[INPUT];
    return (conv2d_pool_options){.window = conv->conv2d.window,
                                 .groups = conv->conv2d.groups,
                                 .pool = pool->pool2d.window,
                                 .ties = pool->pool2d.ties};
}

/* The members that compute the gradients; dw and db may be absent. */
static unsigned split_gradients(const sdlf_operation *fused, sdlf_operation *member, sdlf_tensor dw, sdlf_tensor db)
{
    const conv2d_pool_options *options = conv2d_pool_options_of(fused);
    const conv2d_pool_operands o = conv2d_pool_operands_of(fused);
    const sdlf_tensor between = conv2d_pool_between(fused, o.x, o.w);
    const bool wants_dx = sdlf_tensor_present(o.dx), wants_dw = sdlf_tensor_present(&dw);
    member[POOL] = (sdlf_operation){.in = {[2] = *o.dy, [3] = *o.mask},
                                    .out = {between},
                                    .pool2d = {.window = options->pool, .ties = options->ties}};
    if (wants_dx)
        member[INPUT] = (sdlf_operation){
            .in = {between, *o.w}, .out = {*o.dx}, .conv2d = {.window = options->window, .groups = options->groups}};
    if (wants_dw)
        member[WEIGHTS] = (sdlf_operation){
            .in = {*o.x, between}, .out = {dw, db}, .conv2d = {.window = options->window, .groups = options->groups}};
    return 1u << POOL | (wants_dx ? DX : 0) | (wants_dw ? DW : 0);
}

/* ---- backward without updates ---- */

static sdlf_status check_backward(const sdlf_operation *fused)
{
    const sdlf_tensor *dw = &fused->out[0], *db = &fused->out[1];
    const bool wants_dw = sdlf_tensor_present(dw), wants_dx = sdlf_tensor_present(&fused->out[2]);
    if (!wants_dw && !wants_dx) return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected operand 'dw' or operand 'dx'");
    if (wants_dw != sdlf_tensor_present(&fused->in[0]) || wants_dx != sdlf_tensor_present(&fused->in[1]))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected operand 'x' with 'dw', and 'w' with 'dx'");
    sdlf_check check = check_gradients(fused);
    const conv2d_pool_operands o = conv2d_pool_operands_of(fused);
    sdlf_expect_operand(&check, dw, o.x->dtype, o.w->shape);
    sdlf_expect_operand(&check, db, o.x->dtype, sdlf_shape(o.w->shape.dim[0]));
    sdlf_expect(&check, wants_dw || !sdlf_tensor_present(db), "operand 'db' is given without 'dw'");
    return check.status;
}

static int64_t backward_flops(const sdlf_operation *fused)
{
    return gradient_flops(fused, sdlf_tensor_present(&fused->out[0]));
}

static bool join_backward(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *pool = member[POOL], *input = member[INPUT], *weights = member[WEIGHTS];
    if (!may_join(member)) return false;
    *conv2d_pool_options_in(fused) = options_of_members(member);
    fused->in[2] = pool->in[2];
    fused->in[3] = pool->in[3];
    if (input != NULL) {
        fused->in[1] = input->in[1];
        fused->out[2] = input->out[0];
    }
    if (weights != NULL) {
        fused->in[0] = weights->in[0];
        fused->out[0] = weights->out[0];
        fused->out[1] = weights->out[1];
    }
    return true;
}

static unsigned split_backward(const sdlf_operation *fused, sdlf_operation *member)
{
    return split_gradients(fused, member, fused->out[0], fused->out[1]);
}

const sdlf_fusion sdlf_conv2d_pool_backward_fusion = {
    .type =
        {
            .name = "conv2d_relu_max_pool_backward",
            .in = {{.name = "x", .optional = true}, {.name = "w", .optional = true}, {.name = "dy"}, {.name = "mask"}},
            .out = {{.name = "dw", .optional = true},
                    {.name = "db", .optional = true},
                    {.name = "dx", .optional = true}},
            .check = check_backward,
            .flops = backward_flops,
        },
    .members = MEMBERS,
    .member = {SDLF_MAX_POOL2D_BACKWARD, SDLF_CONV2D_BACKWARD_INPUT, SDLF_CONV2D_BACKWARD_WEIGHTS},
    .edges = 2,
    .edge = {{POOL, 0, INPUT, 0}, {POOL, 0, WEIGHTS, 1}},
    .variant = {GRADIENTS | DX, GRADIENTS, 1u << POOL | DX},
    .train = true,
    .join = join_backward,
    .split = split_backward,
};

/* ---- with the updates ---- */

static sdlf_status check_backward_sgd(const sdlf_operation *fused)
{
    const sdlf_tensor *w = &fused->out[0], *v = &fused->out[1], *b = &fused->out[2], *bv = &fused->out[3];
    sdlf_check check = check_gradients(fused);
    const sdlf_dtype t = fused->in[0].dtype;
    sdlf_expect_operand(&check, &fused->in[3], t, sdlf_shape(1));
    sdlf_expect_operand(&check, v, t, w->shape);
    sdlf_expect_operand(&check, b, t, sdlf_shape(w->shape.dim[0]));
    sdlf_expect_operand(&check, bv, t, sdlf_shape(w->shape.dim[0]));
    sdlf_expect_sgd(&check, &conv2d_pool_options_of(fused)->sgd, v);
    sdlf_expect_bias_velocity(&check, v, b, bv);
    return check.status;
}

static int64_t backward_sgd_flops(const sdlf_operation *fused)
{
    int64_t update = sdlf_tensor_present(&fused->out[1]) ? 4 : 2;
    int64_t updated = sdlf_sum(sdlf_tensor_count(&fused->out[0]), sdlf_tensor_count(&fused->out[2]));
    return sdlf_sum(gradient_flops(fused, true), sdlf_product(update, updated, 1, 1));
}

static bool join_backward_sgd(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *pool = member[POOL], *input = member[INPUT], *weights = member[WEIGHTS];
    const sdlf_operation *update = member[UPDATE], *bias = member[BIAS_UPDATE];
    conv2d_pool_options *options = conv2d_pool_options_in(fused);
    if (!may_join(member) || sdlf_tensor_present(&update->in[2])) return false;
    if (bias != NULL ? !sgd_is_one_rule(update, bias) : sdlf_tensor_present(&weights->out[1])) return false;
    *options = options_of_members(member);
    options->sgd = update->sgd;
    fused->in[0] = weights->in[0];
    fused->in[1] = pool->in[2];
    fused->in[2] = pool->in[3];
    fused->in[3] = update->in[1];
    fused->out[0] = update->out[0];
    fused->out[1] = update->out[1];
    if (bias != NULL) {
        fused->out[2] = bias->out[0];
        fused->out[3] = bias->out[1];
        options->sgd.bias_decay = bias->sgd.decay;
    }
    if (input != NULL) fused->out[4] = input->out[0];
    return true;
}

static unsigned split_backward_sgd(const sdlf_operation *fused, sdlf_operation *member)
{
    const sdlf_sgd_rule rule = conv2d_pool_options_of(fused)->sgd;
    const sdlf_tensor rate = fused->in[3], *out = fused->out;
    const bool has_bias = sdlf_tensor_present(&out[2]);
    const sdlf_tensor dw = sdlf_tensor_view(out[0].dtype, out[0].shape, NULL);
    const sdlf_tensor db = has_bias ? sdlf_tensor_view(out[2].dtype, out[2].shape, NULL) : out[2];
    unsigned present = split_gradients(fused, member, dw, db) | 1u << UPDATE;
    member[UPDATE] = (sdlf_operation){.in = {dw, rate}, .out = {out[0], out[1]}, .sgd = sgd_of_weights(rule)};
    if (!has_bias) return present;
    member[BIAS_UPDATE] = (sdlf_operation){.in = {db, rate}, .out = {out[2], out[3]}, .sgd = sgd_of_bias(rule)};
    return present | BIAS;
}

const sdlf_fusion sdlf_conv2d_pool_backward_sgd_fusion = {
    .type =
        {
            .name = "conv2d_relu_max_pool_backward_sgd",
            .in = {{.name = "x"}, {.name = "dy"}, {.name = "mask"}, {.name = "rate"}},
            .out = {{.name = "w", .updated = true},
                    {.name = "v", .optional = true, .updated = true},
                    {.name = "b", .optional = true, .updated = true},
                    {.name = "bv", .optional = true, .updated = true},
                    {.name = "dx", .optional = true}},
            .check = check_backward_sgd,
            .flops = backward_sgd_flops,
        },
    .members = SGD_MEMBERS,
    .member = {SDLF_MAX_POOL2D_BACKWARD, SDLF_CONV2D_BACKWARD_INPUT, SDLF_CONV2D_BACKWARD_WEIGHTS, SDLF_SGD_UPDATE,
               SDLF_SGD_UPDATE},
    .edges = 4,
    .edge = {{POOL, 0, INPUT, 0}, {POOL, 0, WEIGHTS, 1}, {WEIGHTS, 0, UPDATE, 0}, {WEIGHTS, 1, BIAS_UPDATE, 0}},
    .shares = 2,
    .shared = {{INPUT, 1, UPDATE, SDLF_MAX_INPUTS}, /* w */
               {UPDATE, 1, BIAS_UPDATE, 1}},        /* rate */
    .variant = {UPDATED | BIAS | DX, UPDATED | BIAS, UPDATED | DX, UPDATED},
    .early = 1u << INPUT | 1u << WEIGHTS,
    .train = true,
    .join = join_backward_sgd,
    .split = split_backward_sgd,
};
