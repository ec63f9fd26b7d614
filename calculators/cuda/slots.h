/* SPDX-License-Identifier: MIT */
/* The parts of the CUDA calculator's class table, for that class and for those that extend it: an object whose first member is a
 * cuda_calculator, some slots of its own, and these for everything else. */
#ifndef SDLF_CALCULATORS_CUDA_SLOTS_H
#define SDLF_CALCULATORS_CUDA_SLOTS_H

#include "calculators/augmentation.h"
#include "calculators/cuda/attention/attention.h"
#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/cuda.h"
#include "calculators/cuda/launch_fusion.h"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/recurrent/recurrent.h"
#include "calculators/fusions/gemm_backward_sgd.h"
#include "calculators/matmul.h"

sdlf_status open_cuda(sdlf_calculator *calculator, const sdlf_calculator_options *options);
void close_cuda(sdlf_calculator *calculator);
void describe_cuda(const sdlf_calculator *calculator, char *text, size_t size);
int device_count_cuda(void);
sdlf_status allocate_cuda(sdlf_calculator *calculator, int64_t bytes, void **memory);
void deallocate_cuda(sdlf_calculator *calculator, void *memory);
sdlf_status upload_cuda(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes);
sdlf_status download_cuda(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes);
sdlf_status copy_from_device_cuda(sdlf_calculator *calculator, void *to, const void *from, int64_t bytes);
sdlf_status synchronize_cuda(sdlf_calculator *calculator);
sdlf_status memory_info_cuda(sdlf_calculator *calculator, int64_t *available, int64_t *total);
sdlf_status record_begin_cuda(sdlf_calculator *calculator);
sdlf_status record_end_cuda(sdlf_calculator *calculator, void **recording);
sdlf_status replay_cuda(sdlf_calculator *calculator, void *recording);
void discard_cuda(sdlf_calculator *calculator, void *recording);
bool normalize_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool reduce_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

extern const sdlf_fused_slot fusions_cuda[];
/* The fusion that classes with other convolutions share. */
#define CUDA_GEMM_FUSION                                                                                               \
    {                                                                                                                  \
        &sdlf_gemm_backward_sgd_fusion,                                                                                \
        {                                                                                                              \
            .run = gemm_backward_sgd_cuda, .storage = true, .supports = gemm_backward_sgd_supports_cuda,               \
            .workspace = gemm_backward_sgd_workspace_cuda                                                              \
        }                                                                                                              \
    }

/* Devices, memory, queues and graph capture. */
/* clang-format off */
#define CUDA_METHODS \
    .device_count = device_count_cuda, \
    .allocate = allocate_cuda, \
    .deallocate = deallocate_cuda, \
    .upload = upload_cuda, \
    .download = download_cuda, \
    .copy_from_device = copy_from_device_cuda, \
    .synchronize = synchronize_cuda, \
    .memory_info = memory_info_cuda, \
    .queues = &cuda_queues, \
    .record_begin = record_begin_cuda, \
    .record_end = record_end_cuda, \
    .replay = replay_cuda, \
    .discard = discard_cuda, \
    .longest_recording = 512, \
    .run_together = run_fused_cuda
/* clang-format on */

/* The kernels. */
/* clang-format off */
#define CUDA_POOL_SLOT(kernel) \
    {.run = kernel, .channels_last = true, .storage = true, .supports = pool2d_supports_cuda, .workspace = pool2d_workspace_cuda}
#define CUDA_NORM_SLOT(kernel) \
    {.run = kernel, .storage = true, .supports = batch_norm2d_supports_cuda, .workspace = batch_norm2d_workspace_cuda}
#define CUDA_RECURRENT_SLOT \
    {.run = recurrent_cuda, .supports = recurrent_supports_cuda, .workspace = recurrent_workspace_cuda, \
     .algorithms = recurrent_algorithms_cuda, .automatic = recurrent_automatic_cuda}
