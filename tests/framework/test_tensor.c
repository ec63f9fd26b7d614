/* SPDX-License-Identifier: MIT */
/* Tensors: views and their strides, allocation and its failures. */
#include "testing.h"

#include <sdlf/calculator.h>
#include <sdlf/tensor.h>

static void views_are_row_major(void)
{
    float data[24];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 3, 4), data);
    CHECK_EQUAL(tensor.stride[0], 12);
    CHECK_EQUAL(tensor.stride[1], 4);
    CHECK_EQUAL(tensor.stride[2], 1);
    CHECK_EQUAL(sdlf_tensor_count(&tensor), 24);
    CHECK_EQUAL(sdlf_tensor_bytes(&tensor), 96);
    CHECK(sdlf_tensor_is_contiguous(&tensor));
    CHECK(sdlf_tensor_present(&tensor));
    sdlf_tensor scalar = sdlf_tensor_view(SDLF_FLOAT64, SDLF_SCALAR, data);
    CHECK_EQUAL(sdlf_tensor_bytes(&scalar), 8);
    CHECK(sdlf_tensor_is_contiguous(&scalar));
}

static void absent_tensors_are_empty(void)
{
    sdlf_tensor none = {.dtype = SDLF_NONE};
    CHECK(!sdlf_tensor_present(&none));
    CHECK_EQUAL(sdlf_tensor_count(&none), 0);
    CHECK_EQUAL(sdlf_tensor_bytes(&none), 0);
}

static void narrowing_and_transposing_keep_the_elements(void)
{
    float data[24];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 3, 4), data);
    sdlf_tensor rows = sdlf_tensor_narrow(tensor, 0, 1, 1);
    CHECK(rows.data == data + 12);
    CHECK_EQUAL(rows.offset, 48);
    CHECK(sdlf_tensor_is_contiguous(&rows));
    sdlf_tensor columns = sdlf_tensor_narrow(tensor, 2, 1, 2);
    CHECK(columns.data == data + 1);
    CHECK(!sdlf_tensor_is_contiguous(&columns));
    sdlf_tensor turned = sdlf_tensor_transpose(tensor, 0, 2);
    CHECK(sdlf_shape_equal(turned.shape, sdlf_shape(4, 3, 2)));
    CHECK_EQUAL(turned.stride[0], 1);
    CHECK_EQUAL(turned.stride[2], 12);
    CHECK(!sdlf_tensor_is_contiguous(&turned));
    sdlf_tensor again = sdlf_tensor_transpose(turned, 0, 2);
    CHECK(sdlf_tensor_is_contiguous(&again));

    sdlf_tensor unbound = sdlf_tensor_narrow(sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(4, 4), NULL), 0, 2, 2);
    CHECK(unbound.data == NULL);
    CHECK_EQUAL(unbound.offset, 32);
}

static void broadcasting_reads_again(void)
{
    float data[6];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 1, 3), data);
    sdlf_tensor wide = sdlf_tensor_broadcast(tensor, sdlf_shape(4, 2, 5, 3));
    CHECK(sdlf_shape_equal(wide.shape, sdlf_shape(4, 2, 5, 3)));
    CHECK(wide.stride[0] == 0 && wide.stride[1] == 3 && wide.stride[2] == 0 && wide.stride[3] == 1);
    CHECK(wide.data == data && !sdlf_tensor_is_contiguous(&wide));
    sdlf_tensor same = sdlf_tensor_broadcast(tensor, tensor.shape);
    CHECK(sdlf_tensor_is_contiguous(&same));
}

static void sides_of_one_may_have_any_stride(void)
{
    float data[8];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 1, 4), data);
    tensor.stride[1] = 77;
    CHECK(sdlf_tensor_is_contiguous(&tensor));
    tensor.stride[0] = 77;
    CHECK(!sdlf_tensor_is_contiguous(&tensor));
}

static void reshaping_keeps_place_and_buffer(void)
{
    float data[24];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 12), data);
    tensor.buffer = 5;
    tensor.offset = 128;
    sdlf_tensor shaped = sdlf_tensor_reshape(tensor, sdlf_shape(4, 3, 2));
    CHECK(sdlf_shape_equal(shaped.shape, sdlf_shape(4, 3, 2)));
    CHECK(shaped.data == data);
    CHECK_EQUAL(shaped.buffer, 5);
    CHECK_EQUAL(shaped.offset, 128);
    CHECK_EQUAL(shaped.stride[0], 6);
}

