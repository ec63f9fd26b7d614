/* SPDX-License-Identifier: MIT */
/* Fourier transforms as products with a matrix of cosines and sines, and the associated windows: DFT, STFT, HannWindow,
 * HammingWindow, BlackmanWindow, MelWeightMatrix. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

static const double pi = 3.14159265358979323846;

/* ---- windows ---- */

static void fold_window(onnx_context *c)
{
    static const struct {
        const char *type;
        double a, b, d;
    } windows[] = {
        {"HannWindow", 0.5, 0.5, 0}, {"HammingWindow", 25.0 / 46, 21.0 / 46, 0}, {"BlackmanWindow", 0.42, 0.5, 0.08}};
    double size = onnx_known_number(c, 0, 0);
    bool periodic = onnx_flag(c, "periodic", true);
    int64_t type = onnx_integer(c, "output_datatype", ONNX_FLOAT);
    if (onnx_ok(c) && !(size >= 1 && size <= ONNX_FOLD_LIMIT)) onnx_wrong(c, "a window of %g", size);
    if (type < 1 || type >= ONNX_TYPE_COUNT || !sdlf_dtype_is_float(onnx_type_dtype((int)type)))
        onnx_unsupported(c, "a window that is not of floats");
    if (!onnx_ok(c)) return;
    int at = 0;
    while (strcmp(windows[at].type, c->type->type) != 0) at++;
    onnx_numbers window = onnx_new_numbers(c, true, sdlf_shape((int64_t)size));
    for (int64_t i = 0; i < window.count; i++) {
        double turn = 2 * pi * (double)i / (periodic ? size : size > 1 ? size - 1 : 1);
        window.number[i] = windows[at].a - windows[at].b * cos(turn) + windows[at].d * cos(2 * turn);
    }
    onnx_tensor tensor = onnx_store_numbers(c, &window, (onnx_type)type);
    onnx_set_output_constant(c, 0, &tensor);
}

/* ---- MelWeightMatrix ---- */

/* The spectrum bin of point `i` of `places` equally spaced points on the mel scale. */
static int64_t mel_bin(double low, double high, int64_t places, int64_t i, double length, double rate)
{
    double mel = low + (high - low) / (double)places * (double)i;
    return onnx_to_integer(floor((length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate));
}

/* Triangular filters: each rises from one bin to the next and falls to the one after it. */
static void fold_mel(onnx_context *c)
{
    double filters = onnx_known_number(c, 0, 0), length = onnx_known_number(c, 1, 0), rate = onnx_known_number(c, 2, 0);
    double low = 2595 * log10(1 + onnx_known_number(c, 3, 0) / 700);
    double high = 2595 * log10(1 + onnx_known_number(c, 4, 0) / 700);
    int64_t type = onnx_integer(c, "output_datatype", ONNX_FLOAT);
    if (type < 1 || type >= ONNX_TYPE_COUNT || !sdlf_dtype_is_float(onnx_type_dtype((int)type)))
        onnx_unsupported(c, "a matrix that is not of floats");
    if (onnx_ok(c) && !(filters >= 1 && filters <= ONNX_FOLD_LIMIT && length >= 1 && length <= ONNX_FOLD_LIMIT &&
                        rate >= 1 && low <= high && low >= 0))
        onnx_wrong(c, "%g filters of a transform of %g elements at %g per second", filters, length, rate);
    if (!onnx_ok(c)) return;
    int64_t columns = (int64_t)filters, rows = (int64_t)length / 2 + 1;
    onnx_numbers matrix = onnx_new_numbers(c, true, sdlf_shape(rows, columns));
    for (int64_t i = 0; i < matrix.count; i++) matrix.number[i] = 0;
    for (int64_t i = 0; i < columns && onnx_ok(c); i++) {
        int64_t bin[3];
        for (int k = 0; k < 3; k++) bin[k] = mel_bin(low, high, columns + 2, i + k, floor(length), rate);
        if (bin[2] > rows || bin[1] >= rows || bin[0] < 0) {
            onnx_wrong(c, "filter %lld ends at bin %lld of %lld", (long long)i, (long long)bin[2], (long long)rows);
            return;
        }
        if (bin[1] == bin[0]) matrix.number[bin[1] * columns + i] = 1;
        for (int64_t j = bin[0]; j <= bin[1] && bin[1] > bin[0]; j++)
            matrix.number[j * columns + i] = (double)(j - bin[0]) / (double)(bin[1] - bin[0]);
        for (int64_t j = bin[1]; j < bin[2]; j++)
            matrix.number[j * columns + i] = (double)(bin[2] - j) / (double)(bin[2] - bin[1]);
    }
    onnx_tensor tensor = onnx_store_numbers(c, &matrix, (onnx_type)type);
    onnx_set_output_constant(c, 0, &tensor);
}

/* ---- transforms ---- */

/* (length, outputs) cosines, or sines, of 2 pi k n / length, times a factor. */
static onnx_flow waves(onnx_context *c, int64_t length, int64_t outputs, bool sines, double factor)
{
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_DOUBLE, sdlf_shape(length, outputs));
    for (int64_t i = 0; i < length && onnx_ok(c); i++)
        for (int64_t k = 0; k < outputs; k++) {
            double turn = 2 * pi * (double)(i * k % length) / (double)length;
            ((double *)tensor.data)[i * outputs + k] = factor * (sines ? sin(turn) : cos(turn));
        }
    return onnx_constant_layer(c, &tensor);
}

