/* SPDX-License-Identifier: MIT */
/* rotary_embedding: rotates pairs of elements by angles that grow with the position.
 *
 *   x (...,T,D) -> y: y = x C + x' S, where x' has the halves of each row exchanged, C = (cos a, cos a),
 *   S = (-sin a, sin a),
 *   a[t,i] = t base^(-2i/D); dx = dy C - dy' S. The tables are recomputed in each pass, the positions by doubling,
 *   from 0. */
#include "layers/rotary.h"

#include <math.h>

static const sdlf_field fields[] = {
    {.name = "base",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_rotary_embedding_options, base),
     .minimum = 1,
     .maximum = 1e9,
     .fallback = 10000,
     .zero_means_default = true,
     .help = "the slowest pair turns once in about 2 pi base positions"},
    {.name = NULL},
};

/* y = 0, 1, 2, ... */
static sdlf_status count_up(sdlf_layer_context *context, sdlf_tensor y)
{
    int64_t count = y.shape.dim[0];
    sdlf_status status = sdlf_layer_fill(context, sdlf_tensor_narrow(y, 0, 0, 1), 0);
    for (int64_t done = 1; done < count && status == SDLF_OK; done *= 2) {
        int64_t more = done < count - done ? done : count - done;
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_BINARY,
                                        .in = {sdlf_tensor_narrow(y, 0, 0, more)},
                                        .out = {sdlf_tensor_narrow(y, 0, done, more)},
                                        .binary = {.function = SDLF_BINARY_ADD, .scalar = (double)done},
                                    });
    }
    return status;
}

/* a (T,D/2). */
static sdlf_status make_angles(sdlf_layer_context *context, float base, sdlf_tensor a)
{
    int64_t positions = a.shape.dim[0], half = a.shape.dim[1];
    sdlf_tensor time = sdlf_scratch(context, a.dtype, sdlf_shape(positions, 1));
    sdlf_tensor number = sdlf_scratch(context, a.dtype, sdlf_shape(half));
    sdlf_tensor power = sdlf_scratch(context, a.dtype, sdlf_shape(half));
    sdlf_tensor speed = sdlf_scratch(context, a.dtype, sdlf_shape(half));
    sdlf_status status = count_up(context, sdlf_tensor_reshape(time, sdlf_shape(positions)));
    if (status == SDLF_OK) status = count_up(context, number);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, number, -log((double)base) / (double)half, power);
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_EXP, power, speed);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, sdlf_tensor_broadcast(time, a.shape),
                             sdlf_tensor_broadcast(speed, a.shape), a);
}

sdlf_status sdlf_rotary_tables(sdlf_layer_context *context, float base, double factor, sdlf_tensor tables)
{
    int64_t positions = tables.shape.dim[1], half = tables.shape.dim[2] / 2;
    sdlf_tensor wave[2], angles = sdlf_scratch(context, tables.dtype, sdlf_shape(positions, half));
    sdlf_tensor parts = sdlf_tensor_reshape(tables, sdlf_shape(2, positions, 2, half));
    sdlf_status status = make_angles(context, base, angles);
    for (int i = 0; i < 2 && status == SDLF_OK; i++) {
        sdlf_tensor plain = sdlf_scratch(context, tables.dtype, angles.shape);
        wave[i] = sdlf_scratch(context, tables.dtype, angles.shape);
        status = sdlf_layer_unary(context, i == 0 ? SDLF_COS : SDLF_SIN, angles, plain);
        if (status == SDLF_OK) status = sdlf_layer_scale(context, plain, factor, wave[i]);
    }
    if (status != SDLF_OK) return status;
    sdlf_tensor negative = sdlf_scratch(context, tables.dtype, angles.shape);
    status = sdlf_layer_unary(context, SDLF_NEGATE, wave[1], negative);
    const sdlf_tensor from[4] = {wave[0], wave[0], negative, wave[1]};
    for (int i = 0; i < 4 && status == SDLF_OK; i++) {
        sdlf_tensor to = sdlf_tensor_narrow(sdlf_tensor_narrow(parts, 0, i / 2, 1), 2, i % 2, 1);
        status = sdlf_layer_copy(context, sdlf_tensor_reshape(from[i], to.shape), to);
    }
    return status;
}

/* x with the halves of its rows as a separate axis, exchanged if `turned`. */
static sdlf_tensor in_halves(sdlf_tensor x, bool turned)
{
    int last = x.shape.rank - 1;
    int64_t half = x.shape.dim[last] / 2;
    x.shape.rank++;
    x.shape.dim[last] = 2;
    x.shape.dim[last + 1] = half;
    x.stride[last] = turned ? -half : half;
    x.stride[last + 1] = 1;
    if (turned) x.offset += half * (int64_t)sdlf_dtype_size(x.dtype);
    return x;
}

sdlf_status sdlf_rotary_turn(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor tables, bool back, sdlf_tensor y)
{
    int64_t positions = tables.shape.dim[1], length = tables.shape.dim[2];
    sdlf_tensor table[2];
    for (int i = 0; i < 2; i++)
        table[i] = sdlf_tensor_reshape(sdlf_tensor_narrow(tables, 0, i, 1), sdlf_shape(positions, 2, length / 2));
    sdlf_tensor straight = in_halves(x, false);
    sdlf_tensor along = sdlf_scratch(context, x.dtype, straight.shape);
    sdlf_tensor across = sdlf_scratch(context, x.dtype, straight.shape);
    sdlf_status status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, straight,
                                           sdlf_tensor_broadcast(table[0], straight.shape), along);
    if (status == SDLF_OK)
        status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, in_halves(x, true),
                                   sdlf_tensor_broadcast(table[1], straight.shape), across);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(context, back ? SDLF_BINARY_SUBTRACT : SDLF_BINARY_ADD, along, across,
                             sdlf_tensor_reshape(y, straight.shape));
}

/* ---- the layer ---- */

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    if (x.rank < 2 || x.rank >= SDLF_MAX_RANK || x.dim[x.rank - 1] % 2 != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (...,T,D) of 2 to %d dimensions with an even D, found %s",
                         SDLF_MAX_RANK - 1, sdlf_shape_print(x).text);
    return sdlf_signature_add_output(signature, signature->dtype, x);
}

static sdlf_status emit(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor from, bool back,
                        sdlf_tensor to)
{
    const sdlf_rotary_embedding_options *options = layer->options;
    int rank = from.shape.rank;
    sdlf_tensor tables =
        sdlf_scratch(context, from.dtype, sdlf_shape(2, from.shape.dim[rank - 2], from.shape.dim[rank - 1]));
    sdlf_status status = sdlf_rotary_tables(context, options->base, 1, tables);
    return status == SDLF_OK ? sdlf_rotary_turn(context, from, tables, back, to) : status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return emit(layer, context, context->input[0], false, context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    if (!sdlf_tensor_present(&context->input_gradient[0])) return SDLF_OK;
    return emit(layer, context, context->output_gradient[0], true, context->input_gradient[0]);
}

const sdlf_layer_class sdlf_rotary_embedding_class = {
    .name = "rotary_embedding",
    .summary = "pairs of elements rotated by their position",
    .options_size = sizeof(sdlf_rotary_embedding_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_rotary_embedding(sdlf_model *model, sdlf_node x, const sdlf_rotary_embedding_options *options)
{
    return sdlf_model_add(model, &sdlf_rotary_embedding_class, options, &x, 1);
}
