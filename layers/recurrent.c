/* SPDX-License-Identifier: MIT */
/* See recurrent.h. */
#include "layers/recurrent.h"

#include <math.h>

#include "layers/linear.h"

enum { MOST_STEPS = 1024 };

const sdlf_field sdlf_recurrent_fields[] = {
    {.name = "units",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_recurrent_options, units),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "size of the state, which is the output"},
    {.name = "last",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_recurrent_options, last),
     .help = "the output is only the state after the last step"},
    {.name = "reverse",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_recurrent_options, reverse),
     .help = "steps go from the last position to the first"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_recurrent_options, no_bias),
     .help = "leave both biases out"},
    {.name = NULL},
};

/* ---- shapes ---- */

static sdlf_status add_parameters(sdlf_signature *signature, const sdlf_recurrent_options *options, int64_t channels,
                                  int gates)
{
    int64_t rows = (int64_t)gates * options->units;
    const struct {
        const char *name;
        sdlf_shape shape;
    } parameter[] = {[SDLF_WEIGHT_IH] = {"weight_ih", sdlf_shape(rows, channels)},
                     [SDLF_WEIGHT_HH] = {"weight_hh", sdlf_shape(rows, options->units)},
                     [SDLF_BIAS_IH] = {"bias_ih", sdlf_shape(rows)},
                     [SDLF_BIAS_HH] = {"bias_hh", sdlf_shape(rows)}};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < (options->no_bias ? SDLF_BIAS_IH : SDLF_BIAS_HH + 1) && status == SDLF_OK; i++)
        status = sdlf_signature_add_parameter(signature,
                                              (sdlf_parameter_spec){.name = parameter[i].name,
                                                                    .shape = parameter[i].shape,
                                                                    .initializer = SDLF_INIT_UNIFORM,
                                                                    .scale = (float)(1 / sqrt((double)options->units)),
                                                                    .trainable = true,
                                                                    .decay = i < SDLF_BIAS_IH});
    return status;
}

/* Accepts no state, or `count` of them. */
static sdlf_status check_states(const sdlf_signature *signature, int count, sdlf_shape state)
{
    if (signature->input_count != 1 && signature->input_count != count + 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected 1 or %d inputs, found %d", count + 1, signature->input_count);
    for (int i = 1; i < signature->input_count; i++) {
        sdlf_shape wide, found = signature->input_shape[i];
        bool fits = found.rank == 2 && sdlf_shape_broadcast(&wide, found, state) && sdlf_shape_equal(wide, state);
        if (!fits || signature->input_dtype[i] != signature->dtype)
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected a state of float that broadcasts to %s, found %s %s",
                             sdlf_shape_print(state).text, sdlf_dtype_name(signature->input_dtype[i]),
                             sdlf_shape_print(found).text);
    }
    return SDLF_OK;
}

sdlf_status sdlf_recurrent_infer(const sdlf_layer *layer, sdlf_signature *signature, int gates, const int *more,
                                 int more_count)
{
    const sdlf_recurrent_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 3, "(N,T,C)");
    if (status != SDLF_OK) return status;
    int64_t samples = x.dim[0], steps = x.dim[1], units = options->units;
    status = check_states(signature, gates == 4 ? 2 : 1, sdlf_shape(samples, units));
    if (status != SDLF_OK) return status;
    if (steps > MOST_STEPS)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input has %lld steps, which are unrolled: expected 1 to %d",
                         (long long)steps, MOST_STEPS);
    sdlf_shape y = options->last ? sdlf_shape(samples, units) : sdlf_shape(samples, steps, units);
    status = sdlf_signature_add_output(signature, signature->dtype, y);
    if (status == SDLF_OK) status = add_parameters(signature, options, x.dim[2], gates);
    if (status == SDLF_OK && signature->training)
        status = sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(steps + 1, samples, units));
    for (int i = 0; i < more_count && status == SDLF_OK && signature->training; i++)
        status = sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(steps, samples, more[i] * units));
    return status;
}

sdlf_tensor sdlf_recurrent_scratch(const sdlf_recurrent *r, sdlf_shape shape)
{
    return sdlf_scratch(r->context, r->context->input[0].dtype, shape);
}

sdlf_tensor sdlf_recurrent_one(const sdlf_recurrent *r)
{
    return sdlf_recurrent_scratch(r, sdlf_shape(1, r->samples, r->units));
}

sdlf_tensor sdlf_recurrent_saved(const sdlf_recurrent *r, int index, sdlf_shape shape)
{
    if (!r->context->training) return sdlf_recurrent_scratch(r, shape);
    sdlf_tensor saved = r->context->saved[index];
    saved = sdlf_tensor_reshape(saved, sdlf_shape(sdlf_tensor_count(&saved)));
    return sdlf_tensor_reshape(sdlf_tensor_narrow(saved, 0, 0, sdlf_shape_count(shape)), shape);
}

