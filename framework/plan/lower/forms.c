/* SPDX-License-Identifier: MIT */
/* Updates that take more than one operation: muon's orthogonal steps and lars' rates, built from operations that every
 * calculator has. */
#include "framework/plan/lower/lower.h"

#include <math.h>

static const sdlf_tensor none = {.dtype = SDLF_NONE};

static sdlf_status new_buffer(sdlf_plan *plan, sdlf_shape shape, sdlf_tensor *tensor)
{
    return plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, shape, tensor);
}

static sdlf_status emit(sdlf_plan *plan, int index, const sdlf_operation *operation)
{
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, plan->nodes[index].backward, operation);
}

/* Emits y = a op b, or a op scalar, into a new tensor of a's shape. */
static sdlf_status make(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                        double scalar, sdlf_tensor *y)
{
    sdlf_status status = new_buffer(plan, a.shape, y);
    return status == SDLF_OK ? plan_emit_binary(plan, index, function, a, b, scalar, *y) : status;
}

/* Emits norm (1) = max(|x|, least). */
static sdlf_status emit_norm(sdlf_plan *plan, int index, sdlf_tensor x, double least, sdlf_tensor *norm)
{
    sdlf_tensor squares = none, root = none;
    sdlf_operation reduce = {.kind = SDLF_REDUCE,
                             .in = {sdlf_tensor_reshape(x, sdlf_shape(sdlf_tensor_count(&x)))},
                             .reduce = {.function = SDLF_REDUCE_SUM_SQUARES, .axis = 0}};
    sdlf_operation take_root = {.kind = SDLF_ACTIVATION_FORWARD, .activation = {.function = SDLF_SQRT}};
    sdlf_status status = new_buffer(plan, sdlf_shape(1), &squares);
    reduce.out[0] = take_root.in[0] = squares;
    if (status == SDLF_OK) status = emit(plan, index, &reduce);
    if (status == SDLF_OK) status = new_buffer(plan, sdlf_shape(1), &root);
    take_root.out[0] = root;
    if (status == SDLF_OK) status = emit(plan, index, &take_root);
    return status == SDLF_OK ? make(plan, index, SDLF_BINARY_MAXIMUM, root, none, least, norm) : status;
}

/* ---- lars ---- */

sdlf_status plan_emit_trust(sdlf_plan *plan, int index, sdlf_operation *update)
{
    enum { WEIGHT, GRADIENT };
    const double least = 1e-3;
    const sdlf_lars_options *options = &plan->options.optimizer.options.lars;
    sdlf_tensor norm[2], decayed, below, ratio, trusted;
    const sdlf_tensor scaled = update->in[0];
    sdlf_tensor gradient = scaled;
    sdlf_status status = emit_norm(plan, index, update->out[0], least, &norm[WEIGHT]);
    if (status == SDLF_OK && sdlf_tensor_present(&plan->factor))
        status = make(plan, index, SDLF_BINARY_MULTIPLY, scaled, sdlf_tensor_broadcast(plan->factor, scaled.shape), 0,
                      &gradient);
    if (status == SDLF_OK) status = emit_norm(plan, index, gradient, least, &norm[GRADIENT]);
    if (status == SDLF_OK)
        status = make(plan, index, SDLF_BINARY_MULTIPLY, norm[WEIGHT], none, (double)update->sgd.decay, &decayed);
    if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_ADD, norm[GRADIENT], decayed, 0, &below);
    if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_DIVIDE, norm[WEIGHT], below, 0, &ratio);
    if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_MULTIPLY, ratio, none, options->trust, &trusted);
    if (status != SDLF_OK) return status;
    sdlf_tensor rate = update->in[1];
    return make(plan, index, SDLF_BINARY_MULTIPLY, rate, trusted, 0, &update->in[1]);
}

/* ---- muon ---- */

/* Emits c = alpha op(a) op(b) + residual, of matrices, into a new tensor. */
static sdlf_status multiply(sdlf_plan *plan, int index, sdlf_tensor a, bool turn_a, sdlf_tensor b, bool turn_b,
                            double alpha, sdlf_tensor residual, sdlf_tensor *c)
{
    sdlf_shape shape = sdlf_shape(a.shape.dim[turn_a ? 1 : 0], b.shape.dim[turn_b ? 0 : 1]);
    sdlf_status status = new_buffer(plan, shape, c);
    const sdlf_operation gemm = {
        .kind = SDLF_GEMM,
        .in = {a, b, none, residual},
        .out = {*c},
        .gemm = {.transpose_a = turn_a, .transpose_b = turn_b, .alpha = (float)alpha},
    };
    return status == SDLF_OK ? emit(plan, index, &gemm) : status;
}

static const double linear = 3.4445, cubic = -4.775, quintic = 2.0315;

/* One iteration X = 3.4445 X - 4.775 A X + 2.0315 A A X, A = X X', of X = scale Z; if X is taller than wide, the same
 * with X' X on the other side. Moving the linear term into the scale, which grows by 3.4445, leaves three matrix
 * products and no other operation:
 *
 *   A = cubic/linear scale^2 Z Z';   B = quintic linear / cubic^2 A A + A;   Z = B Z + Z */
