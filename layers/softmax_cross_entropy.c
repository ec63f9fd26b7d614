/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy: the mean over the rows of -sum t log p; or, with weights, their weighted sum. A row is a
 * sample; in sequences (N,T,C) with labels and weights (N,T), a position; in images (N,C,H,W) with labels and weights
 * (N,H,W), a pixel.
 *
 *   logits (N,C), labels (N) int32 -> loss (1); p = softmax(logits), t = (1 - smoothing) onehot(label) + smoothing / C
 *   dlogits = (p - t) dloss / N. A label outside [0, C) makes the loss NaN.
 *   A third input of weights w (N) makes the loss sum w (-sum t log p), dlogits = (p - t) dloss w: rows of weight 0
 *   are ignored. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "smoothing",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_softmax_cross_entropy_options, smoothing),
     .maximum = 0.999999,
     .help = "share of the target that is spread over all classes"},
    {.name = NULL},
};

/* The shape of the labels, with one element for each row; rank 0: not a valid shape of logits. */
static sdlf_shape rows_of(sdlf_shape logits)
{
    if (logits.rank == 4) return sdlf_shape(logits.dim[0], logits.dim[2], logits.dim[3]);
    return logits.rank == 2 || logits.rank == 3 ? sdlf_shape_without(logits, logits.rank - 1) : SDLF_SCALAR;
}

static int64_t classes_of(sdlf_shape logits)
{
    return logits.dim[logits.rank == 3 ? 2 : 1];
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape logits = signature->input_shape[0], labels = signature->input_shape[1], rows = rows_of(logits);
    sdlf_status status = rows.rank > 1 ? sdlf_layer_check_float(signature, 0)
                                       : sdlf_layer_check_rank(signature, 0, 2, "(N,C) of logits");
    if (status != SDLF_OK) return status;
    if (signature->input_dtype[1] != SDLF_INT32 || !sdlf_shape_equal(labels, rows))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected int32 labels of shape %s, found %s %s",
                         sdlf_shape_print(rows).text, sdlf_dtype_name(signature->input_dtype[1]),
                         sdlf_shape_print(labels).text);
    if (signature->input_count > 2) {
        static const char *const forms[] = {"(N) of weights", "(N,T) of weights", "(N,H,W) of weights"};
        status = sdlf_layer_check_rank(signature, 2, rows.rank, forms[rows.rank - 1]);
        if (status != SDLF_OK) return status;
        if (!sdlf_shape_equal(signature->input_shape[2], labels))
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected weights of shape %s, found %s", sdlf_shape_print(labels).text,
                             sdlf_shape_print(signature->input_shape[2]).text);
    }
    status = sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(1));
    if (status == SDLF_OK && signature->training) /* p, one row each */
        status = sdlf_signature_add_saved(signature, signature->dtype,
                                          sdlf_shape(sdlf_shape_count(rows), classes_of(logits)));
    return status;
}

static sdlf_tensor line_of(sdlf_tensor tensor)
{
    return sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&tensor)));
}

/* The third input, or an absent tensor. */
static sdlf_tensor weights_of(const sdlf_layer_context *context)
{
    return context->input_count > 2 ? line_of(context->input[2]) : (sdlf_tensor){.dtype = SDLF_NONE};
}

/* Logits of images or their gradient, with the channels after the pixels: a view. */
static sdlf_tensor pixels_of(sdlf_tensor planes)
{
    return sdlf_layer_permuted(planes, (const int[]){0, 2, 3, 1});
}

/* Rows (R,C) viewed with the axes of pixels_of. */
static sdlf_tensor as_pixels(sdlf_tensor rows, sdlf_tensor planes)
{
    return sdlf_tensor_reshape(rows, pixels_of(planes).shape);
}

/* Logits as rows (R,C): a view, or, for images, a copy. */
static sdlf_status take_rows(sdlf_layer_context *context, sdlf_tensor logits, sdlf_tensor *rows)
{
    sdlf_shape shape = sdlf_shape(sdlf_shape_count(rows_of(logits.shape)), classes_of(logits.shape));
    if (logits.shape.rank != 4) {
        *rows = sdlf_tensor_reshape(logits, shape);
        return SDLF_OK;
    }
    *rows = sdlf_scratch(context, logits.dtype, shape);
    return sdlf_layer_copy(context, pixels_of(logits), as_pixels(*rows, logits));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    sdlf_tensor rows;
    sdlf_status status = take_rows(context, context->input[0], &rows);
    if (status != SDLF_OK) return status;
    sdlf_tensor p = context->training ? context->saved[0] : sdlf_scratch(context, rows.dtype, rows.shape);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD,
                                  .in = {rows, line_of(context->input[1]), [3] = weights_of(context)},
                                  .out = {p, context->output[0], context->metrics},
                                  .cross_entropy = {.smoothing = options->smoothing},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    sdlf_tensor p = context->saved[0], gradient = context->input_gradient[0];
    bool pictures = context->input[0].shape.rank == 4;
    sdlf_tensor rows = pictures ? sdlf_scratch(context, p.dtype, p.shape) : sdlf_tensor_reshape(gradient, p.shape);
    sdlf_status status =
        sdlf_emit(context, &(sdlf_operation){
                               .kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                               .in = {p, line_of(context->input[1]), context->output_gradient[0], weights_of(context)},
                               .out = {rows},
                               .cross_entropy = {.smoothing = options->smoothing},
                           });
    if (status != SDLF_OK || !pictures) return status;
    return sdlf_layer_copy(context, as_pixels(rows, gradient), pixels_of(gradient));
}

const sdlf_layer_class sdlf_softmax_cross_entropy_class = {
    .name = "softmax_cross_entropy",
    .summary = "mean cross-entropy of logits against labels: a loss",
    .options_size = sizeof(sdlf_softmax_cross_entropy_options),
    .fields = fields,
    .minimum_inputs = 2,
    .maximum_inputs = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

sdlf_node sdlf_softmax_cross_entropy(sdlf_model *model, sdlf_node logits, sdlf_node labels,
                                     const sdlf_softmax_cross_entropy_options *options)
{
    return sdlf_model_add(model, &sdlf_softmax_cross_entropy_class, options, (const sdlf_node[]){logits, labels}, 2);
}

sdlf_node sdlf_softmax_cross_entropy_weighted(sdlf_model *model, sdlf_node logits, sdlf_node labels, sdlf_node weights,
                                              const sdlf_softmax_cross_entropy_options *options)
{
    const sdlf_node inputs[] = {logits, labels, weights};
    return sdlf_model_add(model, &sdlf_softmax_cross_entropy_class, options, inputs, 3);
}
