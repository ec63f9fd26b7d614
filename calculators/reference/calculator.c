/* SPDX-License-Identifier: MIT */
/* The reference calculator: every operation in plain loops with double accumulation, on one thread.
 *
 * It specifies what an operation computes, shows how, and is the oracle against which the tests check every other
 * calculator. It is never optimised. */
#include "calculators/augmentation.h"
#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"
#include "calculators/fusions/inverted_residual.h"
#include "calculators/host_memory.h"
#include "calculators/reference/reference.h"
#include "calculators/registry.h"
#include "calculators/shuffle.h"

#include <stdio.h>

static sdlf_status open_reference(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options; /* one thread, one device */
    calculator->space = SDLF_HOST_SPACE;
    return SDLF_OK;
}

static void close_reference(sdlf_calculator *calculator)
{
    (void)calculator;
}

static void describe_reference(const sdlf_calculator *calculator, char *text, size_t size)
{
    (void)calculator;
    snprintf(text, size, "plain loops, 1 thread");
}

/* It computes any fusion; these are the ones it is offered. */
static const sdlf_fused_slot fusions[] = {
#define SDLF_SHARED_FUSION(shared) {.fusion = &(shared)},
#include "calculators/fusions/list.h"
#undef SDLF_SHARED_FUSION
    {.fusion = NULL},
};

