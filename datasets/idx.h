/* SPDX-License-Identifier: MIT */
/* The header of IDX files. */
#ifndef SDLF_DATASETS_IDX_H
#define SDLF_DATASETS_IDX_H

#include <sdlf/tensor.h>

/* Bytes of an IDX header: the magic number and four per dimension. */
static inline int sdlf_idx_header_size(int rank)
{
    return 4 + 4 * rank;
}

/* Like sdlf_idx_read, but without the elements: the tensor is a view with no data. */
sdlf_status sdlf_idx_read_outline(sdlf_tensor *tensor, const char *path);

#endif
