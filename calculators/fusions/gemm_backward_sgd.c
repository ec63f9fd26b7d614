/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: its calculator-independent checks and costs, and its member operations. */
#include "calculators/fusions/gemm_backward_sgd.h"

#include "calculators/fusions/sgd.h"
#include "framework/operations/check.h"

/* dy w, the activation's gradient; dy^T x, its update; the sum of dy, its update. */
enum { INPUT, SLOPE, WEIGHTS, UPDATE, SUM, BIAS_UPDATE, MEMBERS };

enum {
    UPDATED = 1 << WEIGHTS | 1 << UPDATE,
    BIAS = 1 << SUM | 1 << BIAS_UPDATE,
    DX = 1 << INPUT,
    DX_SLOPE = DX | 1 << SLOPE
};

static sdlf_status check_backward_sgd(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *dy = &operation->in[1];
    const gemm_backward_sgd_options *options = gemm_backward_sgd_options_of(operation);
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_rank(&check, x, 2);
    sdlf_expect_rank(&check, dy, 2);
    int64_t n = x->shape.dim[0], inputs = x->shape.dim[1], units = dy->shape.dim[1];
    sdlf_expect_operand(&check, dy, t, sdlf_shape(n, units));
    sdlf_expect_operand(&check, &operation->in[2], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(units, inputs));
    sdlf_expect_operand(&check, &operation->out[1], t, sdlf_shape(units, inputs));
    sdlf_expect_operand(&check, &operation->out[2], t, sdlf_shape(n, inputs));
    sdlf_expect_operand(&check, &operation->out[3], t, sdlf_shape(units));
    sdlf_expect_operand(&check, &operation->out[4], t, sdlf_shape(units));
    sdlf_expect_sgd(&check, &options->sgd, &operation->out[1]);
    sdlf_expect_bias_velocity(&check, &operation->out[1], &operation->out[3], &operation->out[4]);
    sdlf_expect_activation(&check, &options->activation);
    sdlf_expect(&check, !sdlf_activation_reads_input(options->activation.function),
                "the activation's gradient needs its input, and 'x' is its output");
    return check.status;
}

static int64_t backward_sgd_flops(const sdlf_operation *operation)
{
    int64_t rows = operation->in[0].shape.dim[0], weights = sdlf_tensor_count(&operation->out[0]);
    int64_t biases = sdlf_tensor_count(&operation->out[3]); /* 0 if absent */
    int64_t products = sdlf_tensor_present(&operation->out[2]) ? 2 : 1;
    int64_t update = sdlf_tensor_present(&operation->out[1]) ? 4 : 2;
    int64_t flops = sdlf_sum(sdlf_product(2, products, rows, weights), sdlf_product(update, weights, 1, 1));
    flops = sdlf_sum(flops, sdlf_sum(sdlf_product(rows, biases, 1, 1), sdlf_product(update, biases, 1, 1)));
    bool activated = gemm_backward_sgd_options_of(operation)->activation.function != SDLF_IDENTITY;
    return activated ? sdlf_sum(flops, sdlf_tensor_count(&operation->out[2])) : flops;
}

/* ---- joining and splitting ---- */

static bool is_plain_product(const sdlf_operation *op, bool transpose_a)
{
    return op->gemm.transpose_a == transpose_a && !op->gemm.transpose_b && op->gemm.alpha == 1 &&
           op->gemm.activation.function == SDLF_IDENTITY && !sdlf_tensor_present(&op->in[2]) &&
           !sdlf_tensor_present(&op->in[3]);
}

static bool is_sum_of_rows(const sdlf_operation *op)
{
    return op->reduce.function == SDLF_REDUCE_SUM && op->reduce.axis == 0;
}

/* A product's operands may differ in it, but not x, dy and dx. */
static bool has_one_storage(const sdlf_operation *fused)
{
    const sdlf_tensor *x = &fused->in[0], *dy = &fused->in[1], *dx = &fused->out[2];
    return dy->dtype == x->dtype && (!sdlf_tensor_present(dx) || dx->dtype == x->dtype);
}

