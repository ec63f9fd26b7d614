/* SPDX-License-Identifier: MIT */
/* Cases of matmul, normalize and resample.
 *
 * Tolerances: a matrix product within k rounding errors; normalisation and resampling are computed in float64, or as
 * accurately, except for the last steps; sums over rows within their length. Cubic weights of both signs, divided by a
 * small sum, exceed 1. */
#include "kernels.h"

static void matmul_case(kernel_sink *sink, sdlf_tensor a, sdlf_tensor b, int turns, const char *text)
{
    sdlf_shape y = a.shape;
    int rank = y.rank;
    int64_t k = a.shape.dim[rank - 1];
    if (turns & 1) { /* transposed operands: their sizes are swapped, since these are not views */
        a.shape.dim[rank - 1] = a.shape.dim[rank - 2];
        a.shape.dim[rank - 2] = k;
        a.stride[rank - 2] = a.shape.dim[rank - 1];
    }
    y.dim[rank - 1] = b.shape.dim[rank - 1];
    if (turns & 2) {
        b.shape.dim[rank - 2] = b.shape.dim[rank - 1];
        b.shape.dim[rank - 1] = k;
        b.stride[rank - 2] = k;
    }
    kernel_case made = {.operation = {.kind = SDLF_MATMUL, .in = {a, b}, .out = {kernel_tensor(a.dtype, y)}}};
    made.operation.matmul.transpose_a = turns & 1;
    made.operation.matmul.transpose_b = turns & 2;
    made.tolerance = (double)k + 8;
    kernel_emit(sink, &made, "%s into %s%s%s", text, sdlf_shape_print(y).text, turns & 1 ? " a'" : "",
                turns & 2 ? " b'" : "");
}

static void matmul_cases(kernel_sink *sink, sdlf_dtype t)
{
    for (int turns = 0; turns < 4; turns++) {
        sdlf_shape a = sdlf_shape(3, 2, 5, 7), b = sdlf_shape(3, 2, 7, 9);
        matmul_case(sink, kernel_tensor(t, sdlf_shape(33, 17)), kernel_tensor(t, sdlf_shape(17, 65)), turns, "one");
        matmul_case(sink, kernel_tensor(t, a), kernel_tensor(t, b), turns, "batch");
        matmul_case(sink, kernel_tensor(t, a), sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(2, 7, 9)), b), turns,
                    "broadcast");
        matmul_case(sink, sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(3, 1, 5, 7)), a), kernel_tensor(t, b),
                    turns, "broadcast within");
        matmul_case(sink, kernel_tensor(t, sdlf_shape(2, 40, 530)), kernel_tensor(t, sdlf_shape(2, 530, 200)), turns,
                    "batch of tiles");
        matmul_case(sink, kernel_tensor(t, sdlf_shape(2, 2, 300, 20)),
                    sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(2, 20, 200)), sdlf_shape(2, 2, 20, 200)), turns,
                    "broadcast tiles");
        matmul_case(sink, kernel_tensor(t, sdlf_shape(4, 1, 1)), kernel_tensor(t, sdlf_shape(4, 1, 1)), turns,
                    "numbers");
    }
}

static const struct {
    sdlf_shape x;
    int64_t length, inner, channels;
} rows[] = {
    {{2, {1, 1}}, 1, 1, 1},          {{2, {5, 33}}, 33, 1, 33},
    {{3, {2, 3, 300}}, 300, 1, 300}, {{4, {2, 3, 5, 7}}, 35, 35, 3},
    {{4, {2, 6, 4, 4}}, 48, 16, 6},  {{3, {2, 70, 9}}, 9, 9, 70},
    {{2, {3, 40}}, 10, 1, 40},       {{4, {1, 2, 33, 31}}, 1023, 1023, 2},
    {{2, {5, 8}}, 8, 1, 8},          {{3, {2, 35, 384}}, 384, 1, 384},
    {{2, {3, 1000}}, 1000, 1, 1000}, {{2, {3, 1032}}, 1032, 1, 1032},
    {{2, {2301, 264}}, 264, 1, 264}, {{2, {600, 1032}}, 1032, 1, 1032}, /* several rows of a warp or a block */
    {{2, {2, 4096}}, 4096, 1, 4096}, {{2, {2, 8192}}, 8192, 1, 8192},
    {{2, {2, 8200}}, 8200, 1, 8200}, {{2, {2, 300000}}, 300, 1, 300000}, /* more channels than a device has threads */
};

