/* multi_head_attention: self-attention of several heads; see layers/sequences.h for the formula.
 *
 *   x (N,T,C) -> y (N,T,C), H heads of D = C / H; q is scaled by 1 / sqrt(D) as it is cut out of the projection.
 *   Saved: q, k, v as heads (3,N H,T,D); the probabilities p (N H,T,T); what the heads say (N,T,C); with `rotary` its tables.
 *   With o = p v: dp = do v^T, dv = p^T do, ds = p (dp - sum p dp), dq = ds k, dk = ds^T q. Dropout acts on p between softmax and
 *   product, and is drawn again for the gradient. The mask of `causal` is a vector of 2 T - 1 numbers seen as a matrix, entry
 *   T - 1 - i + j at (i,j). Memory grows with T^2: p. */
#include "layers/rotary.h"

#include <math.h>

#define NOT_SEEN (-1e30) /* a score of it has the probability 0 beside any other */

static const sdlf_field fields[] = {
    {.name = "heads",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_multi_head_attention_options, heads),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "heads, which share the channels equally"},
    {.name = "causal",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, causal),
     .help = "a position looks at itself and those before it only"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, no_bias),
     .help = "leave both biases out"},
    {.name = "dropout",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_multi_head_attention_options, dropout),
     .maximum = 0.999999,
     .help = "share of the probabilities that is dropped while training"},
    {.name = "rotary",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, rotary),
     .help = "queries and keys are turned by their position"},
    {.name = "base",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_multi_head_attention_options, base),
     .minimum = 1,
     .maximum = 1e9,
     .fallback = 10000,
     .zero_means_default = true,
     .help = "of the rotary positions"},
    {.name = NULL},
};

enum { IN_WEIGHT, OUT_WEIGHT, IN_BIAS, OUT_BIAS };
enum { HEADS, PROBABILITIES, CONTEXT, TABLES };

/* ---- shapes ---- */

static sdlf_status check_mask(const sdlf_signature *signature, sdlf_shape scores)
{
    sdlf_shape wide, mask = signature->input_shape[1];
    sdlf_dtype dtype = signature->input_dtype[1];
    bool fits = sdlf_shape_broadcast(&wide, mask, scores) && sdlf_shape_equal(wide, scores);
    if (fits && (dtype == SDLF_BOOL || dtype == signature->dtype)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "expected a mask of bool or float that broadcasts to %s, found %s %s",
                     sdlf_shape_print(scores).text, sdlf_dtype_name(dtype), sdlf_shape_print(mask).text);
}

static sdlf_status add_parameters(sdlf_signature *signature, int64_t channels, bool biased)
{
    const int64_t units[2] = {3 * channels, channels};
    static const char *const weight[2] = {"in_proj_weight", "out_proj_weight"};
    static const char *const bias[2] = {"in_proj_bias", "out_proj_bias"};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 2 && status == SDLF_OK; i++)
        status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = weight[i],
                                                                               .shape = sdlf_shape(units[i], channels),
                                                                               .initializer = SDLF_INIT_XAVIER_UNIFORM,
                                                                               .fan_in = channels,
                                                                               .fan_out = units[i],
                                                                               .trainable = true,
                                                                               .decay = true});
    for (int i = 0; i < 2 && biased && status == SDLF_OK; i++)
        status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = bias[i],
                                                                               .shape = sdlf_shape(units[i]),
                                                                               .initializer = SDLF_INIT_ZERO,
                                                                               .trainable = true});
    return status;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_multi_head_attention_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 3, "(N,T,C)");
    if (status != SDLF_OK) return status;
    int64_t samples = x.dim[0], length = x.dim[1], channels = x.dim[2], heads = options->heads;
    if (channels % heads != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input's %lld channels do not divide into %lld heads",
                         (long long)channels, (long long)heads);
    if (options->rotary && channels / heads % 2 != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "rotary positions need an even number of channels in a head, found %lld",
                         (long long)(channels / heads));
    if (signature->input_count > 1) status = check_mask(signature, sdlf_shape(samples, heads, length, length));
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status == SDLF_OK) status = add_parameters(signature, channels, !options->no_bias);
    const sdlf_shape saved[] = {
        [HEADS] = sdlf_shape(3, samples * heads, length, channels / heads),
        [PROBABILITIES] = sdlf_shape(samples * heads, length, length),
        [CONTEXT] = x,
        [TABLES] = sdlf_shape(2, 2, length, channels / heads),
    };
    for (int i = HEADS; i <= (options->rotary ? TABLES : CONTEXT) && status == SDLF_OK && signature->training; i++)
        status = sdlf_signature_add_saved(signature, signature->dtype, saved[i]);
    return status;
}