static sdlf_status newton_schulz(sdlf_plan *plan, int index, double *scale, sdlf_tensor *z)
{
    bool high = z->shape.dim[0] > z->shape.dim[1];
    sdlf_tensor a, b, old = *z;
    sdlf_status status = multiply(plan, index, old, high, old, !high, cubic / linear * *scale * *scale, none, &a);
    if (status == SDLF_OK)
        status = multiply(plan, index, a, false, a, false, quintic * linear / (cubic * cubic), a, &b);
    *scale *= linear;
    return status == SDLF_OK ? multiply(plan, index, high ? old : b, false, high ? b : old, false, 1, old, z) : status;
}

/* to = a op b, unless the step is skipped. */
static sdlf_status replace(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                           sdlf_tensor to)
{
    sdlf_tensor made;
    if (!sdlf_tensor_present(&plan->taken_step)) return plan_emit_binary(plan, index, function, a, b, 0, to);
    sdlf_status status = make(plan, index, function, a, b, 0, &made);
    return status == SDLF_OK ? plan_emit_select(plan, index, plan->taken_step, made, to) : status;
}

/* Adds the gradient to the velocity; *u is their Nesterov combination. */
static sdlf_status take_gradient(sdlf_plan *plan, int index, sdlf_tensor gradient, sdlf_tensor velocity, sdlf_tensor *u)
{
    double momentum = plan->options.optimizer.options.muon.momentum;
    sdlf_tensor kept, ahead;
    sdlf_status status = make(plan, index, SDLF_BINARY_MULTIPLY, velocity, none, momentum, &kept);
    if (status == SDLF_OK) status = replace(plan, index, SDLF_BINARY_ADD, kept, gradient, velocity);
    if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_MULTIPLY, velocity, none, momentum, &ahead);
    return status == SDLF_OK ? make(plan, index, SDLF_BINARY_ADD, gradient, ahead, 0, u) : status;
}

/* Scales *x to norm `length`, in new memory. */
static sdlf_status scale_to(sdlf_plan *plan, int index, double length, sdlf_tensor *x)
{
    sdlf_tensor norm, divisor, from = *x;
    sdlf_status status = emit_norm(plan, index, from, 1e-7, &norm);
    if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_MULTIPLY, norm, none, 1 / length, &divisor);
    return status == SDLF_OK
               ? make(plan, index, SDLF_BINARY_DIVIDE, from, sdlf_tensor_broadcast(divisor, from.shape), 0, x)
               : status;
}

/* w = (1 - rate decay) w - rate scale x, where `small` is the old w or its rescaled value. */
static sdlf_status step(sdlf_plan *plan, int index, const sdlf_operation *update, sdlf_tensor small, sdlf_tensor w,
                        sdlf_tensor x)
{
    double scale = sqrt(fmax(1, (double)w.shape.dim[0] / (double)w.shape.dim[1])), decay = (double)update->sgd.decay;
    sdlf_tensor length, way, shrink, keep, from = small;
    sdlf_status status = make(plan, index, SDLF_BINARY_MULTIPLY, update->in[1], none, scale, &length);
    if (status == SDLF_OK)
        status = make(plan, index, SDLF_BINARY_MULTIPLY, x, sdlf_tensor_broadcast(length, x.shape), 0, &way);
    if (status == SDLF_OK && decay > 0) {
        status = make(plan, index, SDLF_BINARY_MULTIPLY, update->in[1], none, -decay, &shrink);
        if (status == SDLF_OK) status = make(plan, index, SDLF_BINARY_ADD, shrink, none, 1, &keep);
        if (status == SDLF_OK)
            status = make(plan, index, SDLF_BINARY_MULTIPLY, from, sdlf_tensor_broadcast(keep, w.shape), 0, &small);
    }
    return status == SDLF_OK ? replace(plan, index, SDLF_BINARY_SUBTRACT, small, way, w) : status;
}

sdlf_status plan_emit_orthogonal(sdlf_plan *plan, int index, const sdlf_operation *update)
{
    const sdlf_muon_options *options = &plan->options.optimizer.options.muon;
    sdlf_shape shape = update->out[0].shape, matrix = sdlf_shape(shape.dim[0], sdlf_shape_span(shape, 1, shape.rank));
    sdlf_tensor gradient = sdlf_tensor_reshape(update->in[0], matrix), x;
    sdlf_tensor weight = sdlf_tensor_reshape(update->out[0], matrix), from = weight;
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_present(&update->in[2])) {
        sdlf_tensor clip = sdlf_tensor_broadcast(update->in[2], matrix), whole = gradient;
        status = make(plan, index, SDLF_BINARY_MULTIPLY, whole, clip, 0, &gradient);
    }
    if (status == SDLF_OK)
        status = take_gradient(plan, index, gradient, sdlf_tensor_reshape(update->out[1], matrix), &x);
    double scale = pow(linear, -options->newton_schulz); /* 1 after the last iteration; float16 can hold the start */
    if (status == SDLF_OK) status = scale_to(plan, index, 1 / scale, &x);
    for (int i = 0; i < options->newton_schulz && status == SDLF_OK; i++)
        status = newton_schulz(plan, index, &scale, &x);
    if (status == SDLF_OK && options->unit_filters) status = scale_to(plan, index, sqrt((double)matrix.dim[0]), &from);
    return status == SDLF_OK ? step(plan, index, update, from, weight, x) : status;
}
