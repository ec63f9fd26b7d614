/* SPDX-License-Identifier: MIT */
/* Operations: what a calculator can compute.
 *
 * A layer describes its forward and backward pass as a sequence of operations; a calculator has a kernel for each kind.
 * An operation holds its operands by value, in the order in which the contract of its kind lists them, and the options
 * of its kind.
 *
 *   <sdlf/operations/kinds.h>         the kinds, each with its contract: shapes, formula, permitted aliasing
 *   <sdlf/operations/elementwise.h>   activations, and element-wise functions of two operands
 *   <sdlf/operations/normalization.h> normalisation of raw samples into a network's input
 *   <sdlf/operations/indexing.h>      along one axis: index-producing reductions, gathering, resampling
 *   <sdlf/operations/quantization.h>  quantised tensors (8-bit integers, 8- and 4-bit weights)
 *   <sdlf/operations/attention.h>     softmax(q k^T) v
 *   <sdlf/operations/recurrent.h>     time steps of recurrent networks
 *   <sdlf/operations/window.h>        sliding windows: convolution and pooling
 *   <sdlf/operations/augmentation.h>  random changes of images
 *   <sdlf/operations/update.h>        optimizer updates of weights
 *   <sdlf/fusion.h>                   groups of operations that a calculator computes as one
 *
 * Threads: operations are values and classes are constant, so all functions may be called from any thread.
 * Ownership: an operation borrows the memory of its operands; classes and texts belong to the library.
 * Errors: sdlf_operation_check reports what is wrong with an operation (status.h); the other functions do not fail. */
#ifndef SDLF_OPERATION_H
#define SDLF_OPERATION_H

#include <sdlf/operations/attention.h>
#include <sdlf/operations/augmentation.h>
#include <sdlf/operations/elementwise.h>
#include <sdlf/operations/indexing.h>
#include <sdlf/operations/kinds.h>
#include <sdlf/operations/normalization.h>
#include <sdlf/operations/quantization.h>
#include <sdlf/operations/recurrent.h>
#include <sdlf/operations/update.h>
#include <sdlf/operations/window.h>
#include <sdlf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* <sdlf/fusion.h> */
typedef struct sdlf_fusion sdlf_fusion;

#define SDLF_MAX_INPUTS  8
#define SDLF_MAX_OUTPUTS 5

#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types" /* anonymous structs in the union */
#endif
typedef struct sdlf_operation {
    sdlf_operation_kind kind;
    int algorithm; /* index into the slot's algorithms; 0: the calculator chooses */
    sdlf_tensor in[SDLF_MAX_INPUTS];
    sdlf_tensor out[SDLF_MAX_OUTPUTS];
    sdlf_tensor workspace; /* uint8, as many bytes as the slot requires; absent if it requires none */
    sdlf_tensor prepared;  /* uint8: the weights as prepacked by the slot's `prepare`; absent: not prepacked */
    /* Hints, which a kernel may ignore; absent where there is none. */
    sdlf_tensor ahead; /* uint8, constant: data that a later operation reads; may be prefetched into a cache */
    const struct sdlf_operation *before; /* queued just before this one; neither accesses what the other writes */
    union {
        struct {
            double value;
        } fill;
        struct {
            float mean, scale; /* used if channels.count is 0 */
            sdlf_channel_normalization channels;
            sdlf_augmentation augment;
            sdlf_auto_augment automatic; /* before `augment`, with its seed */
        } gather;
        struct {
            uint64_t seed;
        } shuffle;
        struct {
            bool transpose_a, transpose_b;
            float alpha;
            sdlf_activation activation;
        } gemm;
        struct {
            bool log_softmax;
            sdlf_activation activation;
        } spmm;
        struct {
            sdlf_reduction function;
            int axis;
        } reduce;
        struct {
            sdlf_activation activation;
        } add;
        struct {
            sdlf_window2d window;
            int groups;
            sdlf_activation activation;
        } conv2d;
        struct {
            sdlf_window2d window;
            sdlf_ties ties;
            bool count_padding;
            sdlf_activation activation; /* only max_pool2d_forward: identity or ReLU */
        } pool2d;
        sdlf_activation activation;
        struct {
            float probability;
            uint64_t seed;
            uint32_t stream;
            int64_t first; /* index of element 0 in the random sequence */
        } dropout;
        struct {
            float epsilon, momentum;
            sdlf_activation activation;
        } batch_norm;
        struct {
            int axis;
        } softmax;
        sdlf_binary_options binary; /* also of binary_backward */
        sdlf_arg_reduce_options arg_reduce;
        struct {
            int axis;
        } index; /* gather and gather_backward */
        sdlf_top_k_options top_k;
        sdlf_resample_options resample; /* also of resample_backward */
        struct {
            bool transpose_a, transpose_b;
        } matmul;
        struct {
            int64_t length, inner;
            float epsilon;
        } normalize;
        struct {
            float smoothing;
        } cross_entropy;
        struct {
            uint64_t seed;
            uint32_t stream;
            float a, b;
        } random;          /* low, high; or mean, deviation */
        sdlf_sgd_rule sgd; /* sgd_update */
        struct {
            double beta1, beta2, epsilon, decay;
            bool decoupled;
        } adam;
        struct {
            double rho, epsilon, momentum, decay;
        } rmsprop;
        struct {
            float max_norm;
        } clip;
        sdlf_loss_scale_rule loss_scale; /* loss_scale_update */
        sdlf_quantize_options quantize;  /* also of dequantize */
        sdlf_quantized_conv2d_options quantized_conv2d;
        sdlf_quantized_add_options quantized_add;
        sdlf_quantized_pool2d_options quantized_pool2d;
        sdlf_integer_matmul_options integer_matmul;
        sdlf_attention_options attention;
        sdlf_recurrence_options recurrence; /* of lstm and gru, forward and backward */
        struct {
            unsigned char options[240]; /* the fusion's own; at the start of the union, so aligned for any type */
            const sdlf_fusion *fusion;
        } fused;
        unsigned char reserved[256]; /* larger than any member, so that options can grow */
    };
} sdlf_operation;
#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic pop
#endif

