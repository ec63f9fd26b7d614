/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: matrix products, dense and sparse. */
#include <sdlf/fusion.h>

#include "apps/bench/kernels/kernels.h"

static void add_gemm(kernel_rows *rows, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool relu)
{
    m = kernel_rows_side(rows, m);
    n = kernel_rows_side(rows, n);
    k = kernel_rows_side(rows, k);
    sdlf_operation op = {.kind = SDLF_GEMM, .gemm = {transpose_a, transpose_b, .alpha = 1}};
    op.in[0] = kernel_rows_tensor(rows, transpose_a ? sdlf_shape(k, m) : sdlf_shape(m, k));
    op.in[1] = kernel_rows_tensor(rows, transpose_b ? sdlf_shape(n, k) : sdlf_shape(k, n));
    if (relu) op.in[2] = kernel_rows_tensor(rows, sdlf_shape(n));
    if (relu) op.gemm.activation.function = SDLF_RELU;
    op.out[0] = kernel_rows_tensor(rows, sdlf_shape(m, n));
    kernel_rows_add(rows, &op, true, "%lldx%lldx%lld%s%s%s", (long long)m, (long long)n, (long long)k,
                    transpose_a ? ", a transposed" : "", transpose_b ? ", b transposed" : "", relu ? ", relu" : "");
}

/* Adds a fully connected layer's whole backward pass, with momentum SGD. */
static void add_backward_sgd(kernel_rows *rows, int64_t n, int64_t units, int64_t inputs)
{
    inputs = kernel_rows_side(rows, inputs);
    units = kernel_rows_side(rows, units);
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(n, inputs)),
                w = kernel_rows_tensor(rows, sdlf_shape(units, inputs));
    sdlf_tensor dy = kernel_rows_tensor(rows, sdlf_shape(n, units)), b = kernel_rows_tensor(rows, sdlf_shape(units));
    sdlf_tensor rate = kernel_rows_tensor(rows, sdlf_shape(1));
    const sdlf_operation input = {.kind = SDLF_GEMM, .in = {dy, w}, .out = {x}, .gemm = {.alpha = 1}};
    const sdlf_operation weights = {
        .kind = SDLF_GEMM, .in = {dy, x}, .out = {w}, .gemm = {.transpose_a = true, .alpha = 1}};
    const sdlf_operation update = {.kind = SDLF_SGD_UPDATE, .in = {w, rate}, .out = {w, w}, .sgd = {.momentum = 0.9f}};
    const sdlf_operation sum = {.kind = SDLF_REDUCE, .in = {dy}, .out = {b}, .reduce = {SDLF_REDUCE_SUM, 0}};
    const sdlf_operation bias = {.kind = SDLF_SGD_UPDATE, .in = {b, rate}, .out = {b, b}, .sgd = {.momentum = 0.9f}};
    const sdlf_operation *const members[] = {&input, NULL, &weights, &update, &sum, &bias};
    sdlf_operation op;
    if (sdlf_fusion_join(sdlf_fusion_find("gemm_backward_sgd"), members, &op))
        kernel_rows_add(rows, &op, true, "%lldx%lldx%lld, momentum, dx, bias", (long long)n, (long long)units,
                        (long long)inputs);
}

static void add_matmul(kernel_rows *rows, int64_t matrices, int64_t m, int64_t n, int64_t k)
{
    sdlf_operation op = {.kind = SDLF_MATMUL, .matmul = {.transpose_b = true}};
    op.in[0] = kernel_rows_tensor(rows, sdlf_shape(matrices, m, k));
    op.in[1] = kernel_rows_tensor(rows, sdlf_shape(matrices, n, k));
    op.out[0] = kernel_rows_tensor(rows, sdlf_shape(matrices, m, n));
    kernel_rows_add(rows, &op, true, "%lld of %lldx%lldx%lld, b transposed", (long long)matrices, (long long)m,
                    (long long)n, (long long)k);
}

