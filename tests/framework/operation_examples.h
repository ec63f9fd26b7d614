/* SPDX-License-Identifier: MIT */
/* A valid operation of each kind, and of each shared fusion, for the tests of the operation classes. */
#ifndef SDLF_TESTS_OPERATION_EXAMPLES_H
#define SDLF_TESTS_OPERATION_EXAMPLES_H

#include <sdlf/operation.h>

#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"
#include "calculators/fusions/inverted_residual.h"

enum { N = 2, C = 4, H = 6, W = 6, K = 8 };

/* An operand without memory: checks only look at shapes and options. */
static inline sdlf_tensor t(sdlf_shape shape)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, NULL);
}

static inline sdlf_tensor of(sdlf_dtype dtype, sdlf_shape shape)
{
    return sdlf_tensor_view(dtype, shape, NULL);
}

static const sdlf_window2d window_3x3 = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
static const sdlf_window2d window_2x2 = {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};

/* ---- attention ---- */

static inline sdlf_operation attention(sdlf_operation_kind kind)
{
    sdlf_tensor q = t(sdlf_shape(2, 4, 3, 5)), k = t(sdlf_shape(2, 2, 6, 5)), v = t(sdlf_shape(2, 2, 6, 7));
    sdlf_tensor mask = t(sdlf_shape(2, 4, 3, 6)), y = t(sdlf_shape(2, 4, 3, 7)), row = t(sdlf_shape(2, 4, 3));
    sdlf_operation forward = {.kind = kind,
                              .in = {q, k, v, mask, t(sdlf_shape(1))},
                              .out = {y, row, row},
                              .attention = {.scale = 0.5f, .causal = true}};
    sdlf_operation backward = {
        .kind = kind, .in = {q, k, v, mask, y, row, row, y}, .out = {q, k, v}, .attention = forward.attention};
    return kind == SDLF_ATTENTION_FORWARD ? forward : backward;
}

/* ---- recurrent networks ---- */

static inline sdlf_operation recurrent(sdlf_operation_kind kind)
{
    bool is_lstm = kind == SDLF_LSTM_FORWARD || kind == SDLF_LSTM_BACKWARD;
    int64_t units = 7, row = is_lstm ? 4 * units : 3 * units;
    sdlf_tensor rows = t(sdlf_shape(5, N, row)), weight = t(sdlf_shape(row, units)), bias = t(sdlf_shape(row));
    sdlf_tensor y = t(sdlf_shape(5, N, units)), state = t(sdlf_shape(N, units));
    switch (kind) {
    case SDLF_LSTM_FORWARD:
        return (sdlf_operation){.kind = kind, .in = {rows, weight, bias, state, state}, .out = {y, rows, y}};
    case SDLF_GRU_FORWARD:
        return (sdlf_operation){.kind = kind, .in = {rows, weight, bias, state}, .out = {y, rows, y}};
    case SDLF_LSTM_BACKWARD:
        return (sdlf_operation){.kind = kind, .in = {rows, weight, y, state, y, state}, .out = {rows, state, state}};
    default: return (sdlf_operation){.kind = kind, .in = {rows, weight, y, y, state, y}, .out = {rows, rows, state}};
    }
}

/* ---- quantised numbers ---- */

