/* SPDX-License-Identifier: MIT */
/* Tensor: a shape, a dtype, strides, and memory that one calculator owns.
 *
 * sdlf_tensor is a small value: copy it freely. Most tensors are views of memory that belongs to a plan, a model or a
 * dataset; only those made by sdlf_tensor_create own theirs and are given back with sdlf_tensor_release.
 *
 * Threads: tensors are values, and their functions may be called from any thread; the memory that they point to is
 * guarded by whoever writes it.
 * Ownership: views borrow memory; what sdlf_tensor_create has made is the caller's until sdlf_tensor_release.
 * Errors: a status with a message (status.h) from what allocates or copies; of arguments out of range a view is an
 * absent tensor. */
#ifndef SDLF_TENSOR_H
#define SDLF_TENSOR_H

#include <sdlf/dtype.h>
#include <sdlf/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_calculator sdlf_calculator;

/* How the elements lie in memory: all of them, by strides; or only those that are stored of a sparse matrix (see
 * below). */
typedef enum sdlf_layout { SDLF_DENSE = 0, SDLF_CSR } sdlf_layout;

typedef struct sdlf_tensor {
    sdlf_dtype dtype; /* SDLF_NONE: there is no tensor (an absent optional operand) */
    sdlf_shape shape;
    sdlf_layout layout;
    int64_t stored;                /* elements of a sparse matrix that are stored; 0 in a dense tensor */
    int64_t stride[SDLF_MAX_RANK]; /* in elements; row-major unless a view changed it; of dense tensors */
    int buffer;                    /* inside a plan being built: which of its buffers; 0 elsewhere */
    int64_t offset;                /* inside a plan being built: bytes from the buffer's start to element 0 */
    void *data;                    /* element 0, an address in its calculator's memory space; NULL before binding */
} sdlf_tensor;

/* A row-major tensor over `data` (borrowed; may be NULL). */
sdlf_tensor sdlf_tensor_view(sdlf_dtype dtype, sdlf_shape shape, void *data);

/* Allocate a row-major tensor in the memory of `calculator`. Its content is undefined. Release with
 * sdlf_tensor_release and the same calculator. Errors: SDLF_ERROR_SHAPE (sizes overflow), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_tensor_create(sdlf_tensor *tensor, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape);
void sdlf_tensor_release(sdlf_tensor *tensor, sdlf_calculator *calculator);

bool sdlf_tensor_present(const sdlf_tensor *tensor);

/* Elements (of a sparse matrix: stored ones), and the bytes that a contiguous copy takes; 0 for an absent tensor, -1
 * where a side is negative or the number overflows. */
int64_t sdlf_tensor_count(const sdlf_tensor *tensor);
int64_t sdlf_tensor_bytes(const sdlf_tensor *tensor);

/* Row-major without gaps? (Dimensions of size 1 may have any stride.) A sparse matrix always is. */
bool sdlf_tensor_is_contiguous(const sdlf_tensor *tensor);

/* Views of dense tensors; none copies. Reshape wants an equal count; with gaps, also the same axes except for 1s. Narrow
 * keeps `length` indices from `start` along `axis`. Transpose exchanges two axes. Of arguments that do not fit, the
 * view is an absent tensor (sdlf_tensor_present). */
sdlf_tensor sdlf_tensor_reshape(sdlf_tensor tensor, sdlf_shape shape);
sdlf_tensor sdlf_tensor_narrow(sdlf_tensor tensor, int axis, int64_t start, int64_t length);
sdlf_tensor sdlf_tensor_transpose(sdlf_tensor tensor, int axis_a, int axis_b);

/* Channels last: a tensor (N,C,H,W) whose elements lie as in a row-major (N,H,W,C), without gaps: all channels of a
 * pixel side by side. The shape is the same, the strides tell. (Dimensions of size 1 may have any stride, so that a
 * tensor with one channel, or of 1x1 pixels, is both row-major and channels last.) */
bool sdlf_tensor_is_channels_last(const sdlf_tensor *tensor);
/* The tensor of that shape over the same memory, whose content is another one then; absent, where the rank is not 4. */
sdlf_tensor sdlf_tensor_channels_last(sdlf_tensor tensor);

/* The tensor seen under a shape that it broadcasts to: axes are matched from the last one on, and where it has 1 or no
 * axis it is read again and again (stride 0). Absent, where it does not broadcast to it. */
sdlf_tensor sdlf_tensor_broadcast(sdlf_tensor tensor, sdlf_shape shape);

/* ---- sparse matrices ----
 * A matrix (R,C) of which E elements are stored, in compressed rows, is one tensor over one block of memory, so that it
 * is allocated, copied, placed and bound like any other. The block holds three arrays one after the other, each
 * beginning at a multiple of 64 bytes from the block's start, which itself lies at a multiple of 64:
 *     offsets (R + 1) int64   row r's elements are offsets[r] .. offsets[r + 1] - 1; offsets[0] = 0, offsets[R] = E
 *     columns (E) int32       of each element, in [0, C)
 *     values  (E) of dtype
 * Within a row columns may come in any order and more than once (equal ones add up). C is at most 2^31 - 1; E needs 64
 * bits. All of this is up to whoever makes a matrix; sdlf_csr_check checks it. */

/* A matrix over `data` (borrowed; may be NULL). */
sdlf_tensor sdlf_csr_view(sdlf_dtype dtype, int64_t rows, int64_t columns, int64_t stored, void *data);

/* Allocate, as sdlf_tensor_create does. Release with sdlf_tensor_release. */
sdlf_status sdlf_csr_create(sdlf_tensor *matrix, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t rows,
                            int64_t columns, int64_t stored);

/* Addresses of the three arrays; NULL where the matrix has no memory. */
int64_t *sdlf_csr_offsets(const sdlf_tensor *matrix);
int32_t *sdlf_csr_columns(const sdlf_tensor *matrix);
void *sdlf_csr_values(const sdlf_tensor *matrix);

/* Does a matrix in host memory hold what it should? SDLF_ERROR_ARGUMENT names the row at fault. */
sdlf_status sdlf_csr_check(const sdlf_tensor *matrix);

/* The transpose of a matrix in host memory, columns of its rows ascending; a new matrix in host memory. */
sdlf_status sdlf_csr_transpose(sdlf_tensor *transpose, const sdlf_tensor *matrix);

/* The same matrix with its values as another floating type; a new matrix in host memory. */
sdlf_status sdlf_csr_convert(sdlf_tensor *converted, const sdlf_tensor *matrix, sdlf_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
