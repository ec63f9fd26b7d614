/* SPDX-License-Identifier: MIT */
/* The microkernels of quantized_conv2d: see quantized_tiles.h. For 64 bytes CMake compiles it again, with SDLF_VNNI 1. */
#include "calculators/cpu/kernels/quantized_tiles.h"

#ifndef SDLF_VNNI
#define SDLF_VNNI 0
#endif

#define INLINE static inline __attribute__((always_inline))

/* Adds the products of a quad's elements to sum, in each lane. */
INLINE ints dot(ints sum, ints x, ints w)
{
#if SDLF_VNNI
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__AVX512BW__) && SDLF_VECTOR_BYTES == 64
    return sum + (ints)_mm512_madd_epi16((__m512i)x, (__m512i)w);
#elif defined(__AVX2__) && SDLF_VECTOR_BYTES == 32
    return sum + (ints)_mm256_madd_epi16((__m256i)x, (__m256i)w);
#elif defined(__SSE2__) && SDLF_VECTOR_BYTES == 16
    return sum + (ints)_mm_madd_epi16((__m128i)x, (__m128i)w);
#else
    typedef uint32_t words __attribute__((vector_size(SDLF_VECTOR_BYTES)));
    ints low = ((ints)((words)x << 16) >> 16) * ((ints)((words)w << 16) >> 16);
    return sum + low + (x >> 16) * (w >> 16);
#endif
}

INLINE ints broadcast_quad(const uint8_t *from)
{
    int32_t quad;
    memcpy(&quad, from, sizeof quad);
    return quad - (ints){0};
}

INLINE ints load_ints(const int32_t *from)
{
    ints v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* Channels of one pixel, one in each lane. */
INLINE ints load_channels(const uint8_t *from)
{
#if SDLF_VNNI
    bytes x;
    memcpy(&x, from, sizeof x);
    return widen_bytes(x);
#else
    halves x;
    memcpy(&x, from, sizeof x);
    return widen_halves(x);
#endif
}

/* The epilogue for filters k .. k + count - 1 of a pixel; the accumulators started with the bias. */
INLINE void finish(const quantized_layer *layer, ints sum, int64_t pixel, int64_t k, int64_t count)
{
    if (layer->form == QUANTIZED_SUMS) {
        memcpy((int32_t *)layer->y + pixel * layer->k + k, &sum, (size_t)cpu_min(count, LANES) * sizeof(int32_t));
        return;
    }
    vector v = __builtin_convertvector(sum, vector) * load(layer->scale + k);
    if (layer->shift != NULL) v = v + load(layer->shift + k);
    if (layer->form == QUANTIZED_FLOATS) {
        v = clamp_lanes(v, broadcast(layer->to.low), broadcast(layer->to.high));
        memcpy((float *)layer->y + pixel * layer->k + k, &v, (size_t)cpu_min(count, LANES) * sizeof(float));
        return;
    }
    store_bytes((uint8_t *)layer->y + pixel * layer->k + k, round_to(v, &layer->to), count);
}

typedef uint32_t words __attribute__((vector_size(SDLF_VECTOR_BYTES)));

/* Subtracts the terms that are a product of one value for each pixel and one for each filter, modulo 2^32. */
INLINE void subtract_terms(const quantized_layer *layer, const int pixels, const int vectors,
                           ints (*sum)[QUANTIZED_VECTORS], int64_t first, int64_t given, int64_t k)
{
    for (int term = 0; term < 2; term++) {
        if (layer->less_rows[term] == NULL) continue;
        const int32_t *columns = layer->less_columns[term] + k;
        UNROLLED for (int i = 0; i < pixels; i++)
        {
            if (i >= given) continue;
            const words row = (uint32_t)layer->less_rows[term][first + i] - (words){0};
            UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] =
                (ints)((words)sum[i][j] - row * (words)load_ints(columns + j * LANES));
        }
    }
}