/* Transforms x (..., length, 1 or 2), real or complex, along the second-to-last axis; result (..., outputs,
 * 2). */
static onnx_flow transform(onnx_context *c, onnx_flow x, int64_t outputs, bool inverse)
{
    int last = x.shape.rank - 1;
    int64_t length = onnx_ok(c) ? x.shape.dim[last - 1] : 1;
    bool complex = onnx_ok(c) && x.shape.dim[last] == 2;
    double factor = inverse ? 1 / (double)length : 1, sign = inverse ? 1 : -1;
    if (!onnx_ok(c)) return x;
    if (length > 1 << 11)
        onnx_unsupported(c, "a transform of %lld elements: at most %d are taken", (long long)length, 1 << 11);
    onnx_flow re = onnx_join_axes(c, onnx_take(c, x, last, 0, 1, 1), last - 1, last);
    onnx_flow im = complex ? onnx_join_axes(c, onnx_take(c, x, last, 1, 1, 1), last - 1, last) : re;
    onnx_flow cosines = waves(c, length, outputs, false, factor),
              sines = waves(c, length, outputs, true, sign * factor);
    onnx_flow parts[2] = {onnx_product(c, re, cosines, false), onnx_product(c, re, sines, false)};
    if (complex) {
        parts[0] = onnx_elementwise(c, "sub", parts[0], onnx_product(c, im, sines, false));
        parts[1] = onnx_elementwise(c, "add", parts[1], onnx_product(c, im, cosines, false));
    }
    for (int i = 0; i < 2; i++) parts[i] = onnx_split_axis(c, parts[i], last - 1, outputs);
    return onnx_join(c, parts, 2, last);
}

/* The real signal of that many elements from the first half (at least) of its transform, x (..., bins, 2); the other
 * bins are conjugates. */
static onnx_flow back_from_half(onnx_context *c, onnx_flow x, int64_t length)
{
    int last = x.shape.rank - 1;
    int64_t terms = length / 2 + 1;
    if (!onnx_ok(c)) return x;
    onnx_flow re = onnx_join_axes(c, onnx_take(c, x, last, 0, 1, 1), last - 1, last);
    onnx_flow im = onnx_join_axes(c, onnx_take(c, x, last, 1, 1, 1), last - 1, last);
    onnx_tensor cosines = onnx_new_tensor(c, ONNX_DOUBLE, sdlf_shape(terms, length)), sines = cosines;
    sines = onnx_new_tensor(c, ONNX_DOUBLE, cosines.shape);
    for (int64_t i = 0; i < terms * length && onnx_ok(c); i++) {
        int64_t k = i / length, n = i % length;
        double turn = 2 * pi * (double)(k * n % length) / (double)length;
        double factor = (k == 0 || 2 * k == length ? 1 : 2) / (double)length; /* no conjugate counterpart */
        ((double *)cosines.data)[i] = factor * cos(turn);
        ((double *)sines.data)[i] = factor * sin(turn);
    }
    onnx_flow y = onnx_elementwise(c, "sub", onnx_product(c, re, onnx_constant_layer(c, &cosines), false),
                                   onnx_product(c, im, onnx_constant_layer(c, &sines), false));
    return onnx_split_axis(c, y, last - 1, length);
}

/* x with an axis swapped with the second-to-last one, or back. */
static onnx_flow moved(onnx_context *c, onnx_flow x, int axis)
{
    int order[SDLF_MAX_RANK], place = x.shape.rank - 2;
    if (!onnx_ok(c)) return x;
    for (int i = 0; i < x.shape.rank; i++) order[i] = i;
    order[axis] = place;
    order[place] = axis;
    return onnx_transpose(c, x, order);
}

