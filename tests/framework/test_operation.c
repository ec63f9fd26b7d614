/* SPDX-License-Identifier: MIT */
/* The operation classes: every kind has one, accepts a valid operation and rejects mismatched operands; costs. */
#include "operation_examples.h"
#include "testing.h"

#include <string.h>

#include "framework/operand.h"

static void every_kind_has_a_class(void)
{
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        const sdlf_operation_class *type = sdlf_operation_class_of((sdlf_operation_kind)kind);
        if (!CHECK(type && type->name && type->check && type->out[0].name)) continue;
        CHECK(!type->in[SDLF_MAX_INPUTS].name && !type->out[SDLF_MAX_OUTPUTS].name);
        for (int other = 0; other < kind; other++) {
            CHECK(strcmp(type->name, sdlf_operation_class_of((sdlf_operation_kind)other)->name) != 0);
        }
        for (int i = 0; i < SDLF_MAX_INPUTS; i++) CHECK(!(type->may_alias >> i & 1) || type->in[i].name);
    }
    CHECK(sdlf_operation_class_of(SDLF_OPERATION_COUNT) == NULL);
    CHECK(sdlf_operation_class_of((sdlf_operation_kind)-1) == NULL);
}

/* Operands that only another form of the operation than its example has: tests/onnx/test_packed.c covers that of gemm,
 * tests/kernels/test_reference_windows.c that with a mask. */
static bool is_of_another_form(int kind, int i)
{
    return (kind == SDLF_GEMM && (i == 4 || i == 5)) || (kind == SDLF_MAX_POOL2D_BACKWARD && i == 3);
}

static void good_operations_pass(void)
{
    for (int kind = 0; kind < EXAMPLES; kind++) {
        sdlf_operation good = example_at(kind);
        CHECK_OK(sdlf_operation_check(&good));
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) { /* the examples leave out nothing */
            CHECK(!sdlf_operand_declared(sdlf_operation_type(&good), i)->name || is_of_another_form(kind, i) ||
                  sdlf_tensor_present(sdlf_operand_at(&good, i)));
        }
        sdlf_cost cost = sdlf_operation_cost(&good);
        CHECK(cost.flops >= 0 && cost.bytes > 0);
        bool quantised = kind >= SDLF_QUANTIZE && kind <= SDLF_DYNAMIC_QUANTIZE;
        for (int i = 0; !quantised && i < SDLF_MAX_OPERANDS; i++) { /* the same in float64 */
            if (sdlf_operand_at(&good, i)->dtype == SDLF_FLOAT32) sdlf_operand_at(&good, i)->dtype = SDLF_FLOAT64;
        }
        CHECK_OK(sdlf_operation_check(&good));
    }
}

/* Remove the n-th operand: rejected unless it is optional, or another rule requires it. */
static void missing_operands_are_refused(void)
{
    for (int kind = 0; kind < EXAMPLES; kind++) {
        const sdlf_operation any = example_at(kind);
        const sdlf_operation_class *type = sdlf_operation_type(&any);
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            sdlf_operation bad = example_at(kind);
            if (!sdlf_operand_declared(type, i)->name) {
                *sdlf_operand_at(&bad, i) = t(sdlf_shape(1));
                CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_ARGUMENT, type->name);
                continue;
            }
            if (sdlf_operand_declared(type, i)->optional) continue;
            *sdlf_operand_at(&bad, i) = (sdlf_tensor){.dtype = SDLF_NONE};
            CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_ARGUMENT, "is missing");
            CHECK(strstr(sdlf_error_message(), sdlf_operand_declared(type, i)->name));
        }
    }
}

/* fill and copy take any dtype; gather_batch reads bytes, and with no augmentation writes them. */
static bool takes_bytes(sdlf_operation_kind kind, int index)
{
    return kind == SDLF_FILL || kind == SDLF_COPY ||
           (kind == SDLF_GATHER_BATCH && (index == 0 || index == SDLF_MAX_INPUTS));
}

