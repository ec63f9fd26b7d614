/* SPDX-License-Identifier: MIT */
/* depth_to_space and space_to_depth: blocks of b x b pixels from b^2 channels, and the inverse. For pixel (bh, bw) of
 * a block:
 *
 *   depth_to_space, dcr   y[n, c, h b + bh, w b + bw] = x[n, (bh b + bw) C + c, h, w]
 *   depth_to_space, crd   y[n, c, h b + bh, w b + bw] = x[n, c b^2 + bh b + bw, h, w]      (pixel shuffle)
 *   space_to_depth        y[n, (bh b + bw) C + c, h, w] = x[n, c, h b + bh, w b + bw]
 *
 * One copy between views of six axes; the gradient is the copy back. */
#include "layers/views.h"

static const char *const modes[] = {[SDLF_DEPTH_DCR] = "dcr", [SDLF_DEPTH_CRD] = "crd", NULL};

static const sdlf_field fields[] = {
    {.name = "block",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_depth_to_space_options, block),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "side of a block of pixels"},
    {.name = "mode",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_depth_to_space_options, mode),
     .choices = modes,
     .help = "order of the channels: block, then channel (dcr), or channel, then block (crd)"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_depth_to_space_options *options = layer->options;
    int64_t b = options->block;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = x.rank == 4 ? SDLF_OK : sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status != SDLF_OK) return status;
    if (x.dim[1] % (b * b) != 0 || x.dim[2] > INT64_MAX / b || x.dim[3] > INT64_MAX / b)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input %s needs a multiple of %lld channels", sdlf_shape_print(x).text,
                         (long long)(b * b));
    return sdlf_signature_add_output(signature, signature->input_dtype[0],
                                     sdlf_shape(x.dim[0], x.dim[1] / (b * b), x.dim[2] * b, x.dim[3] * b));
}

static sdlf_status infer_back(const sdlf_layer *layer, sdlf_signature *signature)
{
    int64_t b = ((const sdlf_space_to_depth_options *)layer->options)->block;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = x.rank == 4 ? SDLF_OK : sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status != SDLF_OK) return status;
    if (x.dim[2] % b != 0 || x.dim[3] % b != 0 || x.dim[1] > INT64_MAX / (b * b))
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input %s cannot be cut into blocks of %lldx%lld",
                         sdlf_shape_print(x).text, (long long)b, (long long)b);
    return sdlf_signature_add_output(signature, signature->input_dtype[0],
                                     sdlf_shape(x.dim[0], x.dim[1] * b * b, x.dim[2] / b, x.dim[3] / b));
}

/* Both viewed with the axes n, c, h, bh, w, bw. `deep` is the side with more channels. */
static sdlf_tensor deep_view(sdlf_tensor deep, int64_t b, int mode)
{
    static const int dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    const int64_t *dim = deep.shape.dim;
    int64_t c = dim[1] / (b * b);
    sdlf_shape split = mode == SDLF_DEPTH_DCR ? sdlf_shape(dim[0], b, b, c, dim[2], dim[3])
                                              : sdlf_shape(dim[0], c, b, b, dim[2], dim[3]);
    return sdlf_layer_permuted(sdlf_tensor_reshape(deep, split), mode == SDLF_DEPTH_DCR ? dcr : crd);
}

static sdlf_tensor wide_view(sdlf_tensor wide, int64_t b)
{
    const int64_t *dim = wide.shape.dim;
    return sdlf_tensor_reshape(wide, sdlf_shape(dim[0], dim[1], dim[2] / b, b, dim[3] / b, b));
}

static sdlf_status to_space(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor deep, sdlf_tensor wide)
{
    const sdlf_depth_to_space_options *options = layer->options;
    if (!sdlf_tensor_present(&wide)) return SDLF_OK;
    return sdlf_layer_copy(context, deep_view(deep, options->block, options->mode), wide_view(wide, options->block));
}

static sdlf_status to_depth(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor wide, sdlf_tensor deep)
{
    const sdlf_depth_to_space_options *options = layer->options;
    if (!sdlf_tensor_present(&deep)) return SDLF_OK;
    return sdlf_layer_copy(context, wide_view(wide, options->block), deep_view(deep, options->block, options->mode));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return to_space(layer, context, context->input[0], context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return to_depth(layer, context, context->output_gradient[0], context->input_gradient[0]);
}

static sdlf_status forward_back(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return to_depth(layer, context, context->input[0], context->output[0]);
}

static sdlf_status backward_back(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return to_space(layer, context, context->output_gradient[0], context->input_gradient[0]);
}

const sdlf_layer_class sdlf_depth_to_space_class = {
    .name = "depth_to_space",
    .summary = "blocks of pixels from channels",
    .options_size = sizeof(sdlf_depth_to_space_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

const sdlf_layer_class sdlf_space_to_depth_class = {
    .name = "space_to_depth",
    .summary = "channels from blocks of pixels",
    .options_size = sizeof(sdlf_space_to_depth_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer_back,
    .forward = forward_back,
    .backward = backward_back,
};

sdlf_node sdlf_depth_to_space(sdlf_model *model, sdlf_node x, const sdlf_depth_to_space_options *options)
{
    return sdlf_model_add(model, &sdlf_depth_to_space_class, options, &x, 1);
}

sdlf_node sdlf_space_to_depth(sdlf_model *model, sdlf_node x, const sdlf_space_to_depth_options *options)
{
    return sdlf_model_add(model, &sdlf_space_to_depth_class, options, &x, 1);
}
