/* IDX in memory: what sdlf_idx_read (sdlf/dataset.h) does for a file. */
#ifndef SDLF_DATASETS_IDX_H
#define SDLF_DATASETS_IDX_H

#include <stddef.h>

#include <sdlf/tensor.h>

/* Bytes of an IDX header: magic, and four for each dimension. */
static inline int sdlf_idx_header_size(int rank)
{
    return 4 + 4 * rank;
}

/* Parse the `size` bytes of an IDX file, plain or gzip. `name` stands for the file in messages. The tensor (uint8, host
 * memory) is the caller's: sdlf_tensor_release(tensor, NULL). Errors: SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_idx_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

#endif