const sdlf_calculator_class sdlf_reference_calculator_class = {
    .name = "reference",
    .summary = "plain loops with double accumulation, one thread: the specification",
    .size = sizeof(sdlf_calculator),
    .open = open_reference,
    .close = close_reference,
    .describe = describe_reference,
    .allocate = host_allocate,
    .deallocate = host_deallocate,
    .upload = host_copy,
    .download = host_copy,
    .synchronize = host_synchronize,
    .fusions = fusions,
    .kernel =
        {
            [SDLF_FILL] = {.run = fill_reference},
            [SDLF_COPY] = {.run = copy_reference},
            [SDLF_GATHER_BATCH] = {.run = gather_batch_reference, .workspace = sdlf_changed_workspace},
            [SDLF_NEXT_BATCH] = {.run = next_batch_reference},
            [SDLF_SHUFFLE] = {.run = shuffle_reference, .workspace = sdlf_shuffle_workspace},
            [SDLF_GEMM] = {.run = gemm_reference, .supports = gemm_supports_reference, .storage = true},
            [SDLF_QUANTIZE] = {.run = quantize_reference},
            [SDLF_DEQUANTIZE] = {.run = dequantize_reference},
            [SDLF_QUANTIZED_CONV2D] = {.run = quantized_conv2d_reference, .channels_last = true, .mixed = true},
            [SDLF_QUANTIZED_ADD] = {.run = quantized_add_reference},
            [SDLF_QUANTIZED_POOL2D] = {.run = quantized_pool2d_reference, .channels_last = true},
            [SDLF_INTEGER_MATMUL] = {.run = integer_matmul_reference},
            [SDLF_DYNAMIC_QUANTIZE] = {.run = dynamic_quantize_reference},
            [SDLF_ATTENTION_FORWARD] = {.run = attention_forward_reference, .storage = true},
            [SDLF_ATTENTION_BACKWARD] = {.run = attention_backward_reference, .storage = true},
            [SDLF_LSTM_FORWARD] = {.run = lstm_forward_reference, .workspace = recurrent_workspace_reference},
            [SDLF_LSTM_BACKWARD] = {.run = lstm_backward_reference, .workspace = recurrent_workspace_reference},
            [SDLF_GRU_FORWARD] = {.run = gru_forward_reference, .workspace = recurrent_workspace_reference},
            [SDLF_GRU_BACKWARD] = {.run = gru_backward_reference, .workspace = recurrent_workspace_reference},
            [SDLF_SPMM_CSR] = {.run = spmm_csr_reference},
            [SDLF_REDUCE] = {.run = reduce_reference, .storage = true},
            [SDLF_ADD] = {.run = add_reference, .storage = true},
            [SDLF_CONV2D_FORWARD] =
                {.run = conv2d_forward_reference, .channels_last = true, .mixed = true, .storage = true},
            [SDLF_CONV2D_BACKWARD_INPUT] = {.run = conv2d_backward_input_reference,
                                            .channels_last = true,
                                            .storage = true},
            [SDLF_CONV2D_BACKWARD_WEIGHTS] = {.run = conv2d_backward_weights_reference,
                                              .channels_last = true,
                                              .storage = true},
            [SDLF_MAX_POOL2D_FORWARD] = {.run = max_pool2d_forward_reference, .channels_last = true, .storage = true},
            [SDLF_MAX_POOL2D_BACKWARD] = {.run = max_pool2d_backward_reference, .channels_last = true, .storage = true},
            [SDLF_AVG_POOL2D_FORWARD] = {.run = avg_pool2d_forward_reference, .channels_last = true, .storage = true},
            [SDLF_AVG_POOL2D_BACKWARD] = {.run = avg_pool2d_backward_reference, .channels_last = true, .storage = true},
            [SDLF_GLOBAL_AVG_POOL2D_FORWARD] = {.run = global_avg_pool2d_forward_reference,
                                                .channels_last = true,
                                                .storage = true},
            [SDLF_GLOBAL_AVG_POOL2D_BACKWARD] = {.run = global_avg_pool2d_backward_reference,
                                                 .channels_last = true,
                                                 .storage = true},
            [SDLF_ACTIVATION_FORWARD] = {.run = activation_forward_reference, .storage = true},
            [SDLF_ACTIVATION_BACKWARD] = {.run = activation_backward_reference, .storage = true},
            [SDLF_DROPOUT_FORWARD] = {.run = dropout_forward_reference},
            [SDLF_DROPOUT_BACKWARD] = {.run = dropout_backward_reference},
            [SDLF_BATCH_NORM2D_FORWARD] = {.run = batch_norm2d_forward_reference, .storage = true},
            [SDLF_BATCH_NORM2D_INFER] = {.run = batch_norm2d_infer_reference, .storage = true},
            [SDLF_BATCH_NORM2D_BACKWARD] = {.run = batch_norm2d_backward_reference, .storage = true},
            [SDLF_SOFTMAX_FORWARD] = {.run = softmax_forward_reference},
            [SDLF_SOFTMAX_BACKWARD] = {.run = softmax_backward_reference},
            [SDLF_LOG_SOFTMAX_FORWARD] = {.run = log_softmax_forward_reference},
            [SDLF_LOG_SOFTMAX_BACKWARD] = {.run = log_softmax_backward_reference},
            [SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD] = {.run = softmax_cross_entropy_forward_reference},
            [SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD] = {.run = softmax_cross_entropy_backward_reference},
            [SDLF_BINARY] = {.run = binary_reference, .storage = true},
            [SDLF_BINARY_BACKWARD] = {.run = binary_backward_reference},
            [SDLF_SELECT] = {.run = select_reference},
            [SDLF_ARG_REDUCE] = {.run = arg_reduce_reference},
            [SDLF_GATHER] = {.run = gather_reference},
            [SDLF_GATHER_BACKWARD] = {.run = gather_backward_reference},
            [SDLF_TOP_K] = {.run = top_k_reference},
            [SDLF_RESAMPLE] = {.run = resample_reference},
            [SDLF_RESAMPLE_BACKWARD] = {.run = resample_backward_reference},
            [SDLF_MATMUL] = {.run = matmul_reference},
            [SDLF_NORMALIZE_FORWARD] = {.run = normalize_forward_reference, .storage = true},
            [SDLF_NORMALIZE_BACKWARD] = {.run = normalize_backward_reference, .storage = true},
            [SDLF_RANDOM_UNIFORM] = {.run = random_uniform_reference},
            [SDLF_RANDOM_NORMAL] = {.run = random_normal_reference},
            [SDLF_SGD_UPDATE] = {.run = sgd_update_reference},
            [SDLF_ADAM_UPDATE] = {.run = adam_update_reference},
            [SDLF_RMSPROP_UPDATE] = {.run = rmsprop_update_reference},
            [SDLF_CLIP_SCALE] = {.run = clip_scale_reference},
            [SDLF_CHECK_FINITE] = {.run = check_finite_reference},
            [SDLF_LOSS_SCALE_UPDATE] = {.run = loss_scale_update_reference},
            [SDLF_FUSED] = {.run = fused_reference,
                            .supports = fused_supports_reference,
                            .workspace = fused_workspace_reference,
                            .channels_last = true,
                            .mixed = true,
                            .storage = true},
        },
};