/* Heads of self-attention, forward and backward. */
static void add_attention(kernel_rows *rows, int64_t samples, int64_t heads, int64_t length, int64_t depth, bool causal)
{
    length = kernel_rows_side(rows, length);
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(samples, heads, length, depth));
    sdlf_tensor row = kernel_rows_tensor(rows, sdlf_shape(samples, heads, length));
    sdlf_operation forward = {.kind = SDLF_ATTENTION_FORWARD, .in = {x, x, x}, .out = {x, row, row}};
    forward.attention = (sdlf_attention_options){.scale = 0.125, .causal = causal};
    sdlf_operation backward = {.kind = SDLF_ATTENTION_BACKWARD, .in = {x, x, x, {.dtype = SDLF_NONE}, x, row, row, x}};
    for (int i = 0; i < 3; i++) backward.out[i] = x;
    backward.attention = forward.attention;
    const sdlf_operation *both[] = {&forward, &backward};
    for (int i = 0; i < 2; i++)
        kernel_rows_add(rows, both[i], true, "%lldx%lldx%lldx%lld%s", (long long)samples, (long long)heads,
                        (long long)length, (long long)depth, causal ? ", causal" : "");
}

/* Steps of lstm (4 gates) or gru (3), forward and backward. */
static void add_recurrent(kernel_rows *rows, int gates, int64_t steps, int64_t samples, int64_t units)
{
    units = kernel_rows_side(rows, units);
    sdlf_tensor all = kernel_rows_tensor(rows, sdlf_shape(steps, samples, gates * units));
    sdlf_tensor y = kernel_rows_tensor(rows, sdlf_shape(steps, samples, units)), none = {.dtype = SDLF_NONE};
    sdlf_tensor weight = kernel_rows_tensor(rows, sdlf_shape(gates * units, units));
    bool lstm = gates == 4;
    const sdlf_operation both[] = {
        {.kind = lstm ? SDLF_LSTM_FORWARD : SDLF_GRU_FORWARD, .in = {all, weight}, .out = {y, all, y}},
        {.kind = lstm ? SDLF_LSTM_BACKWARD : SDLF_GRU_BACKWARD,
         .in = {all, weight, y, lstm ? none : y, lstm ? y : none, lstm ? none : y},
         .out = {all, lstm ? none : all}}};
    for (int i = 0; i < 2; i++)
        kernel_rows_add(rows, &both[i], true, "%lld steps of %lldx%lld", (long long)steps, (long long)samples,
                        (long long)units);
}

/* A graph of as many nodes as rows, `degree` edges each. */
static void add_spmm(kernel_rows *rows, int64_t nodes, int64_t degree, int64_t features)
{
    nodes = nodes * rows->elements >> 25;
    if (nodes < 100) nodes = 100;
    sdlf_operation op = {.kind = SDLF_SPMM_CSR};
    op.in[0] = sdlf_csr_view(rows->dtype, nodes, nodes, nodes * degree, NULL);
    op.in[1] = op.out[0] = kernel_rows_tensor(rows, sdlf_shape(nodes, features));
    kernel_rows_add(rows, &op, true, "%lld rows of %lld, %lld columns", (long long)nodes, (long long)degree,
                    (long long)features);
}

void kernel_rows_products(kernel_rows *rows)
{
    add_gemm(rows, 4096, 4096, 4096, false, false, false);
    add_gemm(rows, 16, 1024, 6272, false, true, true); /* simple_cnn's hidden layer: forward at three batches, dx, dw */
    add_gemm(rows, 64, 1024, 6272, false, true, true);
    add_gemm(rows, 1024, 1024, 6272, false, true, true);
    add_gemm(rows, 1024, 6272, 1024, false, false, false);
    add_gemm(rows, 1024, 6272, 1024, true, false, false);
    add_gemm(rows, 10000, 10, 1024, false, true, false);
    add_gemm(rows, 131072, 16, 128, false, false, false);
    add_gemm(rows, 131072, 128, 128, false, true, false);
    add_backward_sgd(rows, 64, 1024, 6272);
    add_backward_sgd(rows, 1024, 1024, 6272);
    add_backward_sgd(rows, 1024, 10, 1024);
    add_matmul(rows, 96, 196, 196, 64);
    add_attention(rows, 8, 12, 196, 64, false);
    for (int gates = 4; gates >= 3; gates--) {
        add_recurrent(rows, gates, 64, 1, 256);
        add_recurrent(rows, gates, 64, 32, 512);
    }
    add_attention(rows, 8, 8, 1024, 64, true);
    add_spmm(rows, 262144, 12, 16);
    add_spmm(rows, 262144, 12, 128);
}
