/* SPDX-License-Identifier: MIT */
/* MatMulNBits of com.microsoft: a product with weights of 8 or 4 bits, with a scale and a zero point per block
 * of inputs. The weights are dequantised here, and a plan recovers the integers
 * (framework/plan/fuse/weight_only.c). */
#include "framework/formats/onnx/import/compose.h"
#include "framework/formats/onnx/import/fold.h"

typedef struct packed_weight {
    int64_t inputs, units, bits, block, blocks;
    const uint8_t *data;
    onnx_numbers scale, zero; /* zero.count 0: none; for uint8, packed like the weights */
} packed_weight;

static int unpack(const uint8_t *from, int64_t index, int64_t bits)
{
    return bits == 8 ? from[index] : from[index / 2] >> (index % 2 != 0 ? 4 : 0) & 15;
}

static double zero_of(const packed_weight *w, int64_t unit, int64_t block)
{
    if (w->zero.count == 0) return w->bits == 8 ? 128 : 8;
    if (w->zero.real) return w->zero.number[unit * w->blocks + block];
    int64_t row = (w->blocks * w->bits + 7) / 8;
    int64_t byte = w->zero.integer[unit * row + block * w->bits / 8];
    return (double)(w->bits == 8 ? byte : byte >> (block % 2 != 0 ? 4 : 0) & 15);
}

static void expand(const packed_weight *w, float *to)
{
    int64_t each = w->block * w->bits / 8;
    for (int64_t i = 0; i < w->units * w->blocks; i++) {
        int64_t first = i % w->blocks * w->block, unit = i / w->blocks;
        float scale = (float)w->scale.number[i];
        double zero = zero_of(w, unit, i % w->blocks);
        for (int64_t k = 0; k < w->block && first + k < w->inputs; k++)
            to[unit * w->inputs + first + k] = (float)((double)unpack(w->data + i * each, k, w->bits) - zero) * scale;
    }
}

/* Reads attributes and inputs, and checks that their sizes are consistent. */
static bool read_weight(onnx_context *c, packed_weight *w)
{
    *w = (packed_weight){.inputs = onnx_integer(c, "K", 0),
                         .units = onnx_integer(c, "N", 0),
                         .bits = onnx_integer(c, "bits", 4),
                         .block = onnx_integer(c, "block_size", 0)};
    if (!onnx_ok(c)) return false;
    if ((w->bits != 4 && w->bits != 8) || onnx_has(c, 4)) {
        onnx_unsupported(c, "%lld bits%s; 4 and 8 are supported", (long long)w->bits,
                         onnx_has(c, 4) ? " and g_idx" : "");
        return false;
    }
    const onnx_tensor *q = onnx_known(c, 1), *scale = onnx_known(c, 2),
                      *zero = onnx_has(c, 3) ? onnx_known(c, 3) : NULL;
    bool sizes = w->inputs > 0 && w->units > 0 && w->block >= 16 && w->block % 2 == 0 && w->inputs < INT32_MAX &&
                 w->units < INT32_MAX && w->block < INT32_MAX;
    w->blocks = sizes ? (w->inputs - 1) / w->block + 1 : 0;
    int64_t zeros = zero == NULL ? 0 : zero->type == ONNX_UINT8 ? (w->blocks * w->bits + 7) / 8 : w->blocks;
    sizes = sizes && q->type == ONNX_UINT8 && q->count == w->units * w->blocks * (w->block * w->bits / 8) &&
            scale->count == w->units * w->blocks && sdlf_dtype_is_float(onnx_type_dtype((int)scale->type)) &&
            (zero == NULL || zero->count == w->units * zeros);
    if (!sizes) {
        onnx_wrong(c, "weights %s and scales %s for %lld times %lld in blocks of %lld", sdlf_shape_print(q->shape).text,
                   sdlf_shape_print(scale->shape).text, (long long)w->inputs, (long long)w->units, (long long)w->block);
        return false;
    }
    w->scale = onnx_load_numbers(c, scale);
    w->zero = zero != NULL ? onnx_load_numbers(c, zero) : (onnx_numbers){.count = 0};
    return onnx_ok(c);
}

static void convert_n_bits(onnx_context *c)
{
    packed_weight w;
    const onnx_tensor *bias = onnx_has(c, 5) ? onnx_known(c, 5) : NULL;
    onnx_flow x = onnx_in(c, 0);
    if (!read_weight(c, &w)) return;
    onnx_tensor q = onnx_materialize(c, onnx_known(c, 1)),
                y = onnx_new_weight(c, ONNX_FLOAT, sdlf_shape(w.units, w.inputs));
    if (onnx_ok(c) && (x.shape.rank < 2 || (bias != NULL && bias->count != w.units)))
        onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    w.data = q.data;
    if (!y.uniform) expand(&w, (float *)y.data);
    y.scale_axis = 1;
    y.scale_length = w.block;
    onnx_set_output(c, 0, onnx_fully_connected(c, x, &y, true, 1, bias, 1));
}

const onnx_operator onnx_packed_operators[] = {
    {.type = "com.microsoft.MatMulNBits",
     .since = 1,
     .minimum_inputs = 3,
     .maximum_inputs = 6,
     .known = 0x3E,
     .attributes = " K N bits block_size accuracy_level ",
     .convert = convert_n_bits},
    {.type = NULL},
};
