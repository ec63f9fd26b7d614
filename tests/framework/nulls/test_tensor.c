/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for tensors, sparse matrices, shapes and element types. */
#include "framework/nulls/nulls.h"

static void tensors(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_tensor unbound = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2), NULL), made; /* data may be NULL */
    CHECK(sdlf_tensor_present(&unbound));
    REFUSED(sdlf_tensor_create(NULL, reference, SDLF_FLOAT32, sdlf_shape(1)), "tensor");
    CHECK_OK(
        sdlf_tensor_create(&made, NULL, SDLF_FLOAT32, sdlf_shape(1))); /* without a calculator, the host's memory */
    sdlf_tensor_release(&made, NULL);
    DOES_NOTHING(sdlf_tensor_release(NULL, reference));
    GIVES(sdlf_tensor_present(NULL), false);
    GIVES(sdlf_tensor_count(NULL), 0);
    GIVES(sdlf_tensor_bytes(NULL), 0);
    GIVES(sdlf_tensor_is_contiguous(NULL), false);
    GIVES(sdlf_tensor_is_channels_last(NULL), false);
    sdlf_calculator_close(reference);
}

static void sparse_matrices(void)
{
    sdlf_tensor empty = sdlf_csr_view(SDLF_FLOAT32, 2, 2, 0, NULL), made; /* no memory */
    REFUSED(sdlf_csr_create(NULL, NULL, SDLF_FLOAT32, 1, 1, 0), "matrix");
    CHECK_OK(sdlf_csr_create(&made, NULL, SDLF_FLOAT32, 1, 1, 0));
    sdlf_tensor_release(&made, NULL);
    GIVES(sdlf_csr_offsets(NULL), NULL);
    GIVES(sdlf_csr_columns(NULL), NULL);
    GIVES(sdlf_csr_values(NULL), NULL);
    GIVES(sdlf_csr_offsets(&empty), NULL);
    GIVES(sdlf_csr_columns(&empty), NULL);
    GIVES(sdlf_csr_values(&empty), NULL);
    REFUSED(sdlf_csr_check(NULL), "matrix");
    CHECK_FAILS(sdlf_csr_check(&empty), SDLF_ERROR_ARGUMENT, "memory");
    REFUSED(sdlf_csr_transpose(NULL, &empty), "transpose");
    REFUSED(sdlf_csr_transpose(&made, NULL), "matrix");
    CHECK_FAILS(sdlf_csr_transpose(&made, &empty), SDLF_ERROR_ARGUMENT, "memory");
    REFUSED(sdlf_csr_convert(NULL, &empty, SDLF_FLOAT64), "converted");
    REFUSED(sdlf_csr_convert(&made, NULL, SDLF_FLOAT64), "matrix");
    CHECK_FAILS(sdlf_csr_convert(&made, &empty, SDLF_FLOAT64), SDLF_ERROR_ARGUMENT, "memory");
}

static void shapes_and_types(void)
{
    float number = 1;
    GIVES(sdlf_shape_broadcast(NULL, sdlf_shape(2, 1), sdlf_shape(3)), true); /* the shape may be omitted */
    GIVES(sdlf_shape_broadcast(NULL, sdlf_shape(2), sdlf_shape(3)), false);
    GIVES(sdlf_dtype_from_name(NULL), SDLF_NONE);
    DOES_NOTHING(sdlf_convert(SDLF_FLOAT32, NULL, SDLF_FLOAT64, NULL, 0));
    DOES_NOTHING(sdlf_convert(SDLF_FLOAT64, NULL, SDLF_FLOAT32, &number, 1));
    DOES_NOTHING(sdlf_convert(SDLF_FLOAT32, &number, SDLF_FLOAT64, NULL, 1));
    CHECK(number == 1);
}

int main(void)
{
    RUN(tensors);
    RUN(sparse_matrices);
    RUN(shapes_and_types);
    return test_summary();
}
