/* SPDX-License-Identifier: MIT */
/* Layers that move elements, or view them in another shape or type. */
#include "framework/formats/onnx/export/export.h"

#include <math.h>

#include "framework/input_layer.h"

void export_flatten(onnx_export *e)
{
    export_node(e, "Flatten", (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){export_integer("axis", 1), {0}});
}

static void as_shape(onnx_export *e, const char *x, sdlf_shape shape)
{
    export_node(e, "Reshape", (const char *const[]){x, export_shape(e, shape), NULL}, NULL);
}

/* A dimension of 0 is copied from the input: the batch. */
void export_reshape(onnx_export *e)
{
    const sdlf_reshape_options *options = export_options(e);
    as_shape(e, export_in(e, 0), options->whole ? options->shape : sdlf_shape_prepend(0, options->shape));
}

void export_transpose(onnx_export *e)
{
    const sdlf_transpose_options *options = export_options(e);
    sdlf_shape order = options->order;
    for (int i = 0; i < order.rank; i++) order.dim[i] = export_axis(e, order.dim[i]);
    export_attribute perm = {0};
    if (order.rank > 0) perm = export_integers("perm", order);
    export_node(e, "Transpose", (const char *const[]){export_in(e, 0), NULL}, (const export_attribute[]){perm, {0}});
}

/* ---- blocks of pixels ---- */

void export_depth_to_space(onnx_export *e)
{
    const sdlf_depth_to_space_options *options = export_options(e);
    export_node(e, "DepthToSpace", (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){
                    export_integer("blocksize", options->block),
                    export_word("mode", options->mode == 0 ? "DCR" : "CRD"),
                    {0},
                });
}

/* The operator has one channel order, block before channel; the other is a transposition of six axes. */
void export_space_to_depth(onnx_export *e)
{
    const sdlf_space_to_depth_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    int64_t b = options->block;
    if (options->mode == 0) {
        export_node(e, "SpaceToDepth", (const char *const[]){export_in(e, 0), NULL},
                    (const export_attribute[]){export_integer("blocksize", b), {0}});
        return;
    }
    for (int axis = 1; axis < 4; axis++)
        if (export_varies(e, 0, axis)) export_needs_fixed_batch(e);
    sdlf_shape blocks = sdlf_shape(0, x.dim[1], x.dim[2] / b, b, x.dim[3] / b, b), deep = export_out_shape(e);
    deep.dim[0] = 0;
    const char *seen = export_step2(e, "Reshape", export_in(e, 0), export_shape(e, blocks));
    const char *turned =
        export_step(e, "Transpose", (const char *const[]){seen, NULL},
                    (const export_attribute[]){export_integers("perm", sdlf_shape(0, 1, 3, 5, 2, 4)), {0}});
    as_shape(e, turned, deep);
}

/* ---- parts and copies ---- */

void export_concat(onnx_export *e)
{
    const sdlf_concat_options *options = export_options(e);
    const char *inputs[SDLF_MAX_LAYER_INPUTS + 1] = {NULL};
    for (int i = 0; i < e->now->input_count; i++) inputs[i] = export_in(e, i);
    export_node(e, "Concat", inputs, (const export_attribute[]){export_integer("axis", options->axis), {0}});
}

void export_slice(onnx_export *e)
{
    const sdlf_slice_options *options = export_options(e);
    const char *step = options->step.rank > 0 ? export_shape(e, options->step) : "";
    export_node(e, "Slice",
                (const char *const[]){export_in(e, 0), export_shape(e, options->start), export_shape(e, options->end),
                                      export_shape(e, options->axes), step, NULL},
                NULL);
}

void export_pad(onnx_export *e)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const sdlf_pad_options *options = export_options(e);
    int64_t pads[2 * SDLF_MAX_RANK];
    int rank = options->before.rank;
    if (options->mode == 3 && !export_needs(e, 19, "mode wrap")) return;
    for (int i = 0; i < rank; i++) {
        pads[i] = options->before.dim[i];
        pads[rank + i] = options->after.dim[i];
    }
    const char *sizes = export_list_integers(e, pads, 2 * rank);
    const char *value = options->mode == 0 ? export_number(e, (double)options->value, export_in_dtype(e, 0)) : "";
    export_node(e, "Pad", (const char *const[]){export_in(e, 0), sizes, value, NULL},
                (const export_attribute[]){export_word("mode", modes[options->mode]), {0}});
}

/* The plan's batch, as a list of one: the first dimension of an input that has it. */
static const char *batch(onnx_export *e)
{
    for (int i = 0; i < e->model->layer_count && !e->fixed_batch; i++) {
        const export_layer *layer = &e->layer[i];
        bool open = layer->live && e->model->layers[i].layer.type == &sdlf_input_layer_class &&
                    layer->wide[0].rank > 0 && layer->wide[0].dim[0] == MODEL_OTHER_BATCH;
        if (!open) continue;
        return export_step(e, "Shape", (const char *const[]){layer->value[0], NULL},
                           (const export_attribute[]){export_integer("start", 0), export_integer("end", 1), {0}});
    }
    export_needs_fixed_batch(e);
    return export_shape(e, sdlf_shape(1));
}