static inline sdlf_operation quantised(sdlf_operation_kind kind)
{
    sdlf_tensor x = of(SDLF_UINT8, sdlf_shape(N, C, H, W)), y = of(SDLF_UINT8, sdlf_shape(N, C, H, W));
    sdlf_tensor pooled = of(SDLF_UINT8, sdlf_shape(N, C, 3, 3));
    switch (kind) {
    case SDLF_QUANTIZE:
        return (sdlf_operation){.kind = kind, .in = {t(x.shape)}, .out = {x}, .quantize = {0.1f, 3, 0, 255}};
    case SDLF_DEQUANTIZE:
        return (sdlf_operation){.kind = kind, .in = {x}, .out = {t(x.shape)}, .quantize = {.scale = 0.1f, .zero = 3}};
    case SDLF_QUANTIZED_CONV2D:
        return (sdlf_operation){.kind = kind,
                                .in = {x, of(SDLF_INT8, sdlf_shape(K, C / 2, 3, 3)), of(SDLF_INT32, sdlf_shape(K)),
                                       t(sdlf_shape(K)), of(SDLF_UINT8, sdlf_shape(1))},
                                .out = {of(SDLF_UINT8, sdlf_shape(N, K, H, W))},
                                .quantized_conv2d = {window_3x3, 2, 128, 1, 0, 255}};
    case SDLF_INTEGER_MATMUL:
        return (sdlf_operation){.kind = kind,
                                .in = {of(SDLF_UINT8, sdlf_shape(N, H, W)), of(SDLF_INT8, sdlf_shape(N, W, K)),
                                       of(SDLF_UINT8, sdlf_shape(H)), of(SDLF_INT8, sdlf_shape(1)), t(sdlf_shape(1)),
                                       t(sdlf_shape(K))},
                                .out = {of(SDLF_UINT8, sdlf_shape(N, H, K))},
                                .integer_matmul = {.high = 255}};
    case SDLF_DYNAMIC_QUANTIZE:
        return (sdlf_operation){.kind = kind,
                                .in = {t(x.shape)},
                                .out = {of(SDLF_UINT8, x.shape), t(sdlf_shape(1)), of(SDLF_UINT8, sdlf_shape(1))}};
    case SDLF_QUANTIZED_ADD:
        return (sdlf_operation){
            .kind = kind, .in = {x, y}, .out = {y}, .quantized_add = {0.5f, 0.25f, 128, 0, 1, 0, 255}};
    default:
        return (sdlf_operation){.kind = kind,
                                .in = {x},
                                .out = {pooled},
                                .quantized_pool2d = {.window = window_2x2, .scale = 1, .high = 255}};
    }
}

/* ---- a valid operation of each kind, with every optional operand ---- */

static inline sdlf_operation convolution(sdlf_operation_kind kind)
{
    sdlf_tensor x = t(sdlf_shape(N, C, H, W)), w = t(sdlf_shape(K, C / 2, 3, 3)), y = t(sdlf_shape(N, K, H, W));
    sdlf_tensor bias = t(sdlf_shape(K));
    sdlf_operation o = {.kind = kind, .conv2d = {.window = window_3x3, .groups = 2}};
    switch (kind) {
    case SDLF_CONV2D_FORWARD:
        o.in[0] = x, o.in[1] = w, o.in[2] = bias, o.in[3] = y, o.out[0] = y;
        o.conv2d.activation.function = SDLF_RELU;
        break;
    case SDLF_CONV2D_BACKWARD_INPUT: o.in[0] = y, o.in[1] = w, o.in[2] = x, o.out[0] = x; break;
    default: o.in[0] = x, o.in[1] = y, o.out[0] = w, o.out[1] = bias;
    }
    return o;
}

static inline sdlf_operation conv2d_pool(const sdlf_fusion *fusion)
{
    sdlf_tensor x = t(sdlf_shape(N, C, H, W)), w = t(sdlf_shape(K, C / 2, 3, 3)), bias = t(sdlf_shape(K));
    sdlf_tensor y = t(sdlf_shape(N, K, 3, 3)), mask = of(SDLF_UINT8, y.shape);
    sdlf_operation forward = {.in = {x, w, bias}, .out = {y, mask}};
    sdlf_operation backward = {.in = {x, w, y, mask}, .out = {w, bias, x}};
    sdlf_operation sgd = {.in = {x, y, mask, t(sdlf_shape(1))}, .out = {w, w, bias, bias, x}};
    sdlf_operation o = fusion == &sdlf_conv2d_pool_forward_fusion    ? forward
                       : fusion == &sdlf_conv2d_pool_backward_fusion ? backward
                                                                     : sgd;
    conv2d_pool_options *options = conv2d_pool_options_in(&o);
    o.kind = SDLF_FUSED;
    o.fused.fusion = fusion;
    *options = (conv2d_pool_options){.window = window_3x3, .groups = 2, .pool = window_2x2};
    if (fusion == &sdlf_conv2d_pool_backward_sgd_fusion) options->sgd.momentum = 0.9f;
    return o;
}

static inline sdlf_operation inverted_residual(void)
{
    sdlf_tensor bias = t(sdlf_shape(K)), x = t(sdlf_shape(N, C, H, W));
    sdlf_operation o = {
        .kind = SDLF_FUSED,
        .in = {x, t(sdlf_shape(K, 1, 3, 3)), t(sdlf_shape(C, K, 1, 1)), t(sdlf_shape(K, C, 1, 1)), bias, bias,
               t(sdlf_shape(C)), x},
        .out = {x},
        .fused = {.fusion = &sdlf_inverted_residual_fusion},
    };
    *inverted_residual_options_in(&o) =
        (inverted_residual_options){.window = window_3x3, .expanded = {.function = SDLF_RELU}};
    return o;
}

