/* SPDX-License-Identifier: MIT */
/* Rewrites a float32 graph to a quantised one, in passes that each change the graph of an export:
 *
 *     simplify    batch normalisations are folded into convolutions, transposed weights become weights
 *     mark        selects the nodes to quantise, and the values that these read
 *     observe     calibration: the graph runs, and the ranges of those values are recorded
 *     rewrite     weights become integers, and values get their QuantizeLinear / DequantizeLinear pairs
 *
 * As in the writers of layers (export.h), the first failure is kept in the export. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_QUANTIZE_H
#define SDLF_FORMATS_ONNX_EXPORT_QUANTIZE_H

#include <sdlf/quantize.h>

#include "framework/formats/onnx/export/export.h"

typedef enum quantize_role {
    QUANTIZE_NOT = 0,
    QUANTIZE_LAYER,   /* a convolution or GEMM with constant weights */
    QUANTIZE_CARRIER, /* continues in integers for a quantised reader */
} quantize_role;

enum { QUANTIZE_BINS = 2048 };

/* A value to be quantised: floats x become round(x / scale) + zero. */
typedef struct quantize_value {
    const char *name, *replaced; /* by the dequantised value; NULL: not yet */
    double low, high;            /* its observed range, including 0 */
    int64_t *bins;               /* histogram of magnitudes, up to the largest; NULL: not needed */
    float scale;
    int zero;
} quantize_value;

typedef struct quantizing {
    onnx_export *e;
    const sdlf_quantization_options *options;
    sdlf_quantized *result;
    /* by name: a weight's index, the index of a value's producer, the number of nodes and outputs that read it, its
     * last reader, and the index of a quantised value */
    onnx_name_table weights, makers, counts, readers, values;
    quantize_role *role; /* of each node */
    quantize_value *value;
    int value_count;
} quantizing;

/* Fills in the tables, once the graph no longer changes. */
void quantize_index(quantizing *q);
Onnx__NodeProto *quantize_node(const quantizing *q, int index);
/* The float32 weight of that name; NULL: there is none. */
Onnx__TensorProto *quantize_weight(const quantizing *q, const char *name);
/* The only reader of a value that is no output of the graph; -1: none. */
int quantize_only_reader(const quantizing *q, const char *value);
int64_t quantize_attribute(const Onnx__NodeProto *node, const char *name, int64_t fallback);

void quantize_simplify(quantizing *q);
void quantize_mark(quantizing *q);
void quantize_observe(quantizing *q);
void quantize_rewrite(quantizing *q);

/* ---- weights ---- */

/* The axis of filters or columns of a layer's weight, and the first of those that are summed over. */
typedef struct quantize_axes {
    int filters, summed;
} quantize_axes;
quantize_axes quantize_axes_of(const Onnx__NodeProto *node);

/* Appends the dequantisation of a node's integer weights, and makes the node read it. With the value that it reads
 * (NULL: weights only) its bias is quantised too. */
void quantize_weights(quantizing *q, Onnx__NodeProto *node, const quantize_value *x);

#endif