void export_expand(onnx_export *e)
{
    const sdlf_expand_options *options = export_options(e);
    const char *shape = export_shape(e, options->shape);
    if (options->samples)
        shape = export_step(e, "Concat", (const char *const[]){batch(e), shape, NULL},
                            (const export_attribute[]){export_integer("axis", 0), {0}});
    export_node(e, "Expand", (const char *const[]){export_in(e, 0), shape, NULL}, NULL);
}

void export_tile(onnx_export *e)
{
    const sdlf_tile_options *options = export_options(e);
    export_node(e, "Tile", (const char *const[]){export_in(e, 0), export_shape(e, options->repeats), NULL}, NULL);
}

void export_gather(onnx_export *e)
{
    const sdlf_gather_options *options = export_options(e);
    export_node(e, "Gather", (const char *const[]){export_in(e, 0), export_in(e, 1), NULL},
                (const export_attribute[]){export_integer("axis", options->axis), {0}});
}

/* ---- types and values ---- */

/* The range of an integer type: its minimum, and the first number past its maximum. */
typedef struct integer_range {
    sdlf_dtype dtype;
    double least, behind;
} integer_range;

static const integer_range ranges[] = {
    {SDLF_INT8, -0x1p7, 0x1p7}, {SDLF_UINT8, 0, 0x1p8}, {SDLF_INT32, -0x1p31, 0x1p31}, {SDLF_INT64, -0x1p63, 0x1p63}};

/* NULL: not an integer type. */
static const integer_range *range_of(sdlf_dtype dtype)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].dtype == dtype) return &ranges[i];
    return NULL;
}

static void give_cast(onnx_export *e, const char *x, sdlf_dtype to)
{
    export_node(e, "Cast", (const char *const[]){x, NULL},
                (const export_attribute[]){export_integer("to", onnx_type_of(to)), {0}});
}

/* Converts floats to integers like sdlf_convert, where the operator leaves values outside the range undefined: NaN
 * becomes 0, too small values the minimum, too large ones the maximum, which float32 cannot represent for types of 32
 * bits or more. */
static void export_truncated(onnx_export *e, const integer_range *range)
{
    double behind = range->behind;
    bool wide = export_in_dtype(e, 0) == SDLF_FLOAT64;
    const sdlf_dtype from = wide ? SDLF_FLOAT64 : SDLF_FLOAT32; /* which include 16-bit floats */
    double largest = wide ? nextafter(behind, 0) : (double)nextafterf((float)behind, 0);
    const char *x = export_in(e, 0);
    if (export_in_dtype(e, 0) != from)
        x = export_step(e, "Cast", (const char *const[]){x, NULL},
                        (const export_attribute[]){export_integer("to", onnx_type_of(from)), {0}});
    const char *number = export_step(
        e, "Where", (const char *const[]){export_step2(e, "Equal", x, x), x, export_number(e, 0, from), NULL}, NULL);
    const char *inside = export_step(
        e, "Clip",
        (const char *const[]){number, export_number(e, range->least, from), export_number(e, largest, from), NULL},
        NULL);
    if (sdlf_dtype_size(range->dtype) == 1) {
        give_cast(e, inside, range->dtype);
        return;
    }
    const char *whole = export_step(e, "Cast", (const char *const[]){inside, NULL},
                                    (const export_attribute[]){export_integer("to", onnx_type_of(range->dtype)), {0}});
    const char *fits = export_step2(e, "Less", number, export_number(e, behind, from));
    export_node(e, "Where", (const char *const[]){fits, whole, export_number(e, behind, range->dtype), NULL}, NULL);
}

/* Saturates integers to the range of another type, where the operator would keep the low
 * bits. */
static void export_narrowed(onnx_export *e, const integer_range *from, const integer_range *to)
{
    const char *least = from->least < to->least ? export_number(e, to->least, from->dtype) : "";
    const char *most = from->behind > to->behind ? export_number(e, to->behind - 1, from->dtype) : NULL;
    const char *x = export_in(e, 0);
    if (*least || most) x = export_step(e, "Clip", (const char *const[]){x, least, most, NULL}, NULL);
    give_cast(e, x, to->dtype);
}

void export_cast(onnx_export *e)
{
    sdlf_dtype dtype = e->now->output_dtype[0];
    const integer_range *from = range_of(export_in_dtype(e, 0)), *to = range_of(dtype);
    if (to != NULL && from != NULL)
        export_narrowed(e, from, to);
    else if (to != NULL && sdlf_dtype_is_float(export_in_dtype(e, 0)))
        export_truncated(e, to);
    else
        give_cast(e, export_in(e, 0), dtype);
}

void export_dynamic_quantize(onnx_export *e)
{
    for (int i = 1; i < 3; i++) e->layer[e->position].wanted[i] = true; /* the operator always has all outputs */
    export_node(e, "DynamicQuantizeLinear", (const char *const[]){export_in(e, 0), NULL}, NULL);
}

/* No node: an initializer of the graph, which others read by its own name. */
void export_value(onnx_export *e)
{
    sdlf_shape shape = export_out_shape(e);
    sdlf_dtype dtype = e->now->output_dtype[0];
    e->layer[e->position].value[0] =
        sdlf_shape_count(shape) > 0 ? export_parameter_as(e, "value", dtype, shape) : export_nothing(e, dtype, shape);
}