/* What both passes work with. */
typedef struct attention {
    const sdlf_multi_head_attention_options *options;
    sdlf_layer_context *context;
    int64_t samples, length, channels, heads, depth; /* N, T, C, H, D */
    double scale;
    sdlf_tensor x;                  /* (N T,C) */
    sdlf_tensor q, k, v;            /* (N H,T,D) each, one behind the other */
    sdlf_tensor p, said;            /* (N H,T,T); (N T,C) */
    sdlf_tensor q_tables, k_tables; /* of rotary positions, (2,T,D) each; that of q scales, too */
} attention;

static sdlf_tensor saved_or_scratch(const attention *a, int index, sdlf_shape shape)
{
    sdlf_layer_context *context = a->context;
    return context->training ? context->saved[index] : sdlf_scratch(context, context->input[0].dtype, shape);
}

static sdlf_tensor part(sdlf_tensor whole, int index, sdlf_shape shape)
{
    return sdlf_tensor_reshape(sdlf_tensor_narrow(whole, 0, index, 1), shape);
}

static attention attention_of(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_shape x = context->input[0].shape;
    attention a = {.options = layer->options, .context = context};
    a.samples = x.dim[0], a.length = x.dim[1], a.channels = x.dim[2];
    a.heads = a.options->heads, a.depth = a.channels / a.heads;
    a.scale = 1 / sqrt((double)a.depth);
    int64_t rows = a.samples * a.length, batch = a.samples * a.heads;
    sdlf_shape head = sdlf_shape(batch, a.length, a.depth), table = sdlf_shape(2, a.length, a.depth);
    sdlf_tensor heads = saved_or_scratch(&a, HEADS, sdlf_shape_prepend(3, head));
    a.x = sdlf_tensor_reshape(context->input[0], sdlf_shape(rows, a.channels));
    a.q = part(heads, 0, head), a.k = part(heads, 1, head), a.v = part(heads, 2, head);
    a.p = saved_or_scratch(&a, PROBABILITIES, sdlf_shape(batch, a.length, a.length));
    a.said = sdlf_tensor_reshape(saved_or_scratch(&a, CONTEXT, x), sdlf_shape(rows, a.channels));
    if (!a.options->rotary) return a;
    sdlf_tensor tables = saved_or_scratch(&a, TABLES, sdlf_shape_prepend(2, table));
    a.q_tables = part(tables, 0, table), a.k_tables = part(tables, 1, table);
    return a;
}

static sdlf_tensor scratch(const attention *a, sdlf_shape shape)
{
    return sdlf_scratch(a->context, a->x.dtype, shape);
}

/* (N T,C) or one of the three parts of (N T,3C), seen as heads (N,H,T,D). */
static sdlf_tensor as_heads(const attention *a, sdlf_tensor rows, int index)
{
    static const int order[] = {0, 2, 1, 3};
    int64_t parts = rows.shape.dim[1] / a->channels;
    sdlf_tensor cut = sdlf_tensor_reshape(rows, sdlf_shape(a->samples, a->length, parts, a->heads, a->depth)),
                one = cut;
    one = sdlf_tensor_narrow(cut, 2, index, 1);
    for (int axis = 2; axis < 4; axis++) { /* that axis of 1 goes */
        one.shape.dim[axis] = one.shape.dim[axis + 1];
        one.stride[axis] = one.stride[axis + 1];
    }
    one.shape.rank = 4;
    return sdlf_layer_permuted(one, order);
}

