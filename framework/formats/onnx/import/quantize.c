/* SPDX-License-Identifier: MIT */
/* QuantizeLinear and DequantizeLinear of integers of up to two bytes and 8-bit floats: with one scale, one per index of
 * an axis, or one per block along an axis. Constants of any integer type are folded, so that a weight may be stored
 * quantised. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/window.h"
#include "framework/formats/onnx/small_floats.h"

/* The granularity of scales and zero points along x. */
typedef struct grain {
    int axis;       /* -1: per tensor */
    int64_t length; /* indices of the axis that share a scale: 1, or the block size */
} grain;

static grain grain_of(onnx_context *c, sdlf_shape x, sdlf_shape scale)
{
    int64_t block = onnx_integer(c, "block_size", 0);
    grain g = {.axis = -1, .length = 1};
    if (!onnx_ok(c) || (sdlf_shape_count(scale) == 1 && block == 0)) return g;
    g.axis = onnx_axis(c, onnx_integer(c, "axis", 1), x.rank);
    g.length = block > 0 ? block : 1;
    if (!onnx_ok(c)) return g;
    bool fits = block > 0 ? scale.rank == x.rank : block == 0 && scale.rank == 1;
    for (int i = 0; i < scale.rank && fits; i++) {
        int axis = block > 0 ? i : g.axis;
        int64_t dim = x.dim[axis];
        fits = scale.dim[i] == (axis == g.axis && dim > 0 ? (dim - 1) / g.length + 1 : dim);
    }
    if (!fits)
        onnx_unsupported(c, "a scale or zero point of shape %s for an input %s in blocks of %lld",
                         sdlf_shape_print(scale).text, sdlf_shape_print(x).text, (long long)block);
    return g;
}

/* ---- as layers ---- */

/* Expands values per block of `length` indices along an axis to values per index, `size` of them. */
static onnx_flow repeated(onnx_context *c, onnx_flow flow, int axis, int64_t length, int64_t size)
{
    sdlf_shape apart = {.rank = flow.shape.rank + 1}, joined = flow.shape;
    if (apart.rank > SDLF_MAX_RANK) onnx_unsupported(c, "blocks of an input of %d dimensions", flow.shape.rank);
    if (!onnx_ok(c)) return flow;
    for (int i = 0; i < apart.rank; i++)
        apart.dim[i] = i <= axis ? flow.shape.dim[i] : i == axis + 1 ? 1 : flow.shape.dim[i - 1];
    if (length > size) length = size;
    flow = onnx_reshape(c, flow, apart);
    apart.dim[axis + 1] = length;
    joined.dim[axis] *= length;
    flow = onnx_layer(c, "expand", &(sdlf_expand_options){.shape = apart}, &flow, 1);
    return onnx_take(c, onnx_reshape(c, flow, joined), axis, 0, size, 1);
}

/* Input i in a shape that broadcasts with x. */
static onnx_flow along_axis(onnx_context *c, int input, sdlf_shape x)
{
    grain g = grain_of(c, x, onnx_shape(c, input));
    onnx_flow flow = onnx_in(c, input);
    if (!onnx_ok(c) || g.axis < 0) return onnx_reshape(c, flow, SDLF_SCALAR);
    flow = onnx_cast(c, flow, SDLF_FLOAT32);
    if (g.length > 1) return repeated(c, flow, g.axis, g.length, x.dim[g.axis]);
    if (flow.shape.rank != 1) return flow;
    sdlf_shape shape = {.rank = x.rank - g.axis, .dim = {x.dim[g.axis]}};
    for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, flow, shape);
}

