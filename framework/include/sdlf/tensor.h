/* SPDX-License-Identifier: MIT */
/* Tensor: a shape, a dtype, strides, and memory that one calculator owns.
 *
 * sdlf_tensor is a small value: copy it freely. Most tensors are views of memory that belongs to a plan, a model or a
 * dataset; only those created by sdlf_tensor_create own their memory, which sdlf_tensor_release frees.
 *
 * Threads: tensors are values, and their functions may be called from any thread; whoever writes the memory that they
 * point to must synchronise access to it.
 * Ownership: views borrow memory; what sdlf_tensor_create allocates is the caller's until sdlf_tensor_release.
 * Errors: functions that allocate or copy return a status with a message (status.h); a view with arguments out of range
 * is an absent tensor. */
#ifndef SDLF_TENSOR_H
#define SDLF_TENSOR_H

#include <sdlf/dtype.h>
#include <sdlf/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_calculator sdlf_calculator;

/* How the elements are stored: all of them, with strides; or only the stored elements of a sparse matrix (see
 * below). */
typedef enum sdlf_layout { SDLF_DENSE = 0, SDLF_CSR } sdlf_layout;

typedef struct sdlf_tensor {
    sdlf_dtype dtype; /* SDLF_NONE: no tensor (an absent optional operand) */
    sdlf_shape shape;
    sdlf_layout layout;
    int64_t stored;                /* number of stored elements of a sparse matrix; 0 in a dense tensor */
    int64_t stride[SDLF_MAX_RANK]; /* of dense tensors; in elements; row-major unless a view changed it */
    int buffer;                    /* inside a plan being built: the index of its buffer; 0 elsewhere */
    int64_t offset;                /* inside a plan being built: bytes from the buffer's start to element 0 */
    void *data;                    /* address of element 0 in its calculator's memory space; NULL before binding */
} sdlf_tensor;

/* A row-major tensor over `data` (borrowed; may be NULL). */
sdlf_tensor sdlf_tensor_view(sdlf_dtype dtype, sdlf_shape shape, void *data);

/* Allocates a row-major tensor in the memory of `calculator`. Its content is undefined. Release it with
 * sdlf_tensor_release and the same calculator. Errors: SDLF_ERROR_SHAPE (sizes overflow), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_tensor_create(sdlf_tensor *tensor, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape);
void sdlf_tensor_release(sdlf_tensor *tensor, sdlf_calculator *calculator);

bool sdlf_tensor_present(const sdlf_tensor *tensor);

/* The number of elements (of a sparse matrix: of stored ones), and the bytes of a contiguous copy; 0 for an absent
 * tensor, -1 if a dimension is negative or the result overflows. */
int64_t sdlf_tensor_count(const sdlf_tensor *tensor);
int64_t sdlf_tensor_bytes(const sdlf_tensor *tensor);

/* True if row-major without gaps. (Dimensions of size 1 may have any stride.) Always true of a sparse matrix. */
bool sdlf_tensor_is_contiguous(const sdlf_tensor *tensor);

/* Views of dense tensors; nothing is copied. Reshape requires an equal count and, of a tensor with gaps, the same axes
 * except for axes of size 1. Narrow keeps `length` indices from `start` along `axis`. Transpose exchanges two axes. If
 * the arguments do not fit, the view is an absent tensor (sdlf_tensor_present). */
sdlf_tensor sdlf_tensor_reshape(sdlf_tensor tensor, sdlf_shape shape);
sdlf_tensor sdlf_tensor_narrow(sdlf_tensor tensor, int axis, int64_t start, int64_t length);
sdlf_tensor sdlf_tensor_transpose(sdlf_tensor tensor, int axis_a, int axis_b);

/* Channels last: true of a tensor (N,C,H,W) with the memory order of a row-major (N,H,W,C), without gaps: the channels
 * of a pixel are adjacent. The shape is unchanged; the strides differ. (Dimensions of size 1 may have any stride, so a
 * tensor with one channel, or with 1x1 pixels, is both row-major and channels last.) */
bool sdlf_tensor_is_channels_last(const sdlf_tensor *tensor);
/* A channels-last tensor of that shape over the same memory, unconverted; absent if the rank is not 4. */
sdlf_tensor sdlf_tensor_channels_last(sdlf_tensor tensor);

/* A view of the tensor under a shape to which it broadcasts: axes are aligned at the last one, and an axis that has
 * size 1 or is missing is repeated (stride 0). Absent if it does not broadcast to the shape. */
sdlf_tensor sdlf_tensor_broadcast(sdlf_tensor tensor, sdlf_shape shape);

/* ---- sparse matrices ----
 * A matrix (R,C) with E stored elements, in compressed rows (CSR), is one tensor over one block of memory, so that it
 * is allocated, copied, placed and bound like any other. The block holds three arrays one after the other, each aligned
 * to 64 bytes within the block, which is itself aligned to 64 bytes:
 *     offsets (R + 1) int64   row r's elements are offsets[r] .. offsets[r + 1] - 1; offsets[0] = 0, offsets[R] = E
 *     columns (E) int32       of each element, in [0, C)
 *     values  (E) of dtype
 * Within a row, columns may be in any order and may repeat (repeated elements are summed). C is at most 2^31 - 1; E may
 * exceed 32 bits. Whoever creates a matrix must ensure all this; sdlf_csr_check verifies it. */

/* A matrix over `data` (borrowed; may be NULL). */
sdlf_tensor sdlf_csr_view(sdlf_dtype dtype, int64_t rows, int64_t columns, int64_t stored, void *data);

/* Allocates a matrix, as sdlf_tensor_create does a tensor. Release it with sdlf_tensor_release. */
sdlf_status sdlf_csr_create(sdlf_tensor *matrix, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t rows,
                            int64_t columns, int64_t stored);

/* The addresses of the three arrays; NULL if the matrix has no memory. */
int64_t *sdlf_csr_offsets(const sdlf_tensor *matrix);
int32_t *sdlf_csr_columns(const sdlf_tensor *matrix);
void *sdlf_csr_values(const sdlf_tensor *matrix);

/* Checks that a matrix in host memory is valid. SDLF_ERROR_ARGUMENT names the row at fault. */
sdlf_status sdlf_csr_check(const sdlf_tensor *matrix);

/* Creates the transpose of a matrix in host memory, in host memory; the columns of each of its rows ascend. */
sdlf_status sdlf_csr_transpose(sdlf_tensor *transpose, const sdlf_tensor *matrix);

/* Creates a copy of the matrix in host memory with its values converted to another floating type. */
sdlf_status sdlf_csr_convert(sdlf_tensor *converted, const sdlf_tensor *matrix, sdlf_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