static sdlf_shape heads_shape(const attention *a)
{
    return sdlf_shape(a->samples, a->heads, a->length, a->depth);
}

/* y = left right of every head. */
static sdlf_status multiply(const attention *a, sdlf_tensor left, bool turn_left, sdlf_tensor right, bool turn_right,
                            sdlf_tensor y)
{
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = SDLF_MATMUL,
                                     .in = {left, right},
                                     .out = {y},
                                     .matmul = {.transpose_a = turn_left, .transpose_b = turn_right},
                                 });
}

static sdlf_status drop(const attention *a, sdlf_operation_kind kind, sdlf_tensor from, sdlf_tensor to)
{
    const sdlf_layer_context *context = a->context;
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = kind,
                                     .in = {from, context->step},
                                     .out = {to},
                                     .dropout = {.probability = a->options->dropout,
                                                 .seed = context->seed,
                                                 .stream = context->stream,
                                                 .first = context->first_sample * a->heads * a->length * a->length},
                                 });
}

/* p as the product sees it: dropped out of while training. */
static sdlf_status take_dropped(const attention *a, sdlf_tensor *dropped)
{
    *dropped = a->p;
    if (!a->context->training || a->context->eval_mode || a->options->dropout == 0) return SDLF_OK;
    *dropped = scratch(a, a->p.shape);
    return drop(a, SDLF_DROPOUT_FORWARD, a->p, *dropped);
}

/* ---- forward ---- */

/* q, k and v from the projection (N T,3C). */
static sdlf_status cut_heads(const attention *a, sdlf_tensor projected)
{
    sdlf_shape shape = heads_shape(a);
    sdlf_tensor q = sdlf_tensor_reshape(a->q, shape), k = sdlf_tensor_reshape(a->k, shape);
    sdlf_tensor q_from = as_heads(a, projected, 0), k_from = as_heads(a, projected, 1);
    sdlf_status status = sdlf_layer_copy(a->context, as_heads(a, projected, 2), sdlf_tensor_reshape(a->v, shape));
    if (status != SDLF_OK) return status;
    if (!a->options->rotary) {
        status = sdlf_layer_scale(a->context, q_from, a->scale, q);
        return status == SDLF_OK ? sdlf_layer_copy(a->context, k_from, k) : status;
    }
    status = sdlf_rotary_tables(a->context, a->options->base, a->scale, a->q_tables);
    if (status == SDLF_OK) status = sdlf_rotary_tables(a->context, a->options->base, 1, a->k_tables);
    if (status == SDLF_OK) status = sdlf_rotary_turn(a->context, q_from, a->q_tables, false, q);
    return status == SDLF_OK ? sdlf_rotary_turn(a->context, k_from, a->k_tables, false, k) : status;
}

/* What lies ahead becomes invisible. */
static sdlf_status mask_causally(const attention *a, sdlf_tensor *scores)
{
    int64_t length = a->length;
    sdlf_tensor line = scratch(a, sdlf_shape(2 * length)), ahead = line, mask = scratch(a, sdlf_shape(length, length));
    sdlf_tensor masked = scratch(a, scores->shape);
    ahead.shape = mask.shape; /* (i,j) is entry T - 1 - i + j */
    ahead.stride[0] = -1;
    ahead.stride[1] = 1;
    ahead.offset += (length - 1) * (int64_t)sdlf_dtype_size(line.dtype);
    sdlf_status status = sdlf_layer_fill(a->context, sdlf_tensor_narrow(line, 0, 0, length), 0);
    if (status == SDLF_OK) status = sdlf_layer_fill(a->context, sdlf_tensor_narrow(line, 0, length, length), NOT_SEEN);
    if (status == SDLF_OK) status = sdlf_layer_copy(a->context, ahead, mask);
    if (status == SDLF_OK)
        status =
            sdlf_layer_binary(a->context, SDLF_BINARY_ADD, *scores, sdlf_tensor_broadcast(mask, scores->shape), masked);
    *scores = masked;
    return status;
}

