/* SPDX-License-Identifier: MIT */
/* Normalisations, softmax, dropout. */
#include "framework/formats/onnx/export/export.h"

#include <stdlib.h>
#include <string.h>

void export_batch_norm(onnx_export *e)
{
    const sdlf_batch_norm2d_options *options = export_options(e);
    export_node(e, "BatchNormalization",
                (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), export_parameter(e, "bias"),
                                      export_parameter(e, "running_mean"), export_parameter(e, "running_var"), NULL},
                (const export_attribute[]){
                    export_real("epsilon", options->epsilon),
                    export_real("momentum", 1 - options->momentum), /* of the old statistics */
                    {0},
                });
}

void export_layer_norm(onnx_export *e)
{
    const sdlf_layer_norm_options *options = export_options(e);
    export_node(
        e, "LayerNormalization",
        (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), export_parameter(e, "bias"), NULL},
        (const export_attribute[]){
            export_integer("axis", options->axis),
            export_real("epsilon", options->epsilon),
            {0},
        });
}

/* ---- groups of channels ---- */

/* x (N,C,...) with all dimensions but N reshaped to a shape that must not depend on the batch. */
static const char *reshaped(onnx_export *e, const char *x, sdlf_shape shape)
{
    shape.dim[0] = 0; /* unchanged */
    return export_step2(e, "Reshape", x, export_shape(e, shape));
}

/* Before opset 21: groups become the channels of an instance normalisation, and channels are scaled after it. */
static void spelled_out(onnx_export *e, int64_t groups, float epsilon)
{
    sdlf_shape x = export_in_shape(e, 0), channels = {.rank = x.rank - 1, .dim = {x.dim[1]}};
    float *ones = calloc((size_t)(2 * groups), sizeof *ones);
    if (ones == NULL) {
        export_no_memory(e);
        return;
    }
    for (int64_t i = 0; i < groups; i++) ones[i] = 1;
    const char *one = export_list_reals(e, ones, (int)groups), *zero = export_list_reals(e, ones + groups, (int)groups);
    free(ones);
    for (int axis = 1; axis < channels.rank; axis++) channels.dim[axis] = 1;
    export_check_samples(e);
    const char *seen = reshaped(e, export_in(e, 0), sdlf_shape(0, groups, -1));
    const char *normal = export_step(e, "InstanceNormalization", (const char *const[]){seen, one, zero, NULL},
                                     (const export_attribute[]){export_real("epsilon", epsilon), {0}});
    const char *weight = export_parameter_as(e, "weight", SDLF_FLOAT32, channels);
    const char *bias = export_parameter_as(e, "bias", SDLF_FLOAT32, channels);
    const char *scaled = export_step2(e, "Mul", reshaped(e, normal, x), weight);
    export_node(e, "Add", (const char *const[]){scaled, bias, NULL}, NULL);
}

void export_group_norm(onnx_export *e)
{
    const sdlf_group_norm_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    int64_t groups = options->groups > 0 ? options->groups : x.dim[1];
    bool instances = groups == x.dim[1] && x.rank > 2;
    if (!instances && (e->opset < 21 || x.rank < 3)) {
        spelled_out(e, groups, options->epsilon);
        return;
    }
    export_attribute last = {0};
    if (!instances) last = export_integer("num_groups", groups);
    export_node(
        e, instances ? "InstanceNormalization" : "GroupNormalization",
        (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), export_parameter(e, "bias"), NULL},
        (const export_attribute[]){export_real("epsilon", options->epsilon), last, {0}});
}

/* ---- neighbouring channels ---- */

/* Runtimes support the operator for images and odd sizes; otherwise x / (bias + alpha mean(x^2))^beta, where the mean
 * is a pooling over (N,1,C,rest). */
void export_lrn(onnx_export *e)
{
    const sdlf_lrn_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    const char *in = export_in(e, 0);
    if (x.rank == 4 && options->size % 2 == 1) {
        export_node(e, "LRN", (const char *const[]){in, NULL},
                    (const export_attribute[]){
                        export_integer("size", options->size),
                        export_real("alpha", options->alpha),
                        export_real("beta", options->beta),
                        export_real("bias", options->bias),
                        {0},
                    });
        return;
    }
    export_check_samples(e);
    const char *seen = reshaped(e, export_step2(e, "Mul", in, in), sdlf_shape(0, 1, x.dim[1], -1));
    const char *mean =
        export_step(e, "AveragePool", (const char *const[]){seen, NULL},
                    (const export_attribute[]){
                        export_integers("kernel_shape", sdlf_shape(options->size, 1)),
                        export_integers("pads", sdlf_shape((options->size - 1) / 2, 0, options->size / 2, 0)),
                        export_integer("count_include_pad", 1),
                        {0},
                    });
    const char *alpha = export_number(e, (double)options->alpha, SDLF_FLOAT32);
    const char *bias = export_number(e, (double)options->bias, SDLF_FLOAT32);
    const char *beta = export_number(e, (double)options->beta, SDLF_FLOAT32);
    const char *sum = export_step2(e, "Add", export_step2(e, "Mul", reshaped(e, mean, x), alpha), bias);
    export_node(e, "Div", (const char *const[]){in, export_step2(e, "Pow", sum, beta), NULL}, NULL);
}

/* ---- rows ---- */

void export_softmax(onnx_export *e)
{
    bool logarithm = strcmp(e->now->layer.type->name, "log_softmax") == 0;
    const sdlf_softmax_options *options = export_options(e);
    export_node(e, logarithm ? "LogSoftmax" : "Softmax", (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){export_integer("axis", options->axis), {0}});
}

/* An identity in inference; fine-tuning can read the ratio. */
void export_dropout(onnx_export *e)
{
    const sdlf_dropout_options *options = export_options(e);
    const char *ratio = export_number(e, (double)options->probability, SDLF_FLOAT32);
    export_node(e, "Dropout", (const char *const[]){export_in(e, 0), ratio, NULL}, NULL);
}
