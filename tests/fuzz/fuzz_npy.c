/* SPDX-License-Identifier: MIT */
/* The .npy parser on arbitrary bytes: an error with a message, or a tensor of the bytes at the end of the file, permuted if the file
 * is column-major. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_same_bytes(const uint8_t *a, const uint8_t *b, size_t count)
{
    ptrdiff_t difference[UINT8_MAX + 1] = {0};
    for (size_t i = 0; i < count; i++) {
        difference[a[i]]++;
        difference[b[i]]--;
    }
    for (size_t i = 0; i <= UINT8_MAX; i++) {
        if (difference[i] != 0) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_tensor tensor;
    sdlf_status status = npy_parse(&tensor, data, size, "input");
    if (status != SDLF_OK) {
        if (sdlf_tensor_present(&tensor) || strncmp(sdlf_error_message(), "input: ", 7) != 0) abort();
        return 0;
    }
    size_t bytes = (size_t)sdlf_tensor_bytes(&tensor);
    if (bytes > size || !has_same_bytes(tensor.data, data + size - bytes, bytes)) abort();
    sdlf_tensor_release(&tensor, NULL);
    return 0;
}