static void views_that_do_not_fit_are_absent(void)
{
    float values[6] = {0};
    sdlf_tensor t = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 3), values), turned = sdlf_tensor_transpose(t, 0, 1);
    const sdlf_tensor wrong[] = {
        sdlf_tensor_reshape(t, sdlf_shape(7)),
        sdlf_tensor_reshape(turned, sdlf_shape(6)),
        sdlf_tensor_narrow(t, 2, 0, 1),
        sdlf_tensor_narrow(t, -1, 0, 1),
        sdlf_tensor_narrow(t, 1, 2, 2),
        sdlf_tensor_narrow(t, 1, INT64_MAX, 2),
        sdlf_tensor_narrow(t, 1, -1, 2),
        sdlf_tensor_narrow(t, 1, 0, -1),
        sdlf_tensor_transpose(t, 0, 2),
        sdlf_tensor_transpose(t, -1, 1),
        sdlf_tensor_channels_last(t),
        sdlf_tensor_broadcast(t, sdlf_shape(3)),
        sdlf_tensor_broadcast(t, sdlf_shape(4, 3)),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) CHECK(!sdlf_tensor_present(&wrong[i]));
}

static void host_tensors_come_from_the_heap(void)
{
    int64_t live = test_live_allocations();
    sdlf_tensor tensor;
    CHECK_OK(sdlf_tensor_create(&tensor, NULL, SDLF_INT32, sdlf_shape(3, 5)));
    CHECK_EQUAL(test_live_allocations(), live + 1);
    CHECK_EQUAL((int64_t)((uintptr_t)tensor.data % 64), 0);
    ((int32_t *)tensor.data)[14] = 7;
    sdlf_tensor_release(&tensor, NULL);
    CHECK_EQUAL(test_live_allocations(), live);
    CHECK(!sdlf_tensor_present(&tensor));
    sdlf_tensor_release(&tensor, NULL); /* a released one, and none */
    sdlf_tensor_release(NULL, NULL);
}

static void empty_tensors_can_be_created(void)
{
    sdlf_tensor tensor;
    CHECK_OK(sdlf_tensor_create(&tensor, NULL, SDLF_FLOAT32, sdlf_shape(0, 5)));
    CHECK_EQUAL(sdlf_tensor_bytes(&tensor), 0);
    sdlf_tensor_release(&tensor, NULL);
}

static void impossible_tensors_are_refused(void)
{
    sdlf_tensor tensor;
    CHECK_FAILS(sdlf_tensor_create(&tensor, NULL, SDLF_FLOAT32, sdlf_shape(2, -1)), SDLF_ERROR_SHAPE, "2x-1");
    CHECK_FAILS(sdlf_tensor_create(&tensor, NULL, SDLF_FLOAT32, sdlf_shape(INT64_MAX, 2)), SDLF_ERROR_SHAPE, "float32");
    CHECK_FAILS(sdlf_tensor_create(&tensor, NULL, SDLF_FLOAT64, sdlf_shape(INT64_MAX / 4)), SDLF_ERROR_SHAPE, "bytes");
    CHECK_FAILS(sdlf_tensor_create(&tensor, NULL, SDLF_UINT8, sdlf_shape(INT64_MAX)), SDLF_ERROR_MEMORY, "no memory");
    CHECK_FAILS(sdlf_tensor_create(&tensor, NULL, SDLF_NONE, sdlf_shape(1)), SDLF_ERROR_ARGUMENT, "dtype");
    CHECK(!sdlf_tensor_present(&tensor) && tensor.data == NULL);
}

static sdlf_status create_one(void *calculator)
{
    sdlf_tensor tensor;
    sdlf_status status = sdlf_tensor_create(&tensor, calculator, SDLF_FLOAT32, sdlf_shape(4));
    sdlf_tensor_release(&tensor, calculator);
    return status;
}

static void failing_allocations_are_reported(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    test_every_allocation("host tensor", create_one, NULL);
    test_every_allocation("reference tensor", create_one, reference);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(views_are_row_major);
    RUN(absent_tensors_are_empty);
    RUN(narrowing_and_transposing_keep_the_elements);
    RUN(broadcasting_reads_again);
    RUN(sides_of_one_may_have_any_stride);
    RUN(reshaping_keeps_place_and_buffer);
    RUN(views_that_do_not_fit_are_absent);
    RUN(host_tensors_come_from_the_heap);
    RUN(empty_tensors_can_be_created);
    RUN(impossible_tensors_are_refused);
    RUN(failing_allocations_are_reported);
    return test_summary();
}
