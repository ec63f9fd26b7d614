/* SPDX-License-Identifier: MIT */
/* Quantisation of a trained network: an ONNX file whose convolutions and products of matrices have integers for
 * weights, and, where samples say in which range its values lie, for what they read as well
 * (docs/guides/quantization.md).
 *
 * Threads: a call uses only its model, data and calculator; others may use the same model at the same time, if they
 * only read it.
 * Ownership: everything is borrowed until the call returns.
 * Errors: a status and a message; a file that was at `path` is left as it was. */
#ifndef SDLF_QUANTIZE_H
#define SDLF_QUANTIZE_H

#include <sdlf/calculator.h>
#include <sdlf/dataset.h>
#include <sdlf/formats.h>
#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From what a value has been seen to be to the range that its bytes cover, which always holds 0. The network's input is
 * covered whole by all of them: pictures have two shades more often than outliers. */
typedef enum sdlf_calibration {
    SDLF_CALIBRATION_MIN_MAX = 0, /* from the least to the largest */
    SDLF_CALIBRATION_PERCENTILE,  /* magnitudes up to the least number that this percentage of them does not exceed */
    /* Magnitudes up to the number that loses least information: the least Kullback-Leibler divergence between the
     * histogram of magnitudes, cut there, and itself in 128 levels. */
    SDLF_CALIBRATION_ENTROPY,
    SDLF_CALIBRATION_COUNT
} sdlf_calibration;

/* Their names, for options: "minmax", "percentile", "entropy"; ended by NULL. */
extern const char *const sdlf_calibration_names[];

/* How far a calibration is. */
typedef void sdlf_quantization_progress(void *user, int64_t done, int64_t samples);

typedef struct sdlf_quantization_options {
    /* Weights only, of 8 or 4 bits; 0: activations too, for which there are data. */
    int weights_only;
    int64_t block; /* weights of 4 bits: how many along the summed axis share a scale: a power of 2 from 16 on; 0: 32 */
    bool per_tensor; /* one scale for all of a weight of 8 bits, not one for each filter or column */
    /* Of activations: */
    const sdlf_dataset *data;    /* samples for the model's one input, normalised as the model says */
    sdlf_calculator *calculator; /* that runs them */
    int64_t samples;             /* at most this number, drawn from all with seed 1; 0: 128 */
    sdlf_calibration calibration;
    double percentile;       /* in (50, 100]; 0: 99.99 */
    bool signed_activations; /* int8; else uint8 */
    /* Layers that stay as they are, by name; a name that ends in '*' stands for all that begin like it. */
    const char *const *skip;
    int skip_count;
    int opset;                            /* as sdlf_onnx_export_options has it; weights of 4 bits want 21 at least */
    sdlf_quantization_progress *progress; /* optional */
    sdlf_go_on
        *go_on; /* asked before each batch; once it says false, ranges are those of the samples so far. NULL: yes */
    void *user; /* of both */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_quantization_options;

/* What was written. */
typedef struct sdlf_quantized {
    int opset, node_count;
    int layers, left;            /* products and convolutions that have integers for weights, and that have not */
    int values;                  /* activations that are quantised */
    int64_t samples;             /* that these have been seen of */
    int64_t bytes, bytes_before; /* of the file, and of one with float32 */
    bool fixed_batch;            /* the network allows no batch but 1 */
    void *reserved[4];           /* zero: room for members to come */
} sdlf_quantized;

/* Write a model that is built as a quantised ONNX file at `path`, as sdlf_model_to_onnx writes it, with its batch
 * normalisations folded into the convolutions before them. Weights q are symmetric, int8 or int4, and stand for scale
 * q; DequantizeLinear says so, with one scale for each filter (or column), for the tensor, or for each block. Weights
 * of 4 bits: a convolution of groups with fewer channels than a block has
 * 8. With activations, a pair of QuantizeLinear and DequantizeLinear stands behind every value that a convolution, a
 *    product or, where it
 * goes on in integers, an addition, a pool or a change of shape reads, and biases are int32 of the product of both
 * scales. `result` may be NULL. Errors: those of sdlf_model_to_onnx; SDLF_ERROR_ARGUMENT: options out of range, a layer
 * to skip that is not there, a network without a layer to quantise; SDLF_ERROR_SHAPE: samples that do not fit the
 * model's input; SDLF_ERROR_NUMERIC: a value that is not finite on the samples. */
sdlf_status sdlf_quantize(const sdlf_model *model, const char *path, const sdlf_quantization_options *options,
                          sdlf_quantized *result);

#ifdef __cplusplus
}
#endif
#endif