#define CUDA_SLOTS \
    [SDLF_FILL] = {.run = fill_cuda}, \
    [SDLF_COPY] = {.run = copy_cuda}, \
    [SDLF_GATHER_BATCH] = {.run = gather_batch_cuda, .workspace = sdlf_changed_workspace}, \
    [SDLF_NEXT_BATCH] = {.run = next_batch_cuda}, \
    [SDLF_SHUFFLE] = {.run = shuffle_cuda, .workspace = shuffle_workspace_cuda}, \
    [SDLF_GEMM] = {.run = gemm_cuda, \
                   .storage = true, \
                   .supports = gemm_supports_cuda, \
                   .workspace = gemm_workspace_cuda, \
                   .algorithms = gemm_algorithms_cuda, \
                   .automatic = gemm_automatic_cuda, \
                   .prepared = gemm_prepared_cuda, \
                   .prepare = gemm_prepare_cuda}, \
    [SDLF_SPMM_CSR] = {.run = spmm_csr_cuda, \
                       .supports = spmm_csr_supports_cuda, \
                       .workspace = spmm_csr_workspace_cuda, \
                       .prepared = spmm_csr_prepared_cuda, \
                       .prepare = spmm_csr_prepare_cuda}, \
    [SDLF_REDUCE] = {.run = reduce_cuda, \
                     .storage = true, \
                     .supports = reduce_supports_cuda, \
                     .workspace = reduce_workspace_cuda}, \
    [SDLF_ADD] = {.run = add_cuda, .storage = true, .supports = elements_support_cuda}, \
    [SDLF_CONV2D_FORWARD] = {.run = conv2d_cuda, \
        .channels_last = true, \
        .storage = true, \
        .mixed = true, \
        .prefers_channels_last = conv2d_prefers_channels_last_cuda, \
        .supports = conv2d_supports_cuda, \
        .workspace = conv2d_workspace_cuda, \
        .algorithms = conv2d_algorithms_cuda, \
        .notes = conv2d_notes_cuda, \
        .work = conv2d_work_cuda, \
        .automatic = conv2d_automatic_cuda, \
        .prepared = conv2d_prepared_cuda, \
        .prepare = conv2d_prepare_cuda}, \
    [SDLF_CONV2D_BACKWARD_INPUT] = {.run = conv2d_cuda, \
        .channels_last = true, \
        .storage = true, \
        .prefers_channels_last = conv2d_prefers_channels_last_cuda, \
        .supports = conv2d_supports_cuda, \
        .workspace = conv2d_workspace_cuda, \
        .algorithms = conv2d_algorithms_cuda, \
        .notes = conv2d_notes_cuda, \
        .work = conv2d_work_cuda, \
        .automatic = conv2d_automatic_cuda, \
        .prepared = conv2d_prepared_cuda, \
        .prepare = conv2d_prepare_cuda}, \
    [SDLF_CONV2D_BACKWARD_WEIGHTS] = {.run = conv2d_cuda, \
        .channels_last = true, \
        .storage = true, \
        .supports = conv2d_supports_cuda, \
        .workspace = conv2d_workspace_cuda, \
        .algorithms = conv2d_algorithms_cuda, \
        .notes = conv2d_notes_cuda, \
        .work = conv2d_work_cuda, \
        .automatic = conv2d_automatic_cuda}, \
    [SDLF_MAX_POOL2D_FORWARD] = CUDA_POOL_SLOT(max_pool2d_forward_cuda), \
    [SDLF_MAX_POOL2D_BACKWARD] = CUDA_POOL_SLOT(max_pool2d_backward_cuda), \
    [SDLF_AVG_POOL2D_FORWARD] = CUDA_POOL_SLOT(avg_pool2d_forward_cuda), \
    [SDLF_AVG_POOL2D_BACKWARD] = CUDA_POOL_SLOT(avg_pool2d_backward_cuda), \
    [SDLF_GLOBAL_AVG_POOL2D_FORWARD] = CUDA_POOL_SLOT(global_avg_pool2d_forward_cuda), \
    [SDLF_GLOBAL_AVG_POOL2D_BACKWARD] = CUDA_POOL_SLOT(global_avg_pool2d_backward_cuda), \
    [SDLF_ACTIVATION_FORWARD] = {.run = activation_forward_cuda, .storage = true, .supports = elements_support_cuda}, \
    [SDLF_ACTIVATION_BACKWARD] = {.run = activation_backward_cuda, .storage = true, .supports = elements_support_cuda}, \
    [SDLF_DROPOUT_FORWARD] = {.run = dropout_forward_cuda}, \
    [SDLF_DROPOUT_BACKWARD] = {.run = dropout_backward_cuda}, \
    [SDLF_BATCH_NORM2D_FORWARD] = CUDA_NORM_SLOT(batch_norm2d_forward_cuda), \
    [SDLF_BATCH_NORM2D_INFER] = {.run = batch_norm2d_infer_cuda, .storage = true, .supports = batch_norm2d_infer_supports_cuda}, \
    [SDLF_BATCH_NORM2D_BACKWARD] = CUDA_NORM_SLOT(batch_norm2d_backward_cuda), \
    [SDLF_SOFTMAX_FORWARD] = {.run = softmax_forward_cuda}, \
    [SDLF_SOFTMAX_BACKWARD] = {.run = softmax_backward_cuda}, \
    [SDLF_LOG_SOFTMAX_FORWARD] = {.run = log_softmax_forward_cuda}, \
    [SDLF_LOG_SOFTMAX_BACKWARD] = {.run = log_softmax_backward_cuda}, \
    [SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD] = {.run = softmax_cross_entropy_forward_cuda, \
                                            .workspace = softmax_cross_entropy_forward_workspace_cuda}, \
    [SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD] = {.run = softmax_cross_entropy_backward_cuda}, \
    [SDLF_BINARY] = {.run = binary_cuda, .storage = true, .supports = binary_supports_cuda}, \
    [SDLF_BINARY_BACKWARD] = {.run = binary_backward_cuda}, \
    [SDLF_SELECT] = {.run = select_cuda}, \
    [SDLF_ARG_REDUCE] = {.run = arg_reduce_cuda, .workspace = arg_reduce_workspace_cuda}, \
    [SDLF_GATHER] = {.run = gather_cuda}, \
    [SDLF_GATHER_BACKWARD] = {.run = gather_backward_cuda}, \
    [SDLF_TOP_K] = {.run = top_k_cuda}, \
    [SDLF_RESAMPLE] = {.run = resample_cuda}, \
    [SDLF_RESAMPLE_BACKWARD] = {.run = resample_backward_cuda}, \
    [SDLF_MATMUL] = {.run = matmul_cuda, \
                     .supports = sdlf_matmul_by_gemm_supports, \
                     .workspace = matmul_workspace_cuda}, \
    [SDLF_ATTENTION_FORWARD] = {.run = attention_forward_cuda, .storage = true, .supports = attention_supports_cuda}, \
    [SDLF_ATTENTION_BACKWARD] = {.run = attention_backward_cuda, \
                                 .storage = true, \
                                 .supports = attention_supports_cuda, \
                                 .workspace = attention_backward_workspace_cuda}, \
    [SDLF_LSTM_FORWARD] = CUDA_RECURRENT_SLOT, \
    [SDLF_LSTM_BACKWARD] = CUDA_RECURRENT_SLOT, \
    [SDLF_GRU_FORWARD] = CUDA_RECURRENT_SLOT, \
    [SDLF_GRU_BACKWARD] = CUDA_RECURRENT_SLOT, \
    [SDLF_NORMALIZE_FORWARD] = {.run = normalize_forward_cuda, .storage = true, .supports = normalize_supports_cuda}, \
    [SDLF_NORMALIZE_BACKWARD] = {.run = normalize_backward_cuda, \
                                 .storage = true, \
                                 .supports = normalize_supports_cuda, \
                                 .workspace = normalize_backward_workspace_cuda}, \
    [SDLF_RANDOM_UNIFORM] = {.run = random_uniform_cuda, .supports = random_supports_cuda}, \
    [SDLF_RANDOM_NORMAL] = {.run = random_normal_cuda, .supports = random_supports_cuda}, \
    [SDLF_SGD_UPDATE] = {.run = update_cuda}, \
    [SDLF_ADAM_UPDATE] = {.run = update_cuda}, \
    [SDLF_RMSPROP_UPDATE] = {.run = update_cuda}, \
    [SDLF_CLIP_SCALE] = {.run = clip_scale_cuda}, \
    [SDLF_CHECK_FINITE] = {.run = check_finite_cuda}, \
    [SDLF_LOSS_SCALE_UPDATE] = {.run = loss_scale_update_cuda}
/* clang-format on */

#endif