/* A tile's epilogue. It copies the layer's fields to registers: the compiler must assume that stores of bytes may alias them. */
INLINE void finish_tile(const quantized_layer *layer, const int pixels, const int vectors,
                        ints (*sum)[QUANTIZED_VECTORS], int64_t first, int64_t given, int64_t k, int64_t count)
{
    if (layer->form != QUANTIZED_BYTES) {
        UNROLLED for (int i = 0; i < pixels; i++)
        {
            UNROLLED for (int j = 0; j < vectors; j++)
            {
                if (i < given) finish(layer, sum[i][j], first + i, k + j * LANES, count - j * LANES);
            }
        }
        return;
    }
    const rounding to = layer->to;
    const int64_t step = layer->k;
    const float *const shift = layer->shift;
    uint8_t *y = (uint8_t *)layer->y + first * step + k;
    vector scale[QUANTIZED_VECTORS];
    UNROLLED for (int j = 0; j < vectors; j++) scale[j] = load(layer->scale + k + j * LANES);
    UNROLLED for (int i = 0; i < pixels; i++)
    {
        vector v[QUANTIZED_VECTORS];
        UNROLLED for (int j = 0; j < vectors; j++) v[j] = __builtin_convertvector(sum[i][j], vector) * scale[j];
        if (shift != NULL) UNROLLED for (int j = 0; j < vectors; j++) v[j] = v[j] + load(shift + k + j * LANES);
        if (i < given) round_row(y + i * step, v, vectors, &to, count);
    }
}

/* The addresses of the windows of consecutive pixels. */
typedef struct cursor {
    const uint8_t *row, *at; /* of column 0; of the pixel */
    int64_t p, q;
} cursor;

INLINE cursor cursor_at(const quantized_layer *layer, int64_t pixel)
{
    int64_t row = pixel / layer->q;
    cursor c = {.p = row % layer->p, .q = pixel % layer->q};
    c.row = layer->image + row / layer->p * layer->image_step + c.p * layer->row_step;
    c.at = c.row + c.q * layer->column_step;
    return c;
}

INLINE void cursor_advance(const quantized_layer *layer, cursor *c)
{
    c->at += layer->column_step;
    if (++c->q < layer->q) return;
    bool next_image = ++c->p == layer->p;
    c->row += layer->row_step + (next_image ? layer->image_step - layer->p * layer->row_step : 0);
    c->at = c->row;
    c->q = 0;
    if (next_image) c->p = 0;
}

enum { MOST_PIXELS = 14, MOST_COLUMNS = 5 };

/* A tile of `pixels` by `vectors`, both compile-time constants; `given` of the pixels exist. */
INLINE void tile(const quantized_layer *layer, const int pixels, const int vectors, int64_t group, int64_t from,
                 cursor *at, int64_t first, int64_t given)
{
    const int64_t filters = layer->k / layer->groups, k = group * filters + from * LANES,
                  each = layer->runs * layer->quads * LANES;
    const int32_t *w = layer->weights + (group * cpu_divide_up(filters, LANES) + from) * each;
    const uint8_t *x[MOST_PIXELS];
    ints sum[MOST_PIXELS][QUANTIZED_VECTORS];
    UNROLLED for (int i = 0; i < pixels; i++)
    {
        x[i] = at->at + group * layer->group_step;
        if (i < given - 1) cursor_advance(layer, at);
        UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = load_ints(layer->bias + k + j * LANES);
    }
    for (int64_t run = 0; run < layer->runs; run++) {
        const int64_t start = layer->run[run], end = start + 4 * layer->quads;
        for (int64_t l = start; l < end; l += 4, w += LANES) {
            ints weight[QUANTIZED_VECTORS];
            UNROLLED for (int j = 0; j < vectors; j++) weight[j] = load_ints(w + j * each);
            UNROLLED for (int i = 0; i < pixels; i++)
            {
                ints quad = broadcast_quad(x[i] + l);
                UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = dot(sum[i][j], quad, weight[j]);
            }
        }
    }
    subtract_terms(layer, pixels, vectors, sum, first, given, k);
    finish_tile(layer, pixels, vectors, sum, first, given, k, filters - from * LANES);
}

/* Tiles as tall as registers allow. */
INLINE void tiles(const quantized_layer *layer, const int pixels, const int vectors, int64_t group, int64_t from,
                  int64_t first, int64_t last)
{
    cursor at = cursor_at(layer, first);
    for (int64_t pixel = first; pixel < last; pixel += pixels) {
        tile(layer, pixels, vectors, group, from, &at, pixel, cpu_min(pixels, last - pixel));
        cursor_advance(layer, &at);
    }
}

/* One row, for a matrix of a single row: a taller tile would compute it several times. */
INLINE void one_row(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first)
{
    int64_t at = 0;
    for (; at + 2 <= vectors; at += 2) tiles(layer, 1, 2, group, from + at, first, first + 1);
    if (at < vectors) tiles(layer, 1, 1, group, from + at, first, first + 1);
}

