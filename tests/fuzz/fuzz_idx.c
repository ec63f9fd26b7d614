/* SPDX-License-Identifier: MIT */
/* The IDX parser on arbitrary bytes: an error with a message, or a tensor with the file's content. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "datasets/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_tensor tensor;
    sdlf_status status = sdlf_idx_parse(&tensor, data, size, "input");
    if (status != SDLF_OK) {
        if (sdlf_tensor_present(&tensor) || strncmp(sdlf_error_message(), "input: ", 7) != 0) abort();
        return 0;
    }
    int64_t count = sdlf_tensor_count(&tensor);
    size_t header = (size_t)sdlf_idx_header_size(tensor.shape.rank);
    if (tensor.dtype != SDLF_UINT8 || count < 1) abort();
    if (data[0] == 0 && (header + (size_t)count != size || memcmp(tensor.data, data + header, (size_t)count) != 0))
        abort();
    int64_t sum = 0; /* every byte is there to be read */
    for (int64_t i = 0; i < count; i++) sum += ((const unsigned char *)tensor.data)[i];
    if (sum > 255 * count) abort();
    sdlf_tensor_release(&tensor, NULL);
    return 0;
}
