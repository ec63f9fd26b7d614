/* Tensor: a shape, a dtype, strides, and memory that one calculator owns.
 *
 * sdlf_tensor is a small value: copy it freely. Most tensors are views of memory that belongs to a plan, a model or a
 * dataset; only those made by sdlf_tensor_create own theirs and are given back with sdlf_tensor_release. */
#ifndef SDLF_TENSOR_H
#define SDLF_TENSOR_H

#include <sdlf/dtype.h>
#include <sdlf/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_calculator sdlf_calculator;

typedef struct sdlf_tensor {
    sdlf_dtype dtype; /* SDLF_NONE: there is no tensor (an absent optional operand) */
    sdlf_shape shape;
    int64_t stride[SDLF_MAX_RANK]; /* in elements; row-major unless a view changed it */
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

/* Elements, and the bytes that a contiguous copy takes; 0 for an absent tensor, -1 where a side is negative or the
 * number overflows. */
int64_t sdlf_tensor_count(const sdlf_tensor *tensor);
int64_t sdlf_tensor_bytes(const sdlf_tensor *tensor);

/* Row-major without gaps? (Dimensions of size 1 may have any stride.) */
bool sdlf_tensor_is_contiguous(const sdlf_tensor *tensor);

/* Views; none copies. Reshape wants a contiguous tensor and an equal count. Narrow keeps `length` indices from `start`
 * along `axis`. Transpose exchanges two axes. Both arguments are the caller's responsibility (asserted). */
sdlf_tensor sdlf_tensor_reshape(sdlf_tensor tensor, sdlf_shape shape);
sdlf_tensor sdlf_tensor_narrow(sdlf_tensor tensor, int axis, int64_t start, int64_t length);
sdlf_tensor sdlf_tensor_transpose(sdlf_tensor tensor, int axis_a, int axis_b);

#ifdef __cplusplus
}
#endif
#endif
