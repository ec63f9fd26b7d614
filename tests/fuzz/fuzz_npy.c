/* SPDX-License-Identifier: MIT */
/* The .npy parser on any bytes: an error with a message, or a tensor whose every byte is there. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_tensor tensor;
    sdlf_status status = npy_parse(&tensor, data, size, "input");
    if (status != SDLF_OK) {
        if (sdlf_tensor_present(&tensor) || strncmp(sdlf_error_message(), "input: ", 7) != 0) abort();
        return 0;
    }
    size_t bytes = (size_t)sdlf_tensor_bytes(&tensor);
    if (bytes > size || (bytes > 0 && memcmp(tensor.data, data + size - bytes, bytes) != 0)) abort();
    sdlf_tensor_release(&tensor, NULL);
    return 0;
}