static void wrong_operands_are_refused(void)
{
    for (int kind = 0; kind < EXAMPLES; kind++) {
        const sdlf_operation any = example_at(kind);
        const sdlf_operation_class *type = sdlf_operation_type(&any);
        bool free_shape = kind == SDLF_FILL || kind == SDLF_RANDOM_UNIFORM || kind == SDLF_RANDOM_NORMAL;
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            if (!sdlf_operand_declared(type, i)->name) continue;
            sdlf_operation bad = example_at(kind);
            if (is_of_another_form(kind, i)) {
                *sdlf_operand_at(&bad, i) = t(sdlf_shape(1));
                CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_ARGUMENT, type->name);
                continue;
            }
            if (!takes_bytes((sdlf_operation_kind)kind, i)) { /* a dtype that is never valid */
                sdlf_operand_at(&bad, i)->dtype =
                    sdlf_operand_at(&bad, i)->dtype == SDLF_UINT8 ? SDLF_FLOAT16 : SDLF_UINT8;
                CHECK_FAILS(sdlf_operation_check(&bad),
                            kind >= SDLF_RANDOM_UNIFORM && kind <= SDLF_RANDOM_NORMAL ? SDLF_ERROR_ARGUMENT
                                                                                      : SDLF_ERROR_SHAPE,
                            type->name);
            }
            bad = example_at(kind); /* one dimension more */
            *sdlf_operand_at(&bad, i) =
                of(sdlf_operand_at(&bad, i)->dtype, sdlf_shape_prepend(2, sdlf_operand_at(&bad, i)->shape));
            bool any_shape = free_shape || ((kind == SDLF_CLIP_SCALE || kind == SDLF_CHECK_FINITE) && i == 0);
            if (!any_shape) CHECK(sdlf_operation_check(&bad) != SDLF_OK);
            if (any_shape) CHECK_OK(sdlf_operation_check(&bad));

            bad = example_at(kind); /* gaps */
            sdlf_operand_at(&bad, i)->stride[0] += 1;
            if (type->any_strides >> i & 1 || sdlf_tensor_is_contiguous(sdlf_operand_at(&bad, i))) continue;
            CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_SHAPE, "gaps");
        }
        sdlf_operation bad = example_at(kind);
        bad.out[0].shape.dim[0] = -1;
        CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_SHAPE, "negative side");
        bad.out[0].shape.dim[0] = INT64_MAX;
        bad.out[0].shape.dim[1] = 3;
        bad.out[0].shape.rank = 2;
        CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_SHAPE, "too large");
        bad.out[0].dtype = (sdlf_dtype)77;
        CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_ARGUMENT, "dtype 77");
    }
}

/* ---- costs and windows ---- */

/* FLOPs are the sum of the members'; every tensor is moved once. The examples have 2 rows and a layer of 5 inputs and 3
 * units. */
static void fused_operations_cost_what_they_do(void)
{
    sdlf_operation layer = gemm_backward_sgd();
    CHECK_EQUAL(sdlf_operation_cost(&layer).flops, 2 * 2 * N * 15 + 4 * 15 + N * 3 + 4 * 3);
    CHECK_EQUAL(sdlf_operation_cost(&layer).bytes, 4 * (N * 5 + N * 3 + 1 + 4 * 15 + N * 5 + 4 * 3));
    gemm_backward_sgd_options_in(&layer)->activation.function = SDLF_RELU;
    CHECK_EQUAL(sdlf_operation_cost(&layer).flops, 2 * 2 * N * 15 + 4 * 15 + N * 3 + 4 * 3 + N * 5);
    sdlf_operation loss = example(SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD);
    CHECK_EQUAL(sdlf_operation_cost(&loss).flops, 5 * 15 + 2 * 15);
    sdlf_operation back = example_at(CONV2D_POOL_BACKWARD);
    sdlf_operation both = example_at(CONV2D_POOL_BACKWARD_SGD);
    int64_t weights = sdlf_tensor_count(&both.out[0]);
    CHECK_EQUAL(sdlf_operation_cost(&both).flops, sdlf_operation_cost(&back).flops + 4 * (weights + K));
    sdlf_operation next =
        example(SDLF_NEXT_BATCH); /* a batch of 3 from 9 samples: only its part of order and labels is read */
    CHECK_EQUAL(sdlf_operation_cost(&next).bytes, 4 * 3 + 4 + 8 + 4 * 3 + 2 * 8 + 4 * 3 + 4 + 8 + 4 * 3);
}

/* The key of an operation in a plan file: its text must not change. */
static void options_are_told_apart(void)
{
    sdlf_operation conv = example(SDLF_CONV2D_FORWARD), gemm = example(SDLF_GEMM);
    char text[300];
    conv.conv2d.window = (sdlf_window2d){
        .stride = {1, 2}, .dilation = {3, 4}, .padding_before = {5, 6}, .padding_after = {7, 8}, .size = {3, 3}};
    sdlf_operation_type(&conv)->print_options(&conv, text, sizeof text);
    CHECK_TEXT(text, " stride 1,2 dilation 3,4 before 5,6 after 7,8 groups 2");
    gemm.gemm.transpose_a = gemm.gemm.transpose_b = true;
    sdlf_operation_type(&gemm)->print_options(&gemm, text, sizeof text);
    CHECK_TEXT(text, " transpose_a transpose_b");
    CHECK(sdlf_operation_class_of(SDLF_COPY)->print_options == NULL);
}

static void epilogues_are_found(void)
{
    sdlf_operation conv = {.kind = SDLF_CONV2D_FORWARD}, norm = {.kind = SDLF_BATCH_NORM2D_INFER};
    sdlf_operation back = {.kind = SDLF_CONV2D_BACKWARD_INPUT}, none = {.kind = SDLF_OPERATION_COUNT};
    CHECK(sdlf_operation_epilogue(&conv) == &conv.conv2d.activation);
    CHECK(sdlf_operation_epilogue(&norm) == &norm.batch_norm.activation);
    CHECK(sdlf_operation_epilogue(&back) == NULL && sdlf_operation_epilogue(&none) == NULL);
}

