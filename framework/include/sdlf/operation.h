/* SPDX-License-Identifier: MIT */
/* Operations: WHAT a calculator can compute.
 *
 * A layer describes its forward and backward pass as a sequence of operations; a calculator has a kernel for each kind.
 * An operation holds its operands by value, in the order that the contract of its kind lists them, and the options of
 * its kind.
 *
 *   <sdlf/operations/kinds.h>         the kinds, each with its contract: shapes, formula, what may alias
 *   <sdlf/operations/elementwise.h>   functions of elements: activations, and those of two operands
 *   <sdlf/operations/normalization.h> how raw samples become a network's input
 *   <sdlf/operations/indexing.h>      along one axis: reductions, picking, resampling
 *   <sdlf/operations/quantization.h>  numbers of one byte that stand for others
 *   <sdlf/operations/attention.h>     softmax(q k^T) v
 *   <sdlf/operations/recurrent.h>     steps of recurrent networks
 *   <sdlf/operations/window.h>        sliding windows: convolution and pooling
 *   <sdlf/operations/augmentation.h>  random changes of images
 *   <sdlf/operations/update.h>        how weights follow their gradient
 *   <sdlf/fusion.h>                   groups of operations that a calculator takes as one
 *
 * Threads: operations are values, classes constant: all functions may be called from any thread.
 * Ownership: an operation borrows the memory of its operands; classes and texts are the library's.
 * Errors: sdlf_operation_check says what is wrong with an operation (status.h); the rest does not fail. */
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
#pragma clang diagnostic ignored "-Wnested-anon-types" /* structs in the union, without names of their own */
#endif
typedef struct sdlf_operation {
    sdlf_operation_kind kind;
    int algorithm; /* index into the slot's algorithms; 0 is the calculator's own choice */
    sdlf_tensor in[SDLF_MAX_INPUTS];
    sdlf_tensor out[SDLF_MAX_OUTPUTS];
    sdlf_tensor workspace; /* uint8, as many bytes as the slot wants; absent when it wants none */
    sdlf_tensor prepared;  /* uint8: the weights as the slot's `prepare` made them; absent: taken as they are */
    /* Hints, of which a kernel need take no notice; absent where there is nothing to say. */
    sdlf_tensor ahead; /* uint8, constant: what an operation behind this one reads; it may be prefetched into a cache */
    const struct sdlf_operation *before; /* queued just before; neither touches what the other writes */
    union {
        struct {
            double value;
        } fill;
        struct {
            float mean, scale; /* where channels.count is 0 */
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
            int64_t first; /* the number of element 0 */
        } dropout;
        struct {
            float epsilon, momentum;
            sdlf_activation activation;
        } batch_norm;
        struct {
            int axis;
        } softmax;
        sdlf_binary_options binary; /* binary_backward's too */
        sdlf_arg_reduce_options arg_reduce;
        struct {
            int axis;
        } index; /* gather and gather_backward */
        sdlf_top_k_options top_k;
        sdlf_resample_options resample; /* resample_backward's too */
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
        sdlf_quantize_options quantize;  /* dequantize's too */
        sdlf_quantized_conv2d_options quantized_conv2d;
        sdlf_quantized_add_options quantized_add;
        sdlf_quantized_pool2d_options quantized_pool2d;
        sdlf_integer_matmul_options integer_matmul;
        sdlf_attention_options attention;
        sdlf_recurrence_options recurrence; /* of lstm and gru, forward and backward */
        struct {
            unsigned char options[240]; /* the fusion's own, at the beginning: aligned for any of them */
            const sdlf_fusion *fusion;
        } fused;
        unsigned char reserved[256]; /* more than any has, so that options can grow */
    };
} sdlf_operation;
#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic pop
#endif

/* ---- what is known of a kind, on every calculator ----
 *
 * 16-bit storage: where T is float32, operands marked in the kind's class (`storage`: activations, their gradients and, in
 * convolutions and gemm, weights) may all be float16 or all bfloat16. They are converted to float32 as they are read,
 * computed with and summed in float32 (a product may multiply them as they are), and rounded to nearest even as they are
 * stored. Every other operand stays float32. In convolution and pooling all operands stored in 16 bits are channels last:
 * w is (K,R,S,C/G) in memory. Operands in 16-bit storage begin at a multiple of 16 bytes. w of conv2d_forward and
 * conv2d_backward_input, b of gemm, and an operand of binary, may be float32 beside others in 16 bits (`float32_beside`),
 * laid out as it would be in float32.
 *
 * float32 training channels last: where w of a convolution lies (K,R,S,C/G) in float32, so do its images (N,H,W,C). Its
 * operands, those of gradients of images channels last, and those of a fused batch_norm2d of rows begin at a multiple of 16
 * bytes, too. */

typedef struct sdlf_operand {
    const char *name; /* NULL ends the list */
    bool optional;
    bool updated; /* an output that is read and changed in place ("!") */
    bool sparse;  /* a sparse matrix; all others are dense */
} sdlf_operand;