static void normalize_cases(kernel_sink *sink, sdlf_dtype t)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t count = sdlf_shape_count(rows[i].x);
        sdlf_tensor x = kernel_tensor(t, rows[i].x), c = kernel_tensor(t, sdlf_shape(rows[i].channels));
        sdlf_tensor row = kernel_tensor(t, sdlf_shape(count / rows[i].length)), none = {.dtype = SDLF_NONE};
        for (int variant = 0; variant < 4; variant++) {
            kernel_case made = {.operation = {.kind = SDLF_NORMALIZE_FORWARD, .out = {x, row, row}}};
            made.operation.in[0] = x;
            made.operation.in[1] = variant & 1 ? none : c;
            made.operation.in[2] = variant & 2 ? none : c;
            made.operation.normalize.length = rows[i].length;
            made.operation.normalize.inner = rows[i].inner;
            made.operation.normalize.epsilon = 1e-3f;
            made.tolerance = 128;
            const char *text = sdlf_shape_print(rows[i].x).text;
            kernel_emit(sink, &made, "%s rows of %d, %d, %d", text, (int)rows[i].length, (int)rows[i].inner, variant);
            made.in[0].values = VALUES_OFFSET;
            made.tolerance = 512; /* a mean near 100 may be rounded to float32; the remainders are within 2 */
            if (t == SDLF_FLOAT32)
                kernel_emit(sink, &made, "%s offset rows of %d, %d, %d", text, (int)rows[i].length, (int)rows[i].inner,
                            variant);
            made.in[0].values = VALUES_UNIFORM;
            made.operation.kind = SDLF_NORMALIZE_BACKWARD;
            made.operation.in[2] = made.operation.in[3] = row;
            made.operation.in[4] = x;
            made.operation.out[0] = variant & 2 ? none : x;
            made.operation.out[1] = variant == 3 ? none : c;
            made.operation.out[2] = c;
            made.in[3].values = VALUES_POSITIVE;
            made.tolerance = 64 + (double)(count / rows[i].channels) + (double)rows[i].length;
            kernel_emit(sink, &made, "%s rows of %d, %d, %d", text, (int)rows[i].length, (int)rows[i].inner, variant);
        }
    }
}

static void resample_case(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, int64_t outputs,
                          sdlf_resample_options options, const char *text)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "edge", "reflect", "wrap"};
    sdlf_shape y = shape;
    y.dim[options.axis] = outputs;
    kernel_case made = {.operation = {.kind = SDLF_RESAMPLE, .in = {kernel_tensor(t, shape)}}};
    made.operation.out[0] = kernel_tensor(t, y);
    made.operation.resample = options;
    bool weighs = options.mode == SDLF_RESAMPLE_LINEAR || options.mode == SDLF_RESAMPLE_CUBIC;
    made.tolerance = options.mode == SDLF_RESAMPLE_CUBIC ? 64 : weighs || options.extrapolates ? 16 : 0;
    kernel_emit(sink, &made, "%s to %d along %d, %s %s %d", sdlf_shape_print(shape).text, (int)outputs, options.axis,
                modes[options.mode], text, (int)options.coordinates);
    if (t != SDLF_FLOAT32 && t != SDLF_FLOAT64) return;
    made.operation.kind = SDLF_RESAMPLE_BACKWARD;
    made.operation.in[0] = kernel_tensor(t, y);
    made.operation.out[0] = kernel_tensor(t, shape);
    made.tolerance = 64 + 4 * (double)outputs;
    kernel_emit(sink, &made, "%s to %d along %d, %s %s %d", sdlf_shape_print(shape).text, (int)outputs, options.axis,
                modes[options.mode], text, (int)options.coordinates);
}