static void convert_dft(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    bool inverse = onnx_flag(c, "inverse", false), half = onnx_flag(c, "onesided", false);
    if (onnx_ok(c) && (x.shape.rank < 3 - 1 || x.shape.dim[x.shape.rank - 1] > 2))
        onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    int64_t wanted = c->opset < 20 ? onnx_integer(c, "axis", 1) : onnx_to_integer(onnx_known_number(c, 2, -2));
    int axis = onnx_axis(c, wanted, x.shape.rank);
    if (onnx_ok(c) && axis == x.shape.rank - 1) onnx_wrong(c, "axis %d holds real and imaginary parts", axis);
    if (!onnx_ok(c)) return;
    bool back = inverse && half; /* the result is longer than the input */
    double length = onnx_known_number(c, 1, (double)(back ? 2 * (x.shape.dim[axis] - 1) : x.shape.dim[axis]));
    if (onnx_ok(c) && back && x.shape.dim[x.shape.rank - 1] != 2) onnx_wrong(c, "half a transform is complex");
    if (onnx_ok(c) && !(length >= 1 && length <= 1 << 11)) onnx_unsupported(c, "a transform of %g elements", length);
    if (!onnx_ok(c)) return;
    if (axis == onnx_batch_axis(c, x)) x = onnx_batch_fixed(c, x);
    int64_t count = back ? (int64_t)length / 2 + 1 : (int64_t)length, there = x.shape.dim[axis];
    x = there < count ? onnx_pad_axis(c, x, axis, 0, count - there, 0) : onnx_take(c, x, axis, 0, count, 1);
    if (back) {
        onnx_set_output(c, 0, moved(c, back_from_half(c, moved(c, x, axis), (int64_t)length), axis));
        return;
    }
    onnx_set_output(c, 0, moved(c, transform(c, moved(c, x, axis), half ? count / 2 + 1 : count, inverse), axis));
}

/* Transforms frames of the signal, (N, samples, 1 or 2), each multiplied by the window. */
static void convert_stft(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    double step = onnx_known_number(c, 1, 0);
    double size = onnx_known_number(c, 3, onnx_has(c, 2) ? (double)sdlf_shape_count(onnx_shape(c, 2)) : 0);
    if (onnx_ok(c) &&
        (x.shape.rank != 3 || !(step >= 1 && step < INT32_MAX) || !(size >= 1 && size <= (double)x.shape.dim[1])))
        onnx_wrong(c, "frames of %g elements every %g of a signal %s", size, step, sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int64_t length = (int64_t)size, every = (int64_t)step, frames = (x.shape.dim[1] - length) / every + 1;
    onnx_flow places =
        onnx_elementwise(c, "add", onnx_count_up(c, 0, every, frames, 0, 2), onnx_count_up(c, 0, 1, length, 1, 2));
    onnx_flow parts = onnx_gather(c, x, places, 1); /* (N, frames, length, 1 or 2) */
    if (onnx_has(c, 2)) {
        onnx_flow window = onnx_in(c, 2);
        if (onnx_ok(c) && (window.shape.rank != 1 || window.shape.dim[0] > length))
            onnx_wrong(c, "its window is %s", sdlf_shape_print(window.shape).text);
        if (!onnx_ok(c)) return;
        int64_t missing = length - window.shape.dim[0];
        window = onnx_pad_axis(c, window, 0, missing / 2, missing - missing / 2, 0);
        parts = onnx_elementwise(c, "mul", parts, onnx_split_axis(c, window, 0, length));
    }
    bool half = onnx_flag(c, "onesided", true);
    onnx_set_output(c, 0, transform(c, parts, half ? length / 2 + 1 : length, false));
}

const onnx_operator onnx_signal_operators[] = {
    {.type = "HannWindow",
     .since = 17,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .known = 1,
     .attributes = " output_datatype periodic ",
     .fold = fold_window},
    {.type = "HammingWindow",
     .since = 17,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .known = 1,
     .attributes = " output_datatype periodic ",
     .fold = fold_window},
    {.type = "BlackmanWindow",
     .since = 17,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .known = 1,
     .attributes = " output_datatype periodic ",
     .fold = fold_window},
    {.type = "MelWeightMatrix",
     .since = 17,
     .minimum_inputs = 5,
     .maximum_inputs = 5,
     .known = 31,
     .attributes = " output_datatype ",
     .fold = fold_mel},
    {.type = "DFT",
     .since = 17,
     .minimum_inputs = 1,
     .maximum_inputs = 3,
     .known = 6,
     .attributes = " axis inverse onesided ",
     .convert = convert_dft},
    {.type = "STFT",
     .since = 17,
     .minimum_inputs = 2,
     .maximum_inputs = 4,
     .known = 10,
     .attributes = " onesided ",
     .convert = convert_stft},
    {.type = NULL},
};