/* The smallest and largest number of an integer type. */
static bool range_of(onnx_type type, double *low, double *high)
{
    static const struct {
        onnx_type type;
        double low, high;
    } ranges[] = {{ONNX_UINT8, 0, 255},
                  {ONNX_INT8, -128, 127},
                  {ONNX_UINT16, 0, 65535},
                  {ONNX_INT16, -32768, 32767},
                  {ONNX_UINT4, 0, 15},
                  {ONNX_INT4, -8, 7},
                  {ONNX_UINT2, 0, 3},
                  {ONNX_INT2, -2, 1},
                  {ONNX_UINT32, 0, 4294967295.0},
                  {ONNX_INT32, -2147483648.0, 2147483647.0}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].type != type) continue;
        *low = ranges[i].low;
        *high = ranges[i].high;
        return true;
    }
    return false;
}

/* The target type: the zero point's, or the attribute's, or uint8. */
static onnx_type target_of(onnx_context *c)
{
    int64_t type = onnx_integer(c, "output_dtype", 0);
    if (onnx_is_constant(c, 2)) return c->input[2]->tensor.type;
    if (onnx_narrow_input(c, 2) != ONNX_UNDEFINED) return onnx_narrow_input(c, 2);
    if (onnx_has(c, 2)) return onnx_type_of(c->input[2]->flow.dtype);
    return type == 0 ? ONNX_UINT8 : type > 0 && type < ONNX_TYPE_COUNT ? (onnx_type)type : ONNX_UNDEFINED;
}

/* x divided by the scale, or times it: a constant scalar becomes the layer's option. */
static onnx_flow with_scale(onnx_context *c, const char *function, onnx_flow y, sdlf_shape x)
{
    if (onnx_is_constant(c, 1) && onnx_known(c, 1)->count == 1) {
        double scale = onnx_known_number(c, 1, 1);
        if (scale > 0 && scale < 3e38) return onnx_with_number(c, function, y, scale);
    }
    onnx_flow operands[] = {y, along_axis(c, 1, x)};
    return onnx_binary(c, function, operands);
}

/* y plus or minus its zero points, input 2: a constant scalar becomes the layer's option. */
static onnx_flow with_zero(onnx_context *c, const char *function, onnx_flow y, sdlf_shape x)
{
    if (onnx_is_constant(c, 2) && onnx_known(c, 2)->count == 1)
        return onnx_with_number(c, function, y, onnx_known_number(c, 2, 0));
    onnx_flow operands[] = {y, onnx_cast(c, along_axis(c, 2, x), SDLF_FLOAT32)};
    return onnx_binary(c, function, operands);
}

/* Zero points that are all 0 can be skipped. */
static bool is_all_zero(onnx_context *c, int input)
{
    if (!onnx_is_constant(c, input) || onnx_known(c, input)->count > 4096) return false;
    onnx_list list = onnx_known_integers(c, input);
    for (int i = 0; i < list.count; i++)
        if (list.item[i] != 0) return false;
    return list.count > 0;
}

/* Checks that the scale is float, or integer or a power of 2 where QuantizeLinear allows it, and the zero point count. */
static void check_scale(onnx_context *c)
{
    if (!onnx_ok(c)) return;
    sdlf_shape scale = onnx_shape(c, 1), zero = onnx_has(c, 2) ? onnx_shape(c, 2) : scale;
    onnx_type type = onnx_is_constant(c, 1) ? onnx_known(c, 1)->type : onnx_type_of(c->input[1]->flow.dtype);
    const bool counts = type == ONNX_INT32 && c->opset >= 19 && strcmp(c->type->type, "QuantizeLinear") == 0;
    if (!sdlf_dtype_is_float(onnx_type_dtype((int)type)) && !counts && !onnx_type_is_small_float((int)type))
        onnx_wrong(c, "a scale of %s", onnx_type_name(type));
    if (sdlf_shape_count(scale) != sdlf_shape_count(zero))
        onnx_wrong(c, "its scale is %s, and its zero point %s", sdlf_shape_print(scale).text,
                   sdlf_shape_print(zero).text);
}