/* All marked operands in 16 bits are accepted, and count half their bytes; a single one in float32 is not, unless its
 * kind allows that, nor is a row-major image. */
static void storage_is_checked(void)
{
    int kinds = 0;
    for (int kind = 0; kind < EXAMPLES; kind++) {
        sdlf_operation good = example_at(kind);
        const bool pools = good.kind == SDLF_FUSED && good.fused.fusion == &sdlf_conv2d_pool_forward_fusion;
        if (kind == SDLF_MAX_POOL2D_FORWARD || pools)
            good.out[1] = (sdlf_tensor){.dtype = SDLF_NONE}; /* masks are row-major */
        const sdlf_operation_class *type = sdlf_operation_type(&good);
        sdlf_operation stored = sdlf_operation_stored(&good, SDLF_BFLOAT16);
        CHECK_EQUAL(sdlf_operation_storage(&good), SDLF_NONE);
        if (type->storage == 0) continue;
        kinds++;
        CHECK_OK(sdlf_operation_check(&stored));
        CHECK_EQUAL(sdlf_operation_storage(&stored), SDLF_BFLOAT16);
        CHECK(sdlf_operation_cost(&stored).bytes < sdlf_operation_cost(&good).bytes);
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            sdlf_operation bad = stored;
            if (!(type->storage >> i & 1)) continue;
            if (type->float32_beside >> i & 1) {
                if (type->channels_last == 0) continue; /* either may be the exception */
                *sdlf_operand_at(&bad, i) = *sdlf_operand_at(&good, i);
                CHECK_OK(sdlf_operation_check(&bad));
                continue;
            }
            sdlf_operand_at(&bad, i)->dtype = SDLF_FLOAT32;
            if (sdlf_operation_storage(&bad) == SDLF_NONE) continue; /* it was the only one */
            CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_SHAPE, "expected bfloat16");
            bad = stored;
            if (sdlf_tensor_is_contiguous(sdlf_operand_at(&bad, i))) continue;
            *sdlf_operand_at(&bad, i) = of(SDLF_BFLOAT16, sdlf_operand_at(&bad, i)->shape);
            CHECK_FAILS(sdlf_operation_check(&bad), SDLF_ERROR_SHAPE, "channels last");
        }
    }
    CHECK_EQUAL(kinds, 24);
}

static void costs_are_counted(void)
{
    sdlf_operation conv = example(SDLF_CONV2D_FORWARD);
    sdlf_cost cost = sdlf_operation_cost(&conv);
    CHECK_EQUAL(cost.flops, 2LL * N * K * H * W * (C / 2) * 9);
    CHECK_EQUAL(cost.bytes, 4LL * (N * C * H * W + K * C / 2 * 9 + K + 2 * N * K * H * W));
    sdlf_operation gemm = example(SDLF_GEMM);
    CHECK_EQUAL(sdlf_operation_cost(&gemm).flops, 2 * 2 * 3 * 4);
    sdlf_operation sgd = example(SDLF_SGD_UPDATE); /* g, rate and scale read; w and v read and written */
    CHECK_EQUAL(sdlf_operation_cost(&sgd).bytes, 4 * (15 + 1 + 1 + 2 * 15 + 2 * 15));
    sdlf_operation gather = example(SDLF_GATHER_BATCH); /* three of the nine images */
    CHECK_EQUAL(sdlf_operation_cost(&gather).bytes, 3 * C * H * W + 2 * 3 * 4 + 8 + 4 * 3 * C * H * W);
    sdlf_operation huge = {.kind = SDLF_GEMM};
    huge.in[0] = t(sdlf_shape(1 << 30, 1 << 30)), huge.in[1] = huge.out[0] = huge.in[0];
    CHECK_EQUAL(sdlf_operation_cost(&huge).flops, INT64_MAX);
}

static void windows_have_an_output_size(void)
{
    sdlf_window2d window = {{3, 5}, {2, 1}, {1, 2}, {1, 0}, {0, 4}};
    CHECK_EQUAL(sdlf_window2d_output(&window, 0, 7), 3);
    CHECK_EQUAL(sdlf_window2d_output(&window, 0, 8), 4);
    CHECK_EQUAL(sdlf_window2d_output(&window, 1, 5), 1);
    CHECK_EQUAL(sdlf_window2d_output(&window, 1, 7), 3);
    CHECK_EQUAL(sdlf_window2d_output(&window, 1, 4), 0);
}

int main(void)
{
    RUN(every_kind_has_a_class);
    RUN(good_operations_pass);
    RUN(missing_operands_are_refused);
    RUN(wrong_operands_are_refused);
    RUN(options_are_told_apart);
    RUN(epilogues_are_found);
    RUN(storage_is_checked);
    RUN(costs_are_counted);
    RUN(fused_operations_cost_what_they_do);
    RUN(windows_have_an_output_size);
    return test_summary();
}