sdlf_recurrent sdlf_recurrent_of(const sdlf_layer *layer, sdlf_layer_context *context, int gates)
{
    sdlf_shape x = context->input[0].shape;
    sdlf_recurrent r = {.options = layer->options, .context = context, .gates = gates};
    r.samples = x.dim[0], r.steps = x.dim[1], r.channels = x.dim[2], r.units = r.options->units;
    r.states = sdlf_recurrent_saved(&r, 0, sdlf_shape(r.steps + 1, r.samples, r.units));
    r.h0 = r.c0 = (sdlf_tensor){.dtype = SDLF_NONE};
    sdlf_shape state = sdlf_shape(r.samples, r.units);
    if (context->input_count > 1) r.h0 = sdlf_tensor_broadcast(context->input[1], state);
    if (context->input_count > 2) r.c0 = sdlf_tensor_broadcast(context->input[2], state);
    return r;
}

/* ---- views ---- */

sdlf_tensor sdlf_recurrent_at(sdlf_tensor tensor, int64_t t)
{
    return sdlf_tensor_reshape(sdlf_tensor_narrow(tensor, 0, t, 1), sdlf_shape_without(tensor.shape, 0));
}

sdlf_tensor sdlf_recurrent_gates(const sdlf_recurrent *r, sdlf_tensor rows)
{
    static const int order[] = {1, 0, 2};
    return sdlf_layer_permuted(sdlf_tensor_reshape(rows, sdlf_shape(r->samples, r->gates, r->units)), order);
}

sdlf_tensor sdlf_recurrent_part(sdlf_tensor gates, int first, int count)
{
    return sdlf_tensor_narrow(gates, 0, first, count);
}

sdlf_tensor sdlf_recurrent_state(const sdlf_recurrent *r, int64_t t)
{
    return sdlf_tensor_narrow(r->states, 0, t, 1);
}

/* (T,N,H) as rows of all steps, or the inverse. */
static sdlf_tensor as_rows(sdlf_tensor tensor)
{
    sdlf_shape s = tensor.shape;
    return sdlf_tensor_reshape(tensor, sdlf_shape(s.dim[0] * s.dim[1], s.dim[2]));
}

/* to = from with its first two axes exchanged, and the steps, axis `time` of from, in processing order. */
static sdlf_status exchange(const sdlf_recurrent *r, sdlf_tensor from, int time, sdlf_tensor to)
{
    static const int order[] = {1, 0, 2};
    if (r->options->reverse) {
        from.offset += (r->steps - 1) * from.stride[time] * (int64_t)sdlf_dtype_size(from.dtype);
        from.stride[time] = -from.stride[time];
    }
    return sdlf_layer_copy(r->context, sdlf_layer_permuted(from, order), to);
}

/* x, (T,N,C). */
static sdlf_status take_input(const sdlf_recurrent *r, sdlf_tensor *x)
{
    *x = sdlf_recurrent_scratch(r, sdlf_shape(r->steps, r->samples, r->channels));
    return exchange(r, r->context->input[0], 1, *x);
}

static sdlf_tensor parameter(const sdlf_recurrent *r, const sdlf_tensor *of, int index)
{
    return r->options->no_bias && index >= SDLF_BIAS_IH ? (sdlf_tensor){.dtype = SDLF_NONE} : of[index];
}

/* ---- forward ---- */

sdlf_status sdlf_recurrent_set_state(const sdlf_recurrent *r, sdlf_tensor state, sdlf_tensor to)
{
    if (!sdlf_tensor_present(&state)) return sdlf_layer_fill(r->context, to, 0);
    return sdlf_layer_copy(r->context, state, to);
}

sdlf_status sdlf_recurrent_begin(const sdlf_recurrent *r, sdlf_tensor *projected)
{
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    sdlf_tensor x, weight = r->context->parameter[SDLF_WEIGHT_IH];
    *projected = sdlf_recurrent_scratch(r, sdlf_shape(r->steps, r->samples, r->gates * r->units));
    sdlf_status status = sdlf_recurrent_set_state(r, r->h0, sdlf_recurrent_at(r->states, 0));
    if (status == SDLF_OK) status = take_input(r, &x);
    if (status != SDLF_OK) return status;
    return sdlf_layer_linear(r->context, as_rows(x), weight, parameter(r, r->context->parameter, SDLF_BIAS_IH), none,
                             as_rows(*projected));
}

