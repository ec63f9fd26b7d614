/* SPDX-License-Identifier: MIT */
/* Shared by the two files of the matmul layer: products of floats (matmul.c) and of bytes (matmul_integers.c). */
#ifndef SDLF_LAYERS_MATMUL_H
#define SDLF_LAYERS_MATMUL_H

#include "layers/views.h"

/* The operands as matrices, before transposition, and the sizes of their products. */
typedef struct sdlf_matmul_sizes {
    sdlf_shape a, b, batch;
    int64_t m, n, k, inner; /* inner: k according to b */
    bool turn_a, turn_b;
} sdlf_matmul_sizes;

/* `batch` followed by the axes of a matrix. */
sdlf_shape sdlf_matmul_with_matrix(sdlf_shape batch, int64_t rows, int64_t columns);

/* y = op(a) op(b) over the batch; a and b are row-major, with leading axes of their own. */
sdlf_status sdlf_matmul_multiply(sdlf_layer_context *context, sdlf_shape batch, sdlf_tensor a, bool turn_a,
                                 sdlf_tensor b, bool turn_b, sdlf_tensor y);

/* Whether the inputs are bytes; for these, a check of their types and zero points, and the product in int32. */
bool sdlf_matmul_is_of_bytes(const sdlf_signature *signature);
sdlf_status sdlf_matmul_check_bytes(const sdlf_signature *signature, const sdlf_matmul_sizes *sizes);
sdlf_status sdlf_matmul_of_bytes(sdlf_layer_context *context, const sdlf_matmul_sizes *sizes);

#endif