static sdlf_status mask_as_said(const attention *a, sdlf_tensor *scores)
{
    sdlf_shape shape = sdlf_shape(a->samples, a->heads, a->length, a->length);
    sdlf_tensor mask = sdlf_tensor_broadcast(a->context->input[1], shape), from = sdlf_tensor_reshape(*scores, shape);
    sdlf_tensor masked = scratch(a, shape), unseen = scratch(a, sdlf_shape(1));
    *scores = sdlf_tensor_reshape(masked, scores->shape);
    if (mask.dtype != SDLF_BOOL) return sdlf_layer_binary(a->context, SDLF_BINARY_ADD, from, mask, masked);
    sdlf_status status = sdlf_layer_fill(a->context, unseen, NOT_SEEN);
    if (status != SDLF_OK) return status;
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = SDLF_SELECT,
                                     .in = {mask, from, sdlf_tensor_broadcast(unseen, shape)},
                                     .out = {masked},
                                 });
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    attention a = attention_of(layer, context);
    bool biased = !a.options->no_bias;
    sdlf_tensor none = {.dtype = SDLF_NONE}, dropped;
    sdlf_tensor projected = scratch(&a, sdlf_shape(a.samples * a.length, 3 * a.channels));
    sdlf_tensor scores = scratch(&a, a.p.shape), said = scratch(&a, a.q.shape);
    sdlf_status status =
        sdlf_emit(context, &(sdlf_operation){
                               .kind = SDLF_GEMM,
                               .in = {a.x, context->parameter[IN_WEIGHT], biased ? context->parameter[IN_BIAS] : none},
                               .out = {projected},
                               .gemm = {.transpose_b = true, .alpha = 1},
                           });
    if (status == SDLF_OK) status = cut_heads(&a, projected);
    if (status == SDLF_OK) status = multiply(&a, a.q, false, a.k, true, scores);
    if (status == SDLF_OK && a.options->causal) status = mask_causally(&a, &scores);
    if (status == SDLF_OK && context->input_count > 1) status = mask_as_said(&a, &scores);
    if (status == SDLF_OK)
        status = sdlf_emit(
            context,
            &(sdlf_operation){.kind = SDLF_SOFTMAX_FORWARD, .in = {scores}, .out = {a.p}, .softmax = {.axis = 2}});
    if (status == SDLF_OK) status = take_dropped(&a, &dropped);
    if (status == SDLF_OK) status = multiply(&a, dropped, false, a.v, false, said);
    if (status == SDLF_OK)
        status = sdlf_layer_copy(context, sdlf_tensor_reshape(said, heads_shape(&a)), as_heads(&a, a.said, 0));
    if (status != SDLF_OK) return status;
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_GEMM,
                         .in = {a.said, context->parameter[OUT_WEIGHT], biased ? context->parameter[OUT_BIAS] : none},
                         .out = {sdlf_tensor_reshape(context->output[0], a.x.shape)},
                         .gemm = {.transpose_b = true, .alpha = 1},
                     });
}

/* ---- backward ---- */

/* The gradients of y = x weight^T + bias, of rows. */
static sdlf_status project_back(const attention *a, sdlf_tensor dy, sdlf_tensor x, int weight, int bias, sdlf_tensor dx)
{
    sdlf_layer_context *context = a->context;
    sdlf_status status = SDLF_OK;
    if (!a->options->no_bias) status = sdlf_layer_sum_to(context, dy, context->parameter_gradient[bias]);
    if (status == SDLF_OK)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_GEMM,
                                        .in = {dy, x},
                                        .out = {context->parameter_gradient[weight]},
                                        .gemm = {.transpose_a = true, .alpha = 1},
                                    });
    if (status != SDLF_OK) return status;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_GEMM,
                                  .in = {dy, context->parameter[weight]},
                                  .out = {dx},
                                  .gemm = {.alpha = 1},
                              });
}