static inline sdlf_operation pooling(sdlf_operation_kind kind)
{
    bool global = kind == SDLF_GLOBAL_AVG_POOL2D_FORWARD || kind == SDLF_GLOBAL_AVG_POOL2D_BACKWARD;
    sdlf_tensor x = t(sdlf_shape(N, C, H, W)), y = global ? t(sdlf_shape(N, C, 1, 1)) : t(sdlf_shape(N, C, 3, 3));
    sdlf_operation o = {.kind = kind};
    if (!global) o.pool2d.window = window_2x2;
    switch (kind) {
    case SDLF_MAX_POOL2D_FORWARD: o.in[0] = x, o.out[0] = y, o.out[1] = of(SDLF_UINT8, y.shape); break;
    case SDLF_MAX_POOL2D_BACKWARD: o.in[0] = x, o.in[1] = y, o.in[2] = y, o.out[0] = x; break;
    case SDLF_AVG_POOL2D_BACKWARD:
    case SDLF_GLOBAL_AVG_POOL2D_BACKWARD: o.in[0] = y, o.out[0] = x; break;
    default: o.in[0] = x, o.out[0] = y;
    }
    return o;
}

static inline sdlf_operation normalization(sdlf_operation_kind kind)
{
    sdlf_tensor x = t(sdlf_shape(N, C, H, W)), c = t(sdlf_shape(C));
    sdlf_operation o = {.kind = kind, .in = {x, c, c}, .out = {x}, .batch_norm = {.epsilon = 1e-5f, .momentum = 0.1f}};
    switch (kind) {
    case SDLF_BATCH_NORM2D_FORWARD: o.in[3] = x, o.out[1] = c, o.out[2] = c, o.out[3] = c, o.out[4] = c; break;
    case SDLF_BATCH_NORM2D_INFER: o.in[3] = c, o.in[4] = c; break;
    default:
        o.in[3] = c, o.in[4] = x, o.in[5] = x, o.in[6] = c, o.out[1] = c, o.out[2] = c, o.out[3] = x;
        o.batch_norm.activation.function = SDLF_RELU;
    }
    return o;
}

static inline sdlf_operation update(sdlf_operation_kind kind)
{
    sdlf_tensor w = t(sdlf_shape(3, 5)), one = t(sdlf_shape(1));
    sdlf_operation o = {.kind = kind, .in = {w, one, one}, .out = {w, w, w}};
    switch (kind) {
    case SDLF_SGD_UPDATE:
        o.out[2] = (sdlf_tensor){.dtype = SDLF_NONE};
        o.sgd.momentum = 0.9f;
        break;
    case SDLF_ADAM_UPDATE:
        o.in[3] = of(SDLF_INT64, sdlf_shape(1));
        o.adam.beta1 = 0.9f, o.adam.beta2 = 0.999f, o.adam.epsilon = 1e-8f;
        break;
    default: o.rmsprop.rho = 0.99f, o.rmsprop.epsilon = 1e-8f, o.rmsprop.momentum = 0.5f;
    }
    return o;
}

static inline sdlf_operation gemm_backward_sgd(void)
{
    sdlf_tensor x = t(sdlf_shape(N, 5)), dy = t(sdlf_shape(N, 3)), w = t(sdlf_shape(3, 5)), b = t(sdlf_shape(3));
    sdlf_operation o = {.kind = SDLF_FUSED,
                        .in = {x, dy, t(sdlf_shape(1))},
                        .out = {w, w, x, b, b},
                        .fused = {.fusion = &sdlf_gemm_backward_sgd_fusion}};
    gemm_backward_sgd_options_in(&o)->sgd.momentum = 0.9f;
    return o;
}

