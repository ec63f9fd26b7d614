/* SPDX-License-Identifier: MIT */
/* Cases of fill, copy and gather_batch. All of them move or convert data, so results must match bitwise. */
#include "kernels.h"

static const sdlf_dtype dtypes[] = {SDLF_FLOAT32, SDLF_FLOAT64, SDLF_FLOAT16, SDLF_BFLOAT16, SDLF_UINT8,
                                    SDLF_INT32,   SDLF_INT64,   SDLF_INT8,    SDLF_BOOL};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void fill_cases(kernel_sink *sink)
{
    static const double values[] = {0, 1, -3.75, 1e6};
    static const int64_t counts[] = {1, 3, 65, 1031};
    for (int d = 0; d < DTYPES; d++) {
        for (int i = 0; i < 4; i++) {
            sdlf_operation fill = {.kind = SDLF_FILL, .out = {kernel_tensor(dtypes[d], sdlf_shape(counts[i]))}};
            fill.fill.value = values[i];
            kernel_emit(sink, &(kernel_case){.operation = fill}, "%d to %g", (int)counts[i], values[i]);
        }
    }
}

static void emit_copy(kernel_sink *sink, const char *text, sdlf_tensor x, sdlf_tensor y)
{
    kernel_case made = {.operation = {.kind = SDLF_COPY, .in = {x}, .out = {y}}, .in[0] = {VALUES_ANYTHING, 0}};
    kernel_emit(sink, &made, "%s %s from %s", text, sdlf_shape_print(x.shape).text, sdlf_dtype_name(x.dtype));
}

/* Copies with strides as in the views of concatenation, slicing and transposition. */
static void strided_copies(kernel_sink *sink, sdlf_dtype from, sdlf_dtype to)
{
    sdlf_tensor wide = kernel_tensor(from, sdlf_shape(3, 5, 7)), target = kernel_tensor(to, sdlf_shape(3, 9, 7));
    emit_copy(sink, "into a slice", wide, sdlf_tensor_narrow(target, 1, 2, 5));
    emit_copy(sink, "of a slice", sdlf_tensor_narrow(kernel_tensor(from, sdlf_shape(3, 9, 7)), 1, 3, 5),
              kernel_tensor(to, sdlf_shape(3, 5, 7)));
    emit_copy(sink, "of inner columns", sdlf_tensor_narrow(wide, 2, 1, 3), kernel_tensor(to, sdlf_shape(3, 5, 3)));
    emit_copy(sink, "transposed", sdlf_tensor_transpose(wide, 0, 2), kernel_tensor(to, sdlf_shape(7, 5, 3)));
    sdlf_tensor blocks = sdlf_tensor_transpose(kernel_tensor(from, sdlf_shape(2, 67, 3, 133)), 1, 3);
    emit_copy(sink, "transposed in blocks", blocks, kernel_tensor(to, blocks.shape));
    emit_copy(sink, "into transposed", kernel_tensor(from, sdlf_shape(33, 17)),
              sdlf_tensor_transpose(kernel_tensor(to, sdlf_shape(17, 33)), 0, 1));
    sdlf_tensor pixels = kernel_tensor(from, sdlf_shape(2, 3, 4, 5)); /* channels last */
    sdlf_tensor turned = sdlf_tensor_transpose(sdlf_tensor_transpose(pixels, 1, 3), 1, 2);
    emit_copy(sink, "channels last", turned, kernel_tensor(to, turned.shape));
    sdlf_tensor pairs = sdlf_tensor_transpose(kernel_tensor(from, sdlf_shape(3, 2, 19, 2, 21, 2)), 1, 2);
    sdlf_tensor depth = kernel_tensor(to, sdlf_shape(2, 2, 3, 2, 19, 21)); /* as space to depth, with short rows */
    for (int axis = 0; axis < 2; axis++) depth = sdlf_tensor_transpose(depth, axis, axis + 2);
    emit_copy(sink, "of pairs", pairs, kernel_tensor(to, pairs.shape));
    emit_copy(sink, "into planes of pairs", kernel_tensor(from, depth.shape), depth);
    sdlf_tensor planes = sdlf_tensor_transpose(kernel_tensor(from, sdlf_shape(2, 3, 1500)), 1, 2);
    emit_copy(sink, "a few planes", planes, kernel_tensor(to, planes.shape));
    emit_copy(sink, "padding inside", kernel_tensor(from, sdlf_shape(2, 3, 3)),
              sdlf_tensor_narrow(sdlf_tensor_narrow(kernel_tensor(to, sdlf_shape(2, 5, 5)), 1, 1, 3), 2, 1, 3));
    sdlf_tensor spread = kernel_tensor(from, sdlf_shape(4, 6)); /* one row, repeated four times */
    spread.stride[0] = 0;
    emit_copy(sink, "broadcast", spread, kernel_tensor(to, sdlf_shape(4, 6)));
    emit_copy(sink, "of eight axes", kernel_tensor(from, sdlf_shape(2, 1, 3, 2, 1, 2, 2, 3)),
              sdlf_tensor_transpose(kernel_tensor(to, sdlf_shape(2, 1, 2, 2, 1, 2, 3, 3)), 2, 6));
}

static void copy_cases(kernel_sink *sink)
{
    for (int from = 0; from < DTYPES; from++) {
        for (int to = 0; to < DTYPES; to++) {
            emit_copy(sink, "whole", kernel_tensor(dtypes[from], sdlf_shape(1)),
                      kernel_tensor(dtypes[to], sdlf_shape(1)));
            emit_copy(sink, "whole", kernel_tensor(dtypes[from], sdlf_shape(7, 149)),
                      kernel_tensor(dtypes[to], sdlf_shape(7, 149)));
        }
    }
    emit_copy(sink, "scalar", kernel_tensor(SDLF_FLOAT32, SDLF_SCALAR), kernel_tensor(SDLF_FLOAT32, SDLF_SCALAR));
    strided_copies(sink, SDLF_FLOAT32, SDLF_FLOAT32);
    strided_copies(sink, SDLF_FLOAT64, SDLF_FLOAT64);
    strided_copies(sink, SDLF_UINT8, SDLF_UINT8);
    strided_copies(sink, SDLF_INT32, SDLF_INT64);
    strided_copies(sink, SDLF_FLOAT32, SDLF_FLOAT64);
    strided_copies(sink, SDLF_UINT8, SDLF_FLOAT32);
}

/* fill and copy have dtypes of their own: once is enough. */
void memory_cases(kernel_sink *sink, sdlf_dtype t)
{
    if (t != SDLF_FLOAT32) return;
    fill_cases(sink);
    copy_cases(sink);
}

void memory_bench(kernel_sink *sink, sdlf_dtype t)
{
    sdlf_operation fill = {.kind = SDLF_FILL, .out = {kernel_tensor(t, sdlf_shape(4 << 20))}};
    kernel_emit(sink, &(kernel_case){.operation = fill}, "4 Mi");
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(64, 32, 28, 28)), y = kernel_tensor(t, sdlf_shape(64, 96, 28, 28));
    emit_copy(sink, "into a slice", x, sdlf_tensor_narrow(y, 1, 32, 32));
    emit_copy(sink, "transposed", sdlf_tensor_transpose(kernel_tensor(t, sdlf_shape(1024, 1568)), 0, 1),
              kernel_tensor(t, sdlf_shape(1568, 1024)));
}