/* y = saturate(round(x / scale) + zero point), ties to even */
static void convert_quantize(onnx_context *c)
{
    check_scale(c);
    onnx_flow x = onnx_in(c, 0);
    onnx_type type = target_of(c);
    bool narrow =
        onnx_type_dtype((int)type) == SDLF_NONE && type != ONNX_UINT32; /* its computed type does not saturate there */
    double low = 0, high = 0;
    if (!(narrow ? onnx_type_computed((int)type) != SDLF_NONE : type == ONNX_UINT8 || type == ONNX_INT8))
        onnx_unsupported(c, "to %s", onnx_type_name(type));
    onnx_flow y = with_scale(c, "div", onnx_cast(c, x, SDLF_FLOAT32), x.shape);
    if (onnx_type_is_small_float((int)type)) { /* its zero point is 0 */
        onnx_set_output(c, 0, onnx_small_float_round(c, y, type, onnx_rounding_of(c)));
        if (onnx_ok(c) && c->output[0] != NULL) c->output[0]->narrow = type;
        return;
    }
    y = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_ROUND}, &y, 1);
    if (onnx_has(c, 2) && !is_all_zero(c, 2)) y = with_zero(c, "add", y, x.shape);
    if (narrow && range_of(type, &low, &high))
        y = onnx_layer(c, "clip", &(sdlf_clip_options){.low = (float)low, .high = (float)high}, &y, 1);
    onnx_set_output(c, 0, onnx_cast(c, y, onnx_type_computed(type))); /* which saturates */
    if (narrow && onnx_ok(c) && c->output[0] != NULL) c->output[0]->narrow = type;
}

/* y = (x - zero point) scale */
static void convert_dequantize(onnx_context *c)
{
    check_scale(c);
    onnx_flow x = onnx_in(c, 0);
    onnx_flow y = onnx_cast(c, x, SDLF_FLOAT32);
    if (onnx_has(c, 2) && !is_all_zero(c, 2)) y = with_zero(c, "sub", y, x.shape);
    onnx_set_output(c, 0, with_scale(c, "mul", y, x.shape));
}

/* ---- constants ---- */

static bool is_float(onnx_type type)
{
    return sdlf_dtype_is_float(onnx_type_dtype(type));
}

/* Maps elements of x in `number` to elements of y. */
typedef struct formula {
    const onnx_numbers *scale, *zero; /* zero->count 0: there is none */
    grain grain;
    int64_t inner, size; /* elements from one index of the axis to the next; indices */
    bool quantizes, to_float;
    onnx_rounding rounding; /* to_float */
    double low, high;
} formula;

/* The index of the scale of element `at`, and the number of following elements that share it. */
static int64_t which_of(const formula *f, int64_t at, int64_t *run)
{
    *run = INT64_MAX;
    if (f->grain.axis < 0) return 0;
    int64_t index = at / f->inner % f->size, blocks = (f->size - 1) / f->grain.length + 1;
    int64_t which = index / f->grain.length;
    *run = f->inner - at % f->inner;
    if (f->scale->shape.rank == 1) return which;
    *run = 1;
    return (at / (f->inner * f->size) * blocks + which) * f->inner + at % f->inner;
}

static double quantized(const formula *f, double x, double scale, double zero)
{
    if (f->to_float) return (double)((float)x / (float)scale);
    double y = rint((double)((float)x / (float)scale)) + zero;
    return isnan(y) ? 0 : y < f->low ? f->low : y > f->high ? f->high : y;
}

/* Converts elements `at` ... of x to those of y, in place. */
static void apply(const formula *f, double *x, int64_t at, int64_t count)
{
    for (int64_t first = 0, run; first < count; first += run) {
        int64_t which = which_of(f, at + first, &run);
        if (run > count - first) run = count - first;
        double scale = f->scale->number[which], zero = 0;
        if (f->zero->count > 0) zero = f->zero->real ? f->zero->number[which] : (double)f->zero->integer[which];
        for (int64_t i = first; i < first + run && !f->quantizes; i++)
            x[i] = (double)((float)(x[i] - zero) * (float)scale);
        for (int64_t i = first; i < first + run && f->quantizes; i++) x[i] = quantized(f, x[i], scale, zero);
    }
}

