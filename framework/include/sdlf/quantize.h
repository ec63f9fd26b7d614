/* SPDX-License-Identifier: MIT */
/* Quantisation of a trained network: writes an ONNX file whose convolutions and matrix products have integer weights
 * and, given samples from which to determine the ranges of values, integer activations as well
 * (docs/guides/quantization.md).
 *
 * Threads: a call uses only its model, data and calculator; others may use the same model at the same time if they only
 * read it.
 * Ownership: everything is borrowed until the call returns.
 * Errors: a status and a message; an existing file at `path` is then unchanged. */
#ifndef SDLF_QUANTIZE_H
#define SDLF_QUANTIZE_H

#include <sdlf/calculator.h>
#include <sdlf/dataset.h>
#include <sdlf/formats.h>
#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a tensor's range of quantisation, which always includes 0, follows from its values on the samples. For the
 * network's input every method uses the full range, because images with two shades are more common than outliers. */
typedef enum sdlf_calibration {
    SDLF_CALIBRATION_MIN_MAX = 0, /* from the smallest to the largest */
    SDLF_CALIBRATION_PERCENTILE,  /* magnitudes up to the smallest value that this percentage of them do not exceed */
    /* Magnitudes up to the threshold that loses the least information: the one with the smallest Kullback-Leibler
     * divergence between the histogram of magnitudes, clipped there, and its quantisation to 128 levels. */
    SDLF_CALIBRATION_ENTROPY,
    SDLF_CALIBRATION_COUNT
} sdlf_calibration;

/* The names of the methods, for options: "minmax", "percentile", "entropy"; NULL-terminated. */
extern const char *const sdlf_calibration_names[];

/* Reports how many samples calibration has processed. */
typedef void sdlf_quantization_progress(void *user, int64_t done, int64_t samples);

typedef struct sdlf_quantization_options {
    /* Quantise only weights, to 8 or 4 bits; 0: activations too, which needs `data`. */
    int weights_only;
    int64_t block;   /* 4-bit weights: how many along the summed axis share a scale: a power of 2, at least 16; 0: 32 */
    bool per_tensor; /* 8-bit weights: one scale per tensor instead of one per filter or column */
    /* For activations: */
    const sdlf_dataset *data;    /* samples for the model's one input, normalised as the model specifies */
    sdlf_calculator *calculator; /* runs the samples */
    int64_t samples;             /* at most this many, drawn from all with seed 1; 0: 128 */
    sdlf_calibration calibration;
    double percentile;       /* in (50, 100]; 0: 99.99 */
    bool signed_activations; /* int8; else uint8 */
    /* Names of layers to leave in floating point; a name that ends in '*' matches all that begin with it. */
    const char *const *skip;
    int skip_count;
    int opset;                            /* as in sdlf_onnx_export_options; 4-bit weights require at least 21 */
    sdlf_quantization_progress *progress; /* optional */
    sdlf_go_on *go_on; /* called before each batch; false: use the ranges of the samples so far. NULL: all samples */
    void *user;        /* passed to both */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_quantization_options;

/* What was written. */
typedef struct sdlf_quantized {
    int opset, node_count;
    int layers, left;            /* convolutions and matrix products with integer weights, and those without */
    int values;                  /* quantised activations */
    int64_t samples;             /* on which their ranges were determined */
    int64_t bytes, bytes_before; /* of the file, and of the same file with float32 */
    bool fixed_batch;            /* the network allows only a batch of 1 */
    void *reserved[4];           /* zero; reserved for new members */
} sdlf_quantized;

/* Writes a built model as a quantised ONNX file at `path`, in the form of sdlf_model_to_onnx, with batch
 * normalisations folded into the convolutions before them. Weights q are symmetric, int8 or int4, and represent
 * scale q; DequantizeLinear specifies this, with one scale per filter (or column), per tensor, or per block. With
 * 4-bit weights, a grouped convolution with fewer channels than a block has 8-bit weights. With activations, a pair
 * of QuantizeLinear and DequantizeLinear follows every value that is read by a convolution, by a matrix product or,
 * where computation continues in integers, by an addition, a pooling or a change of shape; biases are int32 with
 * the product of both scales. `result` may be NULL. Errors: those of sdlf_model_to_onnx; SDLF_ERROR_ARGUMENT:
 * options out of range, a layer to skip that does not exist, a network without a layer to quantise;
 * SDLF_ERROR_SHAPE: samples that do not fit the model's input; SDLF_ERROR_NUMERIC: a value that is not finite on
 * the samples. */
sdlf_status sdlf_quantize(const sdlf_model *model, const char *path, const sdlf_quantization_options *options,
                          sdlf_quantized *result);

#ifdef __cplusplus
}
#endif
#endif