/* The gradient of a part of the projection, from that of its heads. */
static sdlf_status join_heads(const attention *a, sdlf_tensor gradient, int index, sdlf_tensor projected)
{
    sdlf_tensor from = sdlf_tensor_reshape(gradient, heads_shape(a)), turned = scratch(a, from.shape);
    sdlf_status status = SDLF_OK;
    if (a->options->rotary && index < 2)
        status = sdlf_rotary_turn(a->context, from, index == 0 ? a->q_tables : a->k_tables, true, turned);
    else if (index == 0)
        status = sdlf_layer_scale(a->context, from, a->scale, turned);
    else
        turned = from;
    return status == SDLF_OK ? sdlf_layer_copy(a->context, turned, as_heads(a, projected, index)) : status;
}

/* ds of do, of the heads; and dv. */
static sdlf_status score_gradient(const attention *a, sdlf_tensor said, sdlf_tensor dv, sdlf_tensor *ds)
{
    sdlf_tensor dropped, dp = scratch(a, a->p.shape);
    *ds = scratch(a, a->p.shape);
    sdlf_status status = take_dropped(a, &dropped);
    if (status == SDLF_OK) status = multiply(a, dropped, true, said, false, dv);
    if (status == SDLF_OK) status = multiply(a, said, false, a->v, true, dp);
    if (status == SDLF_OK && a->options->dropout > 0 && !a->context->eval_mode) {
        sdlf_tensor kept = dp;
        dp = scratch(a, a->p.shape);
        status = drop(a, SDLF_DROPOUT_BACKWARD, kept, dp);
    }
    if (status != SDLF_OK) return status;
    return sdlf_emit(
        a->context,
        &(sdlf_operation){.kind = SDLF_SOFTMAX_BACKWARD, .in = {a->p, dp}, .out = {*ds}, .softmax = {.axis = 2}});
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    attention a = attention_of(layer, context);
    sdlf_tensor dy = sdlf_tensor_reshape(context->output_gradient[0], a.x.shape), ds;
    sdlf_tensor rows = scratch(&a, a.x.shape), said = scratch(&a, a.q.shape);
    sdlf_tensor projected = scratch(&a, sdlf_shape(a.x.shape.dim[0], 3 * a.channels)), gradient[3];
    for (int i = 0; i < 3; i++) gradient[i] = scratch(&a, a.q.shape);
    sdlf_status status = project_back(&a, dy, a.said, OUT_WEIGHT, OUT_BIAS, rows);
    if (status == SDLF_OK)
        status = sdlf_layer_copy(context, as_heads(&a, rows, 0), sdlf_tensor_reshape(said, heads_shape(&a)));
    if (status == SDLF_OK) status = score_gradient(&a, said, gradient[2], &ds);
    if (status == SDLF_OK) status = multiply(&a, ds, false, a.k, false, gradient[0]);
    if (status == SDLF_OK) status = multiply(&a, ds, true, a.q, false, gradient[1]);
    for (int i = 0; i < 3 && status == SDLF_OK; i++) status = join_heads(&a, gradient[i], i, projected);
    if (status == SDLF_OK && context->input_count > 1)
        status = sdlf_layer_sum_to(context, sdlf_tensor_reshape(ds, sdlf_shape(a.samples, a.heads, a.length, a.length)),
                                   context->input_gradient[1]);
    sdlf_tensor dx = context->input_gradient[0];
    if (sdlf_tensor_present(&dx)) dx = sdlf_tensor_reshape(dx, a.x.shape);
    return status == SDLF_OK ? project_back(&a, projected, a.x, IN_WEIGHT, IN_BIAS, dx) : status;
}

const sdlf_layer_class sdlf_multi_head_attention_class = {
    .name = "multi_head_attention",
    .summary = "self-attention of several heads, causal or masked",
    .options_size = sizeof(sdlf_multi_head_attention_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_multi_head_attention(sdlf_model *model, sdlf_node x, const sdlf_multi_head_attention_options *options)
{
    return sdlf_model_add(model, &sdlf_multi_head_attention_class, options, &x, 1);
}

sdlf_node sdlf_multi_head_attention_masked(sdlf_model *model, sdlf_node x, sdlf_node mask,
                                           const sdlf_multi_head_attention_options *options)
{
    const sdlf_node inputs[] = {x, mask};
    return sdlf_model_add(model, &sdlf_multi_head_attention_class, options, inputs, 2);
}