/* ---- what is known of a kind, on every calculator ----
 *
 * 16-bit storage: where T is float32, the operands marked in the kind's class (`storage`: activations, their gradients
 * and, in convolutions and gemm, weights) may all be float16 or all be bfloat16. They are converted to float32 when
 * read; arithmetic and accumulation are in float32 (a product may multiply the 16-bit values directly); results are
 * rounded to nearest even when stored. Every other operand stays float32. In convolution and pooling all operands
 * stored in 16 bits are channels last: w is (K,R,S,C/G) in memory. Operands in 16-bit storage are aligned to 16 bytes.
 * w of conv2d_forward and conv2d_backward_input, b and c of gemm, and inputs of binary may be float32 beside others in
 * 16 bits (`float32_beside`), and then have their float32 layout.
 *
 * Channels last in float32 training: where w of a convolution is (K,R,S,C/G) in memory in float32, its images are
 * (N,H,W,C). The operands of such a convolution, those of gradients of channels-last images, and those of a fused
 * batch_norm2d over rows are aligned to 16 bytes, too. */

typedef struct sdlf_operand {
    const char *name; /* NULL ends the list */
    bool optional;
    bool updated; /* an output that is read and changed in place ("!") */
    bool sparse;  /* a sparse matrix; all others are dense */
} sdlf_operand;

/* Arithmetic, and the least memory traffic that the operation needs: each operand is moved once. */
typedef struct sdlf_cost {
    int64_t flops;
    int64_t bytes;
} sdlf_cost;

/* How an operation without a kernel for channels-last images (N,C,H,W) can still be applied to them: its operands are
 * viewed under other shapes. */
typedef enum sdlf_nhwc_rule {
    SDLF_NHWC_NEVER = 0,
    SDLF_NHWC_ELEMENTS, /* element-wise with broadcasting: viewed as (N,H,W,C) */
    /* Per channel: operands of `storage` are viewed as (N H W, C); the others have one value per channel. */
    SDLF_NHWC_ROWS,
} sdlf_nhwc_rule;

/* The option (sdlf_plan_options) with which a user requests the algorithm of a kind. */
typedef enum sdlf_algorithm_request {
    SDLF_REQUEST_NONE = 0,
    SDLF_REQUEST_CONV, /* conv_algorithm */
    SDLF_REQUEST_GEMM, /* gemm_algorithm */
    SDLF_REQUEST_COUNT
} sdlf_algorithm_request;