INLINE void all_tiles(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first,
                      int64_t last)
{
    if (last - first == 1) {
        one_row(layer, group, from, vectors, first);
        return;
    }
#if SDLF_VECTOR_BYTES == 64
    switch (vectors) {
    case 1: tiles(layer, 14, 1, group, from, first, last); break;
    case 2: tiles(layer, 12, 2, group, from, first, last); break;
    case 3: tiles(layer, 8, 3, group, from, first, last); break;
    default: tiles(layer, 6, 4, group, from, first, last);
    }
#else
    if (vectors == 1)
        tiles(layer, 8, 1, group, from, first, last);
    else
        tiles(layer, 5, 2, group, from, first, last);
#endif
}

/* ---- depthwise ---- */

/* `pixels` of a row, one vector of channels; windows of `size` columns, `stride` apart: compile-time constants, so that
 * each input column is loaded once for all pixels that use it. */
INLINE void depthwise_columns(const quantized_layer *layer, const int pixels, const int size, const int stride,
                              const uint8_t *x, const int32_t *w, int64_t pixel, int64_t c)
{
    ints sum[MOST_PIXELS][QUANTIZED_VECTORS];
    const ints bias = load_ints(layer->bias + c);
    UNROLLED for (int i = 0; i < pixels; i++) sum[i][0] = bias;
    for (int64_t run = 0; run < layer->runs; run += size, w += size * LANES) {
        ints weight[MOST_COLUMNS];
        UNROLLED for (int s = 0; s < size; s++) weight[s] = load_ints(w + s * LANES);
        UNROLLED for (int j = 0; j < (pixels - 1) * stride + size; j++)
        {
            const ints column = load_channels(x + layer->run[run] + j * layer->pixel_step);
            UNROLLED for (int s = 0; s < size; s++)
            {
                const int i = (j - s) / stride;
                if (j >= s && i * stride == j - s && i < pixels) sum[i][0] = dot(sum[i][0], column, weight[s]);
            }
        }
    }
    finish_tile(layer, pixels, 1, sum, pixel, pixels, c, layer->k - c);
}

/* One pixel, any window. */
INLINE void depthwise_pixel(const quantized_layer *layer, const uint8_t *x, const int32_t *w, int64_t pixel, int64_t c)
{
    ints sum = load_ints(layer->bias + c);
    for (int64_t run = 0; run < layer->runs; run++)
        sum = dot(sum, load_channels(x + layer->run[run]), load_ints(w + run * LANES));
    finish(layer, sum, pixel, c, layer->k - c);
}

/* A row of pixels in tiles; the last tile may overlap the one before it. */
INLINE void depthwise_line(const quantized_layer *layer, const int pixels, const int size, const int stride,
                           const uint8_t *line, const int32_t *w, int64_t row, int64_t c)
{
    for (int64_t at = 0; at < layer->q; at += pixels) {
        int64_t q = cpu_min(at, layer->q - pixels);
        depthwise_columns(layer, pixels, size, stride, line + q * layer->column_step, w, row * layer->q + q, c);
    }
}

INLINE void depthwise_row(const quantized_layer *layer, int64_t row)
{
    const uint8_t *line = layer->image + row / layer->p * layer->image_step + row % layer->p * layer->row_step;
    const int64_t wide = 8, narrow_tile = 4, q = layer->q;
    const bool three = layer->columns == 3 && layer->stride == 1, two = layer->columns == 3 && layer->stride == 2;
    for (int64_t c = 0; c < layer->k; c += LANES) {
        const int32_t *w = layer->weights + c * layer->runs;
        const uint8_t *x = line + c * layer->group_step;
        if (three && q >= wide)
            depthwise_line(layer, 8, 3, 1, x, w, row, c);
        else if (three && q >= narrow_tile)
            depthwise_line(layer, 4, 3, 1, x, w, row, c);
        else if (two && q >= narrow_tile)
            depthwise_line(layer, 4, 3, 2, x, w, row, c);
        else if (layer->columns == 5 && layer->stride == 1 && q >= narrow_tile)
            depthwise_line(layer, 4, 5, 1, x, w, row, c);
        else
            for (int64_t i = 0; i < q; i++) depthwise_pixel(layer, x + i * layer->column_step, w, row * q + i, c);
    }
}

#if SDLF_VNNI
void quantized_tiles_vnni_cpu(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first,
                              int64_t last)
{
    all_tiles(layer, group, from, vectors, first, last);
}

void quantized_depthwise_vnni_cpu(const quantized_layer *layer, int64_t row)
{
    depthwise_row(layer, row);
}
#else
void quantized_tiles_cpu(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first,
                         int64_t last)
{
    all_tiles(layer, group, from, vectors, first, last);
}

void quantized_depthwise_cpu(const quantized_layer *layer, int64_t row)
{
    depthwise_row(layer, row);
}
#endif
