/* SPDX-License-Identifier: MIT */
/* Descriptors, cached for as long as the calculator is open: each is created when a plan first queries an operation, or when
 * it first runs, and found again by its key. */
#include "calculators/cudnn/cudnn.h"

#include <stdlib.h>
#include <string.h>

static void release(const cudnn_library *library, cudnn_kept *kept)
{
    for (int i = 0; i < 3; i++) {
        if (kept->tensor[i] != NULL) library->tensor_destroy(kept->tensor[i]);
    }
    if (kept->filter != NULL) library->filter_destroy(kept->filter);
    if (kept->convolution != NULL) library->convolution_destroy(kept->convolution);
    if (kept->pooling != NULL) library->pooling_destroy(kept->pooling);
    if (kept->activation != NULL) library->activation_destroy(kept->activation);
}

void cudnn_forget(cudnn_calculator *calculator)
{
    while (calculator->kept != NULL) {
        cudnn_kept *kept = calculator->kept;
        calculator->kept = kept->next;
        release(calculator->library, kept);
        free(kept);
    }
}

cudnn_kept *cudnn_find(const sdlf_calculator *base, const cudnn_key *key, cudnn_maker *make)
{
    /* the cache does not affect results, so it may be changed in a const calculator */
    cudnn_calculator *calculator = cudnn_calculator_from((sdlf_calculator *)base);
    cudnn_kept *kept;
    for (kept = calculator->kept; kept != NULL; kept = kept->next) {
        if (memcmp(&kept->key, key, sizeof *key) == 0) return kept->taken ? kept : NULL;
    }
    kept = calloc(1, sizeof *kept);
    if (kept == NULL) return NULL;
    kept->key = *key;
    kept->taken = make(calculator, kept) == CUDNN_STATUS_SUCCESS;
    if (!kept->taken) {
        release(calculator->library, kept);
        *kept = (cudnn_kept){.key = *key};
    }
    kept->next = calculator->kept;
    calculator->kept = kept;
    return kept->taken ? kept : NULL;
}

cudnnDataType_t cudnn_type(int32_t dtype)
{
    return dtype == SDLF_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

cudnnStatus_t cudnn_describe(cudnn_calculator *calculator, cudnnTensorDescriptor_t *tensor, const cudnn_key *key,
                             const int64_t side[4])
{
    int64_t count = 1;
    for (int i = 0; i < 4; i++) {
        if (side[i] < 1 || side[i] > INT32_MAX / count) return CUDNN_STATUS_NOT_SUPPORTED;
        count *= side[i];
    }
    cudnnStatus_t status = calculator->library->tensor_create(tensor);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return calculator->library->tensor_set(*tensor, key->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                           cudnn_type(key->dtype), (int)side[0], (int)side[1], (int)side[2],
                                           (int)side[3]);
}

cudnn_key cudnn_key_of(const sdlf_operation *operation)
{
    cudnn_key key;
    memset(&key, 0, sizeof key); /* padding bytes too */
    key.kind = (int32_t)operation->kind;
    key.dtype = (int32_t)operation->out[0].dtype;
    key.algorithm = operation->algorithm;
    key.last = sdlf_operation_is_channels_last(operation);
    return key;
}

void cudnn_key_set_shape(cudnn_key *key, int which, sdlf_shape shape)
{
    for (int i = 0; i < 4; i++) key->shape[which][i] = i < shape.rank ? shape.dim[i] : 1;
}

bool cudnn_key_set_window(cudnn_key *key, const sdlf_window2d *window)
{
    for (int i = 0; i < 2; i++) {
        if (window->padding_before[i] != window->padding_after[i]) return false;
        key->size[i] = window->size[i];
        key->stride[i] = window->stride[i];
        key->dilation[i] = window->dilation[i];
        key->padding[i] = window->padding_before[i];
    }
    return true;
}

cudnn_scalar cudnn_number(int32_t dtype, double value)
{
    return dtype == SDLF_FLOAT64 ? (cudnn_scalar){.twice = value} : (cudnn_scalar){.single = (float)value};
}

bool cudnn_is_aligned(const sdlf_operation *operation)
{
    uintptr_t bits = 0;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) bits |= (uintptr_t)operation->in[i].data;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) bits |= (uintptr_t)operation->out[i].data;
    return (bits & 15) == 0;
}