static bool join(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *product = member[WEIGHTS], *update = member[UPDATE], *input = member[INPUT];
    const sdlf_operation *slope = member[SLOPE], *sum = member[SUM], *bias = member[BIAS_UPDATE];
    gemm_backward_sgd_options *options = gemm_backward_sgd_options_in(fused);
    if (!is_plain_product(product, true) || sdlf_tensor_present(&update->in[2])) return false;
    if (input != NULL && !is_plain_product(input, false)) return false;
    if (slope != NULL && sdlf_activation_reads_input(slope->activation.function)) return false;
    if (sum != NULL && (!is_sum_of_rows(sum) || !sgd_is_one_rule(update, bias))) return false;
    fused->in[0] = product->in[1];
    fused->in[1] = product->in[0];
    fused->in[2] = update->in[1];
    fused->out[0] = update->out[0];
    fused->out[1] = update->out[1];
    options->sgd = update->sgd;
    if (input != NULL) fused->out[2] = input->out[0];
    if (slope != NULL) {
        fused->out[2] = sdlf_tensor_reshape(slope->out[0], product->in[1].shape);
        options->activation = slope->activation;
    }
    if (sum != NULL) {
        fused->out[3] = bias->out[0];
        fused->out[4] = bias->out[1];
        options->sgd.bias_decay = bias->sgd.decay;
    }
    return has_one_storage(fused);
}

static unsigned split(const sdlf_operation *fused, sdlf_operation *member)
{
    const gemm_backward_sgd_options *options = gemm_backward_sgd_options_of(fused);
    const sdlf_tensor x = fused->in[0], dy = fused->in[1], rate = fused->in[2], *out = fused->out;
    const sdlf_dtype t = out[0].dtype; /* of gradients of parameters, even if x and dy are in 16-bit storage */
    const sdlf_tensor dw = sdlf_tensor_view(t, out[0].shape, NULL);
    const bool wants_dx = sdlf_tensor_present(&out[2]), has_bias = sdlf_tensor_present(&out[3]);
    const bool slopes = wants_dx && options->activation.function != SDLF_IDENTITY;
    const sdlf_tensor da = slopes ? sdlf_tensor_view(x.dtype, x.shape, NULL) : out[2];
    if (wants_dx) member[INPUT] = (sdlf_operation){.in = {dy, out[0]}, .out = {da}, .gemm = {.alpha = 1}};
    if (slopes) member[SLOPE] = (sdlf_operation){.in = {x, da}, .out = {out[2]}, .activation = options->activation};
    member[WEIGHTS] = (sdlf_operation){.in = {dy, x}, .out = {dw}, .gemm = {.transpose_a = true, .alpha = 1}};
    member[UPDATE] = (sdlf_operation){.in = {dw, rate}, .out = {out[0], out[1]}, .sgd = sgd_of_weights(options->sgd)};
    if (has_bias) {
        const sdlf_tensor db = sdlf_tensor_view(t, out[3].shape, NULL);
        member[SUM] = (sdlf_operation){.in = {dy}, .out = {db}, .reduce = {SDLF_REDUCE_SUM, 0}};
        member[BIAS_UPDATE] =
            (sdlf_operation){.in = {db, rate}, .out = {out[3], out[4]}, .sgd = sgd_of_bias(options->sgd)};
    }
    return (unsigned)(UPDATED | (has_bias ? BIAS : 0) | (slopes ? DX_SLOPE : wants_dx ? DX : 0));
}

const sdlf_fusion sdlf_gemm_backward_sgd_fusion = {
    .type =
        {
            .name = "gemm_backward_sgd",
            .in = {{.name = "x"}, {.name = "dy"}, {.name = "rate"}},
            .out = {{.name = "w", .updated = true},
                    {.name = "v", .optional = true, .updated = true},
                    {.name = "dx", .optional = true},
                    {.name = "b", .optional = true, .updated = true},
                    {.name = "bv", .optional = true, .updated = true}},
            .storage = 1u << 0 | 1u << 1 | 1u << (SDLF_MAX_INPUTS + 2),
            .check = check_backward_sgd,
            .flops = backward_sgd_flops,
        },
    .members = MEMBERS,
    .member = {SDLF_GEMM, SDLF_ACTIVATION_BACKWARD, SDLF_GEMM, SDLF_SGD_UPDATE, SDLF_REDUCE, SDLF_SGD_UPDATE},
    .edges = 3,
    .edge = {{INPUT, 0, SLOPE, 1}, {WEIGHTS, 0, UPDATE, 0}, {SUM, 0, BIAS_UPDATE, 0}},
    .shares = 5,
    .shared = {{INPUT, 0, WEIGHTS, 0},              /* dy */
               {WEIGHTS, 0, SUM, 0},                /* dy */
               {INPUT, 1, UPDATE, SDLF_MAX_INPUTS}, /* w */
               {SLOPE, 0, WEIGHTS, 1},              /* x */
               {UPDATE, 1, BIAS_UPDATE, 1}},        /* rate */
    .variant = {UPDATED | BIAS | DX_SLOPE, UPDATED | BIAS | DX, UPDATED | DX_SLOPE, UPDATED | DX, UPDATED | BIAS,
                UPDATED},
    .early = 1u << INPUT | 1u << WEIGHTS,
    .train = true,
    .join = join,
    .split = split,
};