static void write(onnx_tensor *to, const formula *f, const onnx_tensor *x)
{
    enum { BLOCK = 512 };
    double block[BLOCK];
    int64_t whole[BLOCK];
    size_t size = onnx_type_size(to->type);
    for (int64_t i = 0; i < to->count; i += BLOCK) {
        int64_t length = to->count - i < BLOCK ? to->count - i : BLOCK;
        char *out = (char *)to->data + (size_t)i * size;
        onnx_tensor_convert(x, i, length, SDLF_FLOAT64, block);
        apply(f, block, i, length);
        if (!f->quantizes) {
            sdlf_convert(SDLF_FLOAT32, out, SDLF_FLOAT64, block, length);
            continue;
        }
        for (int64_t k = 0; k < length && f->to_float; k++)
            ((uint8_t *)out)[k] = onnx_small_float_encode(to->type, block[k], f->rounding);
        if (f->to_float) continue;
        sdlf_convert(SDLF_INT64, whole, SDLF_FLOAT64, block, length);
        for (int64_t k = 0; k < length; k++) memcpy(out + (size_t)k * size, &whole[k], size); /* its low bytes */
    }
}

static void fold(onnx_context *c, bool quantizes)
{
    const onnx_tensor *x = onnx_known(c, 0), *scale = onnx_known(c, 1),
                      *zero = onnx_has(c, 2) ? onnx_known(c, 2) : NULL;
    onnx_type type = quantizes ? target_of(c) : ONNX_FLOAT;
    formula f = {.quantizes = quantizes, .to_float = onnx_type_is_small_float((int)type)};
    if (f.to_float) f.rounding = onnx_rounding_of(c);
    if (!onnx_ok(c)) return;
    if (!is_float(scale->type) || is_float(x->type) != quantizes || (zero != NULL && is_float(zero->type)) ||
        (quantizes && !f.to_float && !range_of(type, &f.low, &f.high))) {
        onnx_unsupported(c, "of %s with a scale of %s, to %s", onnx_type_name(x->type), onnx_type_name(scale->type),
                         onnx_type_name(type));
        return;
    }
    f.grain = grain_of(c, x->shape, scale->shape);
    if (onnx_ok(c) && zero != NULL && zero->count != scale->count)
        onnx_wrong(c, "its scale is %s, and its zero point %s", sdlf_shape_print(scale->shape).text,
                   sdlf_shape_print(zero->shape).text);
    onnx_numbers scales = onnx_load_numbers(c, scale), zeros = {.count = 0};
    if (zero != NULL) zeros = onnx_load_numbers(c, zero);
    f.scale = &scales;
    f.zero = &zeros;
    f.size = f.grain.axis >= 0 ? x->shape.dim[f.grain.axis] : 1;
    f.inner = f.grain.axis >= 0 ? sdlf_shape_span(x->shape, f.grain.axis + 1, x->shape.rank) : 1;
    onnx_tensor y = onnx_new_weight(c, type, x->shape);
    if (!onnx_ok(c)) return;
    if (!y.uniform) write(&y, &f, x);
    if (!quantizes) y.scale_axis = f.grain.axis, y.scale_length = f.grain.length;
    onnx_set_output_constant(c, 0, &y);
}

static void fold_quantize(onnx_context *c)
{
    fold(c, true);
}

static void fold_dequantize(onnx_context *c)
{
    fold(c, false);
}

const onnx_operator onnx_quantize_operators[] = {
    {.type = "QuantizeLinear",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis block_size output_dtype saturate ",
     .convert = convert_quantize,
     .fold = fold_quantize,
     .of_weights = true},
    {.type = "DequantizeLinear",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis block_size output_dtype ",
     .convert = convert_dequantize,
     .fold = fold_dequantize,
     .of_weights = true},
    {.type = NULL},
};
