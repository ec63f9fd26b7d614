/* SPDX-License-Identifier: MIT */
/* Convolutions, pooling, and matrix products. Weights have the same layout as in ONNX. */
#include "framework/formats/onnx/export/export.h"

/* ONNX's "pads": top, left, bottom, right. */
static export_attribute pads(const int before[2], const int extra[2])
{
    return export_integers("pads", sdlf_shape(before[0], before[1], before[0] + extra[0], before[1] + extra[1]));
}

void export_conv2d(onnx_export *e)
{
    const sdlf_conv2d_options *options = export_options(e);
    export_node(
        e, "Conv",
        (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), export_parameter(e, "bias"), NULL},
        (const export_attribute[]){
            export_pair("kernel_shape", options->kernel),
            export_pair("strides", options->stride),
            pads(options->padding, options->padding_extra),
            export_pair("dilations", options->dilation),
            export_integer("group", options->groups),
            {0},
        });
}

void export_conv_transpose2d(onnx_export *e)
{
    const sdlf_conv_transpose2d_options *options = export_options(e);
    export_node(
        e, "ConvTranspose",
        (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), export_parameter(e, "bias"), NULL},
        (const export_attribute[]){
            export_pair("kernel_shape", options->kernel),
            export_pair("strides", options->stride),
            pads(options->padding, options->padding_extra),
            export_pair("output_padding", options->output_padding),
            export_pair("dilations", options->dilation),
            export_integer("group", options->groups),
            {0},
        });
}

/* ---- pooling ---- */

static void pool(onnx_export *e, const char *type, export_attribute last)
{
    const sdlf_pool2d_options *options = export_options(e);
    int stride[2];
    for (int i = 0; i < 2; i++) stride[i] = options->stride[i] != 0 ? options->stride[i] : options->window[i];
    export_node(e, type, (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){
                    export_pair("kernel_shape", options->window),
                    export_pair("strides", stride),
                    pads(options->padding, options->padding_extra),
                    last,
                    {0},
                });
}

void export_max_pool2d(onnx_export *e)
{
    const sdlf_pool2d_options *options = export_options(e);
    int dilation[2];
    for (int i = 0; i < 2; i++) dilation[i] = options->dilation[i] != 0 ? options->dilation[i] : 1;
    pool(e, "MaxPool", export_pair("dilations", dilation));
}

void export_avg_pool2d(onnx_export *e)
{
    const sdlf_pool2d_options *options = export_options(e);
    pool(e, "AveragePool", export_integer("count_include_pad", options->count_padding));
}

void export_global_avg_pool2d(onnx_export *e)
{
    export_node(e, "GlobalAveragePool", (const char *const[]){export_in(e, 0), NULL}, NULL);
}

/* ---- products ---- */

/* For tokens: a matrix product, whose right operand has one column per unit. The MatMul gets the layer's name, by which
 * its weights are found again. */
static void tokens(onnx_export *e, const char *x)
{
    const char *bias = export_parameter(e, "bias"),
               *weight = export_step1(e, "Transpose", export_parameter(e, "weight"));
    const char *const factors[] = {x, weight, NULL};
    if (bias == NULL)
        export_node(e, "MatMul", factors, NULL);
    else
        export_node(e, "Add", (const char *const[]){export_main_step(e, "MatMul", factors), bias, NULL}, NULL);
}

void export_fully_connected(onnx_export *e)
{
    const char *x = export_in(e, 0);
    sdlf_shape rows = {.rank = export_out_shape(e).rank};
    bool flat = rows.rank == export_in_shape(e, 0).rank;
    if (rows.rank > 2) {
        rows.dim[rows.rank - 1] = -1; /* and 0 before: unchanged */
        tokens(e, flat ? x : export_step2(e, "Reshape", x, export_shape(e, rows)));
        return;
    }
    if (!flat) x = export_step1(e, "Flatten", x);
    export_node(e, "Gemm", (const char *const[]){x, export_parameter(e, "weight"), export_parameter(e, "bias"), NULL},
                (const export_attribute[]){export_integer("transB", 1), {0}});
}

/* Swaps rows and columns of matrices; a vector is unchanged. */
static const char *transposed(onnx_export *e, int input, bool turn)
{
    sdlf_shape order = {.rank = export_in_shape(e, input).rank};
    if (!turn || order.rank < 2) return export_in(e, input);
    for (int i = 0; i < order.rank; i++) order.dim[i] = i;
    order.dim[order.rank - 2] = order.rank - 1;
    order.dim[order.rank - 1] = order.rank - 2;
    return export_step(e, "Transpose", (const char *const[]){export_in(e, input), NULL},
                       (const export_attribute[]){export_integers("perm", order), {0}});
}

void export_matmul(onnx_export *e)
{
    const sdlf_matmul_options *options = export_options(e);
    if (export_in_dtype(e, 0) == SDLF_INT8 || export_in_dtype(e, 0) == SDLF_UINT8) {
        const char *operand[5] = {NULL};
        for (int i = 0; i < export_in_count(e); i++) operand[i] = export_in(e, i);
        export_node(e, "MatMulInteger", operand, NULL);
        return;
    }
    const char *a = transposed(e, 0, options->transpose_a), *b = transposed(e, 1, options->transpose_b);
    export_node(e, "MatMul", (const char *const[]){a, b, NULL}, NULL);
}

/* A (x weight) + bias. No ONNX operator supports sparse matrices: A becomes a dense input. */
void export_graph_conv(onnx_export *e)
{
    const char *bias = export_parameter(e, "bias"), *weight = export_parameter(e, "weight");
    const char *product = export_step2(e, "MatMul", export_in(e, 0), weight);
    if (bias == NULL) {
        export_node(e, "MatMul", (const char *const[]){export_in(e, 1), product, NULL}, NULL);
        return;
    }
    const char *sum = export_step2(e, "MatMul", export_in(e, 1), product);
    export_node(e, "Add", (const char *const[]){sum, bias, NULL}, NULL);
}