typedef struct sdlf_operation_class {
    const char *name; /* "conv2d_forward" */
    sdlf_operand in[SDLF_MAX_INPUTS + 1];
    sdlf_operand out[SDLF_MAX_OUTPUTS + 1];
    unsigned may_alias;       /* bit i: out[0] may share the memory of in[i] */
    unsigned any_strides;     /* bit i: in[i] may have any strides; bit SDLF_MAX_INPUTS + i: out[i] */
    unsigned reads_parts;     /* of these: strided views are read as fast, if the last axis has stride 1 */
    unsigned channels_last;   /* bits as in any_strides: may be channels last, all of them at once */
    unsigned stays_row_major; /* of these: may stay row-major where others are channels last */
    unsigned storage;         /* bits as in any_strides: may be in a storage type, all in the same one (see above) */
    unsigned float32_beside;  /* of these: may be float32, row-major, beside others in a storage type */
    sdlf_nhwc_rule nhwc_rule;
    sdlf_algorithm_request request;
    bool updates;    /* an optimizer's update of one parameter, out[0], with no other effect */
    size_t epilogue; /* offsetof(sdlf_operation, ...) of the sdlf_activation that is applied to out[0]; 0: none */
    /* Checks that dtypes, shapes and options agree. Called once, when a plan is built; kernels rely on it. */
    sdlf_status (*check)(const sdlf_operation *operation);
    /* FLOPs; NULL: one per element of out[0]. sdlf_operation_cost counts the bytes, those of the operands. */
    int64_t (*flops)(const sdlf_operation *operation);
    /* The number of elements of in[input] that are read; negative: all. Optional; NULL: all of every input. */
    int64_t (*elements_read)(const sdlf_operation *operation, int input);
    /* Prints what determines the fastest algorithm besides operands and epilogue: " stride 2,2 groups 1". Files of
     * sdlf_choices identify the operation by this text. Optional; NULL: choices do not cover this kind. */
    void (*print_options)(const sdlf_operation *operation, char *text, size_t size);
    /* True if 16 bits suffice for what it reads and writes. Optional; NULL: true. */
    bool (*suits_16_bits)(const sdlf_operation *operation);
    /* packed, bit i: in[i] is packed into operation->prepared, and must be constant where that is done. unread, bit i:
     * in host memory, in[i] is not read if operation->prepared is present. */
    unsigned packed, unread;
    void *reserved[3]; /* zero; reserved for new members */
} sdlf_operation_class;

/* The class of a kind, NULL outside the enumeration; and that of an operation: its kind's or its fusion's. */
const sdlf_operation_class *sdlf_operation_class_of(sdlf_operation_kind kind);
const sdlf_operation_class *sdlf_operation_type(const sdlf_operation *operation);

/* Checks that every required operand is present, then runs the class's check. Messages name operation and operand. */
sdlf_status sdlf_operation_check(const sdlf_operation *operation);

/* True if an operand is channels last without being row-major as well. */
bool sdlf_operation_is_channels_last(const sdlf_operation *operation);
/* True if the operation is channels last and another operand that could be channels last is row-major. (The check
 * rejects this where the contract of the kind does not allow it.) */
bool sdlf_operation_is_mixed(const sdlf_operation *operation);
/* The operation with every operand channels last that may be so. No data is moved: bind the operands again. */
sdlf_operation sdlf_operation_channels_last(const sdlf_operation *operation);

/* True if a training batch_norm2d does more than normalise: it has a residual, an activation, or a gradient of
 * either. */
bool sdlf_batch_norm2d_is_fused(const sdlf_operation *operation);

/* SDLF_FLOAT16 or SDLF_BFLOAT16 where operands are stored in that type; SDLF_FLOAT32 where the weights are float32 and
 * channels last, like the images beside them; else SDLF_NONE. */
sdlf_dtype sdlf_operation_storage(const sdlf_operation *operation);
/* The operation with every float32 operand that may be in a storage type in `dtype`, channels last where the kind has
 * that. No data is moved or converted: bind the operands again. */
sdlf_operation sdlf_operation_stored(const sdlf_operation *operation, sdlf_dtype dtype);

sdlf_cost sdlf_operation_cost(const sdlf_operation *operation);

/* The activation that is applied to its result, one of its options; NULL if the kind has none. */
sdlf_activation *sdlf_operation_epilogue(sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