sdlf_status sdlf_recurrent_product(const sdlf_recurrent *r, int64_t t, sdlf_tensor product)
{
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    return sdlf_layer_linear(r->context, sdlf_recurrent_at(r->states, t), r->context->parameter[SDLF_WEIGHT_HH],
                             parameter(r, r->context->parameter, SDLF_BIAS_HH), none, product);
}

sdlf_status sdlf_recurrent_end(const sdlf_recurrent *r)
{
    sdlf_tensor y = r->context->output[0];
    if (r->options->last) return sdlf_layer_copy(r->context, sdlf_recurrent_at(r->states, r->steps), y);
    return exchange(r, sdlf_tensor_narrow(r->states, 0, 1, r->steps), 0, y);
}

/* ---- backward ---- */

sdlf_status sdlf_recurrent_take_gradient(const sdlf_recurrent *r, sdlf_tensor *dy)
{
    sdlf_tensor from = r->context->output_gradient[0];
    *dy = from;
    if (r->options->last) {
        *dy = sdlf_tensor_reshape(from, sdlf_shape_prepend(1, from.shape));
        return SDLF_OK;
    }
    *dy = sdlf_recurrent_scratch(r, sdlf_shape(r->steps, r->samples, r->units));
    return exchange(r, from, 1, *dy);
}

sdlf_status sdlf_recurrent_step_back(const sdlf_recurrent *r, int64_t t, sdlf_tensor rows, sdlf_tensor dy,
                                     sdlf_tensor beside, sdlf_tensor *dh)
{
    bool alone = r->options->last || t == 0;
    sdlf_tensor residual = alone ? beside : sdlf_tensor_narrow(dy, 0, t - 1, 1);
    sdlf_status status = SDLF_OK;
    if (!alone && sdlf_tensor_present(&beside)) {
        sdlf_tensor sum = sdlf_recurrent_one(r);
        status = sdlf_layer_binary(r->context, SDLF_BINARY_ADD, beside, residual, sum);
        residual = sum;
    }
    *dh = sdlf_recurrent_one(r);
    sdlf_shape flat = sdlf_shape(r->samples, r->units);
    if (sdlf_tensor_present(&residual)) residual = sdlf_tensor_reshape(residual, flat);
    if (status != SDLF_OK) return status;
    return sdlf_emit(r->context,
                     &(sdlf_operation){
                         .kind = SDLF_GEMM,
                         .in = {rows, r->context->parameter[SDLF_WEIGHT_HH], {.dtype = SDLF_NONE}, residual},
                         .out = {sdlf_tensor_reshape(*dh, flat)},
                         .gemm = {.alpha = 1},
                     });
}

sdlf_status sdlf_recurrent_state_gradient(const sdlf_recurrent *r, int input, sdlf_tensor from)
{
    if (r->context->input_count <= input) return SDLF_OK;
    return sdlf_layer_sum_to(r->context, sdlf_tensor_reshape(from, sdlf_shape(r->samples, r->units)),
                             r->context->input_gradient[input]);
}

sdlf_status sdlf_recurrent_finish(const sdlf_recurrent *r, sdlf_tensor from_x, sdlf_tensor from_states)
{
    const sdlf_tensor none = {.dtype = SDLF_NONE}, *weight = r->context->parameter,
                      *back = r->context->parameter_gradient;
    sdlf_tensor x, dx = none, wanted = r->context->input_gradient[0];
    sdlf_tensor before = as_rows(sdlf_tensor_narrow(r->states, 0, 0, r->steps));
    sdlf_status status = take_input(r, &x);
    if (sdlf_tensor_present(&wanted)) dx = sdlf_recurrent_scratch(r, x.shape);
    if (status == SDLF_OK)
        status = sdlf_layer_linear_backward(r->context, as_rows(x), weight[SDLF_WEIGHT_IH], as_rows(from_x),
                                            sdlf_tensor_present(&dx) ? as_rows(dx) : none, back[SDLF_WEIGHT_IH],
                                            parameter(r, back, SDLF_BIAS_IH));
    if (status == SDLF_OK)
        status = sdlf_layer_linear_backward(r->context, before, weight[SDLF_WEIGHT_HH], as_rows(from_states), none,
                                            back[SDLF_WEIGHT_HH], parameter(r, back, SDLF_BIAS_HH));
    return status == SDLF_OK && sdlf_tensor_present(&wanted) ? exchange(r, dx, 0, wanted) : status;
}

sdlf_status sdlf_recurrent_slope(const sdlf_recurrent *r, sdlf_activation_function function, sdlf_tensor y,
                                 sdlf_tensor dy, sdlf_tensor dx)
{
    return sdlf_emit(r->context, &(sdlf_operation){
                                     .kind = SDLF_ACTIVATION_BACKWARD,
                                     .in = {y, dy},
                                     .out = {dx},
                                     .activation = {.function = function},
                                 });
}