static void resample_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const struct {
        int64_t outputs;
        double scale;
    } sizes[] = {{14, 2}, {4, 0.6}, {1, 1.0 / 7}, {7, 1}, {16, 2.3}, {3, 3.0 / 7}};
    const sdlf_shape shape = sdlf_shape(3, 7, 5);
    for (int mode = SDLF_RESAMPLE_NEAREST; mode <= SDLF_RESAMPLE_CUBIC; mode++) {
        sdlf_resample_options wide = {.axis = 2, .mode = (sdlf_resample_mode)mode, .scale = 2, .cubic = -0.75f};
        resample_case(sink, t, sdlf_shape(5, 7, 19), 38, wide, "last axis");
        for (int coordinates = 0; coordinates < SDLF_RESAMPLE_COORDINATES_COUNT; coordinates++) {
            for (int i = 0; i < 6; i++) {
                sdlf_resample_options options = {.axis = 1,
                                                 .mode = (sdlf_resample_mode)mode,
                                                 .coordinates = (sdlf_resample_coordinates)coordinates,
                                                 .rounding = (sdlf_resample_rounding)(i % 4),
                                                 .scale = sizes[i].scale,
                                                 .cubic = -0.75f,
                                                 .start = -0.2f,
                                                 .end = 0.9f,
                                                 .outside = 3};
                resample_case(sink, t, shape, sizes[i].outputs, options, "");
                options.extrapolates = true;
                resample_case(sink, t, shape, sizes[i].outputs, options, "extrapolating");
                options.extrapolates = false;
                options.antialias = true;
                resample_case(sink, t, shape, sizes[i].outputs, options, "without aliases");
                if (coordinates == SDLF_COORDINATES_CROP) continue; /* all may be outside */
                options.exclude_outside = true;
                options.antialias = false;
                resample_case(sink, t, shape, sizes[i].outputs, options, "inside alone");
            }
        }
    }
    for (int mode = SDLF_RESAMPLE_EDGE; mode < SDLF_RESAMPLE_MODE_COUNT; mode++) {
        sdlf_resample_options options = {.axis = 1, .mode = (sdlf_resample_mode)mode, .before = 9};
        resample_case(sink, t, shape, 30, options, "around");
        if (t == SDLF_FLOAT32) resample_case(sink, SDLF_INT32, shape, 30, options, "around");
        if (t == SDLF_FLOAT32) resample_case(sink, SDLF_UINT8, shape, 30, options, "around");
        options.before = -2;
        resample_case(sink, t, shape, 4, options, "within");
        options.before = 2;
        resample_case(sink, t, sdlf_shape(3, 1, 2), 6, options, "of one");
        options.axis = 2;
        resample_case(sink, t, shape, 11, options, "last");
    }
    sdlf_resample_options point = {.axis = 1, .mode = SDLF_RESAMPLE_LINEAR, .coordinates = SDLF_COORDINATES_CROP};
    point.scale = 1.0 / 7;
    resample_case(sink, t, shape, 2, point, "of a point");
    sdlf_resample_options wide = {.axis = 2, .mode = SDLF_RESAMPLE_LINEAR, .scale = 2};
    resample_case(sink, t, sdlf_shape(2, 3, 65), 130, wide, "last");
    wide.axis = 0;
    resample_case(sink, t, sdlf_shape(5, 1100), 10, wide, "first");
}

void rows_cases(kernel_sink *sink, sdlf_dtype t)
{
    matmul_cases(sink, t);
    normalize_cases(sink, t);
    resample_cases(sink, t);
}

void rows_bench(kernel_sink *sink, sdlf_dtype t)
{
    matmul_case(sink, kernel_tensor(t, sdlf_shape(96, 128, 64)), kernel_tensor(t, sdlf_shape(96, 64, 128)), 0, "batch");
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(4096, 768)), c = kernel_tensor(t, sdlf_shape(768));
    sdlf_tensor row = kernel_tensor(t, sdlf_shape(4096));
    kernel_case made = {.operation = {.kind = SDLF_NORMALIZE_FORWARD, .in = {x, c, c}, .out = {x, row, row}}};
    made.operation.normalize.length = 768;
    made.operation.normalize.inner = 1;
    kernel_emit(sink, &made, "4096x768");
    sdlf_resample_options twice = {.axis = 2, .mode = SDLF_RESAMPLE_LINEAR, .scale = 2};
    resample_case(sink, t, sdlf_shape(8, 64, 56, 56), 112, twice, "");
    twice.axis = 3;
    resample_case(sink, t, sdlf_shape(8, 64, 112, 56), 112, twice, "");
}