static inline sdlf_operation example(sdlf_operation_kind kind)
{
    sdlf_tensor x = t(sdlf_shape(3, 5)), one = t(sdlf_shape(1)), labels = of(SDLF_INT32, sdlf_shape(3));
    sdlf_tensor step = of(SDLF_INT64, sdlf_shape(1));
    sdlf_operation o = {.kind = kind, .in = {x}, .out = {x}};
    switch (kind) {
    case SDLF_FILL:
    case SDLF_RANDOM_UNIFORM:
    case SDLF_RANDOM_NORMAL: o.in[0] = (sdlf_tensor){.dtype = SDLF_NONE}; break;
    case SDLF_GATHER_BATCH:
        o.in[0] = of(SDLF_UINT8, sdlf_shape(9, C, H, W)), o.in[1] = labels, o.in[2] = step;
        o.in[3] = of(SDLF_INT32, sdlf_shape(9)), o.out[0] = t(sdlf_shape(3, C, H, W));
        o.gather.scale = 1;
        o.gather.augment.shift = 2;
        break;
    case SDLF_NEXT_BATCH:
        o.in[0] = of(SDLF_INT32, sdlf_shape(9)), o.in[1] = t(sdlf_shape(3)), o.in[2] = step;
        o.out[0] = o.out[3] = step, o.out[1] = of(SDLF_INT32, sdlf_shape(3)), o.out[2] = t(sdlf_shape(1));
        o.in[3] = of(SDLF_INT32, sdlf_shape(9)), o.out[4] = o.out[1];
        break;
    case SDLF_SHUFFLE:
        o.in[0] = step, o.out[0] = labels;
        o.shuffle.seed = 3;
        break;
    case SDLF_GEMM:
        o.in[0] = t(sdlf_shape(2, 3)), o.in[1] = t(sdlf_shape(3, 4)), o.in[2] = t(sdlf_shape(4));
        o.in[3] = o.out[0] = t(sdlf_shape(2, 4));
        o.gemm.alpha = 1;
        break;
    case SDLF_SPMM_CSR:
        o.in[0] = sdlf_csr_view(SDLF_FLOAT32, 4, 3, 7, NULL), o.in[1] = x, o.in[2] = t(sdlf_shape(5));
        o.out[0] = t(sdlf_shape(4, 5));
        break;
    case SDLF_REDUCE:
        o.reduce.axis = 1;
        o.out[0] = t(sdlf_shape(3));
        break;
    case SDLF_ADD:
    case SDLF_ACTIVATION_BACKWARD:
    case SDLF_SOFTMAX_BACKWARD:
    case SDLF_LOG_SOFTMAX_BACKWARD: o.in[1] = x; break;
    case SDLF_BINARY: o.in[1] = x; break;
    case SDLF_BINARY_BACKWARD: o.in[1] = o.in[2] = o.out[1] = x; break;
    case SDLF_SELECT:
        o.in[0].dtype = SDLF_BOOL;
        o.in[1] = o.in[2] = x;
        break;
    case SDLF_ARG_REDUCE: o.out[0] = of(SDLF_INT64, sdlf_shape(5)); break;
    case SDLF_GATHER:
        o.in[1] = of(SDLF_INT64, sdlf_shape(2, 2));
        o.out[0] = t(sdlf_shape(2, 2, 5));
        break;
    case SDLF_GATHER_BACKWARD:
        o.in[1] = of(SDLF_INT64, sdlf_shape(2, 2));
        o.in[0] = t(sdlf_shape(2, 2, 5));
        break;
    case SDLF_TOP_K:
        o.top_k.axis = 1;
        o.out[0] = t(sdlf_shape(3, 2)), o.out[1] = of(SDLF_INT64, sdlf_shape(3, 2));
        break;
    case SDLF_RESAMPLE:
    case SDLF_RESAMPLE_BACKWARD:
        o.resample = (sdlf_resample_options){.axis = 1, .mode = SDLF_RESAMPLE_LINEAR, .scale = 2};
        o.in[0] = o.out[0] = t(sdlf_shape(3, 10));
        if (kind == SDLF_RESAMPLE) o.in[0] = x;
        if (kind == SDLF_RESAMPLE_BACKWARD) o.out[0] = x;
        break;
    case SDLF_MATMUL:
        o.in[0] = t(sdlf_shape(2, 3, 5)), o.in[1] = t(sdlf_shape(2, 5, 4)), o.out[0] = t(sdlf_shape(2, 3, 4));
        break;
    case SDLF_NORMALIZE_FORWARD:
        o.in[1] = o.in[2] = t(sdlf_shape(5)), o.out[1] = o.out[2] = t(sdlf_shape(3));
        o.normalize.length = 5, o.normalize.inner = 1, o.normalize.epsilon = 1e-5f;
        break;
    case SDLF_NORMALIZE_BACKWARD:
        o.in[1] = o.out[1] = o.out[2] = t(sdlf_shape(5)), o.in[2] = o.in[3] = t(sdlf_shape(3)), o.in[4] = x;
        o.normalize.length = 5, o.normalize.inner = 1;
        break;
    case SDLF_DROPOUT_FORWARD:
    case SDLF_DROPOUT_BACKWARD:
        o.in[1] = step;
        o.dropout.probability = 0.5f;
        break;
    case SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD:
        o.in[1] = labels, o.in[2] = one, o.out[1] = one, o.out[2] = of(SDLF_FLOAT64, sdlf_shape(3)), o.out[3] = x;
        o.in[3] = t(sdlf_shape(3));
        break;
    case SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD: o.in[1] = labels, o.in[2] = one, o.in[3] = t(sdlf_shape(3)); break;
    case SDLF_CLIP_SCALE:
        o.in[1] = o.out[0] = one;
        o.clip.max_norm = 1;
        break;
    case SDLF_CHECK_FINITE: o.out[0] = one; break;
    case SDLF_LOSS_SCALE_UPDATE:
        o.in[0] = o.out[1] = one;
        o.in[1] = o.out[2] = of(SDLF_INT64, sdlf_shape(1));
        o.out[0] = t(sdlf_shape(3));
        o.loss_scale = (sdlf_loss_scale_rule){.growth = 2, .backoff = 0.5f, .interval = 2000};
        break;
    case SDLF_CONV2D_FORWARD:
    case SDLF_CONV2D_BACKWARD_INPUT:
    case SDLF_CONV2D_BACKWARD_WEIGHTS: return convolution(kind);
    case SDLF_MAX_POOL2D_FORWARD:
    case SDLF_MAX_POOL2D_BACKWARD:
    case SDLF_AVG_POOL2D_FORWARD:
    case SDLF_AVG_POOL2D_BACKWARD:
    case SDLF_GLOBAL_AVG_POOL2D_FORWARD:
    case SDLF_GLOBAL_AVG_POOL2D_BACKWARD: return pooling(kind);
    case SDLF_BATCH_NORM2D_FORWARD:
    case SDLF_BATCH_NORM2D_INFER:
    case SDLF_BATCH_NORM2D_BACKWARD: return normalization(kind);
    case SDLF_QUANTIZE:
    case SDLF_DEQUANTIZE:
    case SDLF_QUANTIZED_CONV2D:
    case SDLF_QUANTIZED_ADD:
    case SDLF_QUANTIZED_POOL2D:
    case SDLF_INTEGER_MATMUL:
    case SDLF_DYNAMIC_QUANTIZE: return quantised(kind);
    case SDLF_ATTENTION_FORWARD:
    case SDLF_ATTENTION_BACKWARD: return attention(kind);
    case SDLF_LSTM_FORWARD:
    case SDLF_LSTM_BACKWARD:
    case SDLF_GRU_FORWARD:
    case SDLF_GRU_BACKWARD: return recurrent(kind);
    case SDLF_SGD_UPDATE:
    case SDLF_ADAM_UPDATE:
    case SDLF_RMSPROP_UPDATE: return update(kind);
    default: break;
    }
    return o;
}

/* Examples by index: first the kinds, then the fusions; SDLF_FUSED itself is also the first of the fusions. */
enum {
    INVERTED_RESIDUAL = SDLF_OPERATION_COUNT,
    GEMM_BACKWARD_SGD,
    CONV2D_POOL_FORWARD,
    CONV2D_POOL_BACKWARD,
    CONV2D_POOL_BACKWARD_SGD,
    EXAMPLES
};

static inline sdlf_operation example_at(int index)
{
    switch (index) {
    case SDLF_FUSED:
    case INVERTED_RESIDUAL: return inverted_residual();
    case GEMM_BACKWARD_SGD: return gemm_backward_sgd();
    case CONV2D_POOL_FORWARD: return conv2d_pool(&sdlf_conv2d_pool_forward_fusion);
    case CONV2D_POOL_BACKWARD: return conv2d_pool(&sdlf_conv2d_pool_backward_fusion);
    case CONV2D_POOL_BACKWARD_SGD: return conv2d_pool(&sdlf_conv2d_pool_backward_sgd_fusion);
    default: return example((sdlf_operation_kind)index);
    }
}

#endif
