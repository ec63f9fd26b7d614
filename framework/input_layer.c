/* SPDX-License-Identifier: MIT */
/* input: output 0 is what the user writes before a run. */
#include "framework/input_layer.h"

static const char *const dtype_names[] = {"none",  "float32", "float64", "float16", "bfloat16", "uint8",
                                          "int32", "int64",   "int8",    "bool",    NULL};

static const sdlf_field fields[] = {
    {.name = "dtype",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_input_options, dtype),
     .choices = dtype_names,
     .help = "element type of the input"},
    {.name = "shape",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_input_options, shape),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "shape of one sample, without the batch"},
    {.name = "whole",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_input_options, whole),
     .help = "shape is the whole input's; it has no batch"},
    {.name = "sparse",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_input_options, sparse),
     .help = "a sparse matrix over the batch: a graph's adjacency"},
    {.name = NULL},
};

static sdlf_status add_sparse(const sdlf_input_options *options, sdlf_dtype dtype, sdlf_signature *signature)
{
    sdlf_shape shape = options->whole ? options->shape : sdlf_shape(signature->batch, signature->batch);
    if (dtype != signature->dtype)
        return sdlf_fail(SDLF_ERROR_SHAPE, "a sparse input is of float32, not %s", sdlf_dtype_name(dtype));
    if (shape.rank != 2)
        return sdlf_fail(SDLF_ERROR_SHAPE, "a sparse input has two dimensions, not %s", sdlf_shape_print(shape).text);
    signature->output_sparse[0] = true;
    return sdlf_signature_add_output(signature, dtype, shape);
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_input_options *options = layer->options;
    sdlf_dtype dtype = (sdlf_dtype)options->dtype;
    if (sdlf_dtype_size(dtype) == 0) return sdlf_fail(SDLF_ERROR_SHAPE, "an input needs a dtype, such as float32");
    if (sdlf_dtype_is_float(dtype)) dtype = signature->dtype;
    if (options->sparse) return add_sparse(options, dtype, signature);
    if (options->whole) return sdlf_signature_add_output(signature, dtype, options->shape);
    if (options->shape.rank >= SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_SHAPE, "shape %s has rank %d: at most %d dimensions besides the batch",
                         sdlf_shape_print(options->shape).text, options->shape.rank, SDLF_MAX_RANK - 1);
    return sdlf_signature_add_output(signature, dtype, sdlf_shape_prepend(signature->batch, options->shape));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    (void)context;
    return SDLF_OK;
}

const sdlf_layer_class sdlf_input_layer_class = {
    .name = "input",
    .summary = "an input of the network",
    .options_size = sizeof(sdlf_input_options),
    .fields = fields,
    .infer = infer,
    .forward = forward,
};
