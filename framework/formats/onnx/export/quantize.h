/* SPDX-License-Identifier: MIT */
/* From a graph of float32 to one with integers, in steps that each change the graph of an export:
 *
 *     simplify    batch normalisations go into convolutions, transposed weights become weights
 *     mark        which nodes are quantised, and which values these read
 *     observe     the graph runs, and says between which numbers those values lie
 *     rewrite     weights become integers, and values get their pairs of QuantizeLinear and DequantizeLinear
 *
 * As in the writers of layers (export.h), the first failure is kept in the export. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_QUANTIZE_H
#define SDLF_FORMATS_ONNX_EXPORT_QUANTIZE_H

#include <sdlf/quantize.h>

#include "framework/formats/onnx/export/export.h"

typedef enum quantize_role {
    QUANTIZE_NOT = 0,
    QUANTIZE_LAYER,   /* a convolution or product with known weights */
    QUANTIZE_CARRIER, /* goes on in integers, since somebody behind it reads them */
} quantize_role;

enum { QUANTIZE_BINS = 2048 };

/* A value that is quantised: of floats x, round(x / scale) + zero. */
typedef struct quantize_value {
    const char *name, *replaced; /* by what has gone through bytes; NULL: not yet */
    double low, high;            /* what it has been seen between, and 0 */
    int64_t *bins;               /* magnitudes, up to the largest; NULL: not wanted */
    float scale;
    int zero;
} quantize_value;

typedef struct quantizing {
    onnx_export *e;
    const sdlf_quantization_options *options;
    sdlf_quantized *result;
    /* by name: a weight's index, the index of a value's node, how many nodes and outputs read it, the last node that
     * does, and the index of a quantised value */
    onnx_name_table weights, makers, counts, readers, values;
    quantize_role *role; /* of each node */
    quantize_value *value;
    int value_count;
} quantizing;

/* Fill in the tables, once the graph is as it stays. */
void quantize_index(quantizing *q);
Onnx__NodeProto *quantize_node(const quantizing *q, int index);
/* The float32 weight of that name; NULL: it is none. */
Onnx__TensorProto *quantize_weight(const quantizing *q, const char *name);
/* The only node that reads a value which is no output of the graph; -1: none. */
int quantize_only_reader(const quantizing *q, const char *value);
int64_t quantize_attribute(const Onnx__NodeProto *node, const char *name, int64_t fallback);

void quantize_simplify(quantizing *q);
void quantize_mark(quantizing *q);
void quantize_observe(quantizing *q);
void quantize_rewrite(quantizing *q);

/* ---- weights ---- */

/* The axis of a layer's weight that counts filters or columns, and the one that is summed over first. */
typedef struct quantize_axes {
    int filters, summed;
} quantize_axes;
quantize_axes quantize_axes_of(const Onnx__NodeProto *node);

/* Append what makes floats of the integers of a node's weight, and have the node read it. With the value that it reads
 * (NULL: weights only) its bias becomes integers too. */
void quantize_weights(quantizing *q, Onnx__NodeProto *node, const quantize_value *x);

#endif