/* Arithmetic and the least memory traffic that the operation needs, each operand moved once. */
typedef struct sdlf_cost {
    int64_t flops;
    int64_t bytes;
} sdlf_cost;

/* How an operation that has no kernel for images (N,C,H,W) that lie channels last takes them all the same: under other
 * shapes. */
typedef enum sdlf_nhwc_rule {
    SDLF_NHWC_NEVER = 0,
    SDLF_NHWC_ELEMENTS, /* it goes element by element, inputs broadcast: as (N,H,W,C) */
    /* It goes by channels: operands of `storage` as (N H W, C), the others have a number for each channel. */
    SDLF_NHWC_ROWS,
} sdlf_nhwc_rule;

/* The option by which a user requests the algorithm of a kind (sdlf_plan_options). */
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
    unsigned may_alias;       /* bit i: out[0] may be the same memory as in[i] */
    unsigned any_strides;     /* bit i: in[i] may have any strides; bit SDLF_MAX_INPUTS + i: out[i] */
    unsigned reads_parts;     /* of these: parts of other tensors are read as fast, where the last axis has stride 1 */
    unsigned channels_last;   /* bits as in any_strides: may be channels last, together */
    unsigned stays_row_major; /* of these: may be row-major where others are channels last */
    unsigned storage;         /* bits as in any_strides: may be in a storage type, together (see above) */
    unsigned float32_beside;  /* of these: may be float32, row-major, beside others in a storage type */
    sdlf_nhwc_rule nhwc_rule;
    sdlf_algorithm_request request;
    bool updates;    /* an optimizer's update of a parameter, out[0], and nothing else */
    size_t epilogue; /* offsetof(sdlf_operation, ...) the sdlf_activation that out[0] goes through; 0: it has none */
    /* Do dtypes, shapes and options fit together? Called once, when a plan is built; kernels rely on it. */
    sdlf_status (*check)(const sdlf_operation *operation);
    /* FLOPs; NULL: one for every element of out[0]. Bytes are the operands', counted by sdlf_operation_cost. */
    int64_t (*flops)(const sdlf_operation *operation);
    /* How many elements of in[input] it reads; below 0: all. Optional; NULL: all of every input. */
    int64_t (*elements_read)(const sdlf_operation *operation, int input);
    /* What decides, beside operands and epilogue, which algorithm is the fastest: " stride 2,2 groups 1", by which plan
     * files find the operation again. Optional; NULL: they do not hold the kind. */
    void (*print_options)(const sdlf_operation *operation, char *text, size_t size);
    /* Do 16 bits suffice for what it reads and writes in inference? Optional; NULL: they do. */
    bool (*suits_16_bits)(const sdlf_operation *operation);
    /* Bit i: in[i] goes into operation->prepared, so that it must be constant where that is made; and in[i] is left
     * unread where operation->prepared is present, in the host's memory. */
    unsigned packed, unread;
    void *reserved[3]; /* zero: room for members to come */
} sdlf_operation_class;

/* The class of a kind; NULL outside the enumeration. And of an operation: its kind's, or its fusion's. */
const sdlf_operation_class *sdlf_operation_class_of(sdlf_operation_kind kind);
const sdlf_operation_class *sdlf_operation_type(const sdlf_operation *operation);

/* Every required operand present, then the class's own check. The message names the operation and the operand. */
sdlf_status sdlf_operation_check(const sdlf_operation *operation);

/* Is an operand channels last, and not row-major at the same time? */
bool sdlf_operation_is_channels_last(const sdlf_operation *operation);
/* And is another one, of those that may be so, row-major? (Where the kind's contract does not allow that, the check
 * refuses it.) */
bool sdlf_operation_is_mixed(const sdlf_operation *operation);
/* The operation with all operands channels last that may be so. Its memory stays where it was: bind it again. */
sdlf_operation sdlf_operation_channels_last(const sdlf_operation *operation);

/* Does a batch_norm2d of training do anything beside normalising: is there a residual, an activation or a gradient of
 * either? */
bool sdlf_batch_norm2d_is_fused(const sdlf_operation *operation);

/* SDLF_FLOAT16 or SDLF_BFLOAT16 where operands are stored so; SDLF_FLOAT32 where weights are float32 and channels last,
 * as the images beside them; else SDLF_NONE. */
sdlf_dtype sdlf_operation_storage(const sdlf_operation *operation);
/* The operation with all float32 operands stored as that type that may be so, channels last where its kind has them.
 * Its memory stays where it was: bind it again. */
sdlf_operation sdlf_operation_stored(const sdlf_operation *operation, sdlf_dtype dtype);

sdlf_cost sdlf_operation_cost(const sdlf_operation *operation);

/* The activation that its result goes through, an option of the operation; NULL where the kind has none. */
sdlf_activation *sdlf_operation_epilogue(sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
