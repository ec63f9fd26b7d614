/* SPDX-License-Identifier: MIT */
/* quantized_conv2d. Contract: <sdlf/operations/quantization.h>; the microkernels: quantized_tiles.h.
 *
 *     sum of (x - zero) w = sum of x w - zero (sum of w),
 *
 * where the sum of w is a constant of each filter, computed when the weights are packed; so padding holds the zero
 * point. The image is converted to the form that the loops read, with its padding, unless it already has that form.
 *
 * Compute-bound: 64 products an instruction with VNNI, 32 of int16 in 64 bytes. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized_tiles.h"

enum { SLACK = 64 };

typedef struct geometry {
    const sdlf_operation *operation;
    const sdlf_window2d *window;
    int64_t n, c, h, w, k, p, q, groups;
    int64_t unit;           /* bytes of an element of the image */
    quantised from;         /* how x is read: flipped if elements are bytes */
    bool depthwise;         /* one filter for each channel */
    bool joined;            /* a run is a row of the window; else one position */
    int64_t runs, length;   /* of each, elements */
    int64_t quads, vectors; /* of each run; of each group's filters, or of all channels */
    int64_t rows, columns;  /* of the image with its padding */
    bool in_place;          /* x is stored as the loops read it */
    bool x_nhwc, y_nhwc;
} geometry;

static geometry geometry_of(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_quantized_conv2d_options *o = &operation->quantized_conv2d;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    const int64_t *in = x->shape.dim, *out = y->shape.dim;
    bool vnni = quantized_has_vnni(calculator);
    geometry g = {.operation = operation, .window = &o->window, .n = in[0], .c = in[1], .h = in[2], .w = in[3]};
    g.k = out[1], g.p = out[2], g.q = out[3], g.groups = o->groups;
    g.unit = vnni ? 1 : 2;
    g.from = vnni ? quantised_of(x, o->x_zero) : (quantised){.zero = o->x_zero};
    g.depthwise = g.groups > 1 && g.groups == g.c && g.k == g.c;
    g.joined = g.groups == 1 && o->window.dilation[1] == 1;
    g.runs = (int64_t)o->window.size[0] * (g.joined ? 1 : o->window.size[1]);
    g.length = g.depthwise ? 1 : g.c / g.groups * (g.joined ? o->window.size[1] : 1);
    g.quads = cpu_divide_up(g.length * g.unit, 4);
    g.vectors = cpu_divide_up(g.depthwise ? g.c : g.k / g.groups, LANES);
    g.rows = g.h + o->window.padding_before[0] + o->window.padding_after[0];
    g.columns = g.w + o->window.padding_before[1] + o->window.padding_after[1];
    g.x_nhwc = sdlf_tensor_is_channels_last(x);
    g.y_nhwc = sdlf_tensor_is_channels_last(y);
    bool whole_quads = g.depthwise ? g.c % LANES == 0 : g.length % 4 == 0;
    g.in_place = vnni && g.from.flip == 0 && g.x_nhwc && g.rows == g.h && g.columns == g.w && whole_quads;
    return g;
}

/* ---- weights: for each filter their sum, then the quads ---- */

static int64_t sums_bytes(const geometry *g)
{
    return cpu_round_up(g->k * (int64_t)sizeof(int32_t), 64);
}

static int64_t quads_of_vector(const geometry *g)
{
    return g->runs * g->quads * LANES;
}

static int64_t packed_bytes(const geometry *g)
{
    int64_t groups = g->depthwise ? 1 : g->groups;
    return sums_bytes(g) + groups * g->vectors * quads_of_vector(g) * (int64_t)sizeof(int32_t);
}

typedef struct packing {
    const geometry *g;
    char *to;
} packing;

/* Packs filter k, which is lane `lane` of the vector whose quads begin at `quads`. */
static void pack_filter(const geometry *g, int64_t k, char *quads, int64_t lane, int32_t *sums)
{
    const int64_t *size = g->operation->in[1].shape.dim, taps = size[2] * size[3];
    const int8_t *w = (const int8_t *)g->operation->in[1].data + k * size[1] * taps;
    const bool rows = g->joined && !g->depthwise;
    uint32_t sum = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        char *run = quads + (rows ? tap / size[3] : tap) * g->quads * LANES * 4;
        int64_t first = rows ? tap % size[3] * g->c : 0;
        for (int64_t c = 0; c < size[1]; c++) {
            int64_t at = (first + c) * g->unit, place = (at / 4 * LANES + lane) * 4 + at % 4;
            int16_t value = w[c * taps + tap];
            if (g->unit == 1)
                run[place] = (char)value;
            else
                memcpy(run + place, &value, sizeof value);
            sum += (uint32_t)(int32_t)value;
        }
    }
    sums[k] = (int32_t)sum;
}

static void pack_vector(void *argument, int64_t index, int thread)
{
    (void)thread;
    const packing *all = argument;
    const geometry *g = all->g;
    int64_t filters = g->depthwise ? g->k : g->k / g->groups, group = index / g->vectors, from = index % g->vectors;
    char *quads = all->to + sums_bytes(g) + index * quads_of_vector(g) * (int64_t)sizeof(int32_t);
    memset(quads, 0, (size_t)quads_of_vector(g) * sizeof(int32_t));
    for (int64_t lane = 0; lane < LANES && from * LANES + lane < filters; lane++)
        pack_filter(g, group * filters + from * LANES + lane, quads, lane, (int32_t *)(void *)all->to);
}

static void pack(const cpu_calculator *cpu, const geometry *g, char *to)
{
    packing all = {.g = g, .to = to};
    int64_t vectors = (g->depthwise ? 1 : g->groups) * g->vectors;
    cpu_parallel_exact(cpu, vectors, cpu_time_of_elements(8 * sdlf_tensor_count(&g->operation->in[1])), pack_vector,
                       &all);
}

int64_t quantized_conv2d_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    return packed_bytes(&g);
}

sdlf_status quantized_conv2d_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    pack(cpu_from(calculator), &g, operation->prepared.data);
    return SDLF_OK;
}

/* ---- scratch space ---- */

typedef struct room {
    int64_t packed, bias, scale, run, image, result, bytes; /* the offset of each; total size */
} room;

static int64_t take(room *r, int64_t size)
{
    int64_t at = r->bytes;
    r->bytes += cpu_round_up(size, 64);
    return at;
}

static room room_of(const geometry *g)
{
    room r = {0};
    r.packed = take(&r, sdlf_tensor_present(&g->operation->prepared) ? 0 : packed_bytes(g));
    r.bias = take(&r, (g->k + LANES) * (int64_t)sizeof(int32_t));
    r.scale = take(&r, (g->k + LANES) * (int64_t)sizeof(float));
    r.run = take(&r, g->runs * (int64_t)sizeof(int64_t));
    r.image = take(&r, g->in_place ? 0 : g->n * g->rows * g->columns * g->c * g->unit + SLACK);
    r.result = take(&r, g->y_nhwc ? 0 : sdlf_tensor_bytes(&g->operation->out[0]));
    return r;
}

int64_t quantized_conv2d_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    return room_of(&g).bytes;
}

/* ---- the image ---- */

typedef struct staging {
    const geometry *g;
    uint8_t *to;
} staging;

/* Converts `count` elements, from bytes `step` apart to elements `stride` apart. */
static void stage_run(const geometry *g, uint8_t *to, int64_t stride, const uint8_t *x, int64_t count)
{
    const uint8_t flip = g->from.flip;
    const bool is_signed = g->operation->in[0].dtype == SDLF_INT8;
    int16_t *wide = (int16_t *)(void *)to;
    if (g->unit == 1 && stride == 1 && flip == 0) {
        memcpy(to, x, (size_t)count);
    } else if (g->unit == 1 && stride == 1) {
        for (int64_t i = 0; i < count; i++) to[i] = x[i] ^ flip;
    } else if (g->unit == 1) {
        for (int64_t i = 0; i < count; i++) to[i * stride] = x[i] ^ flip;
    } else if (stride == 1 && is_signed) {
        for (int64_t i = 0; i < count; i++) wide[i] = (int8_t)x[i];
    } else if (stride == 1) {
        for (int64_t i = 0; i < count; i++) wide[i] = x[i];
    } else {
        for (int64_t i = 0; i < count; i++) wide[i * stride] = is_signed ? (int16_t)(int8_t)x[i] : (int16_t)x[i];
    }
}

static void stage_zeros(const geometry *g, uint8_t *to, int64_t count)
{
    if (g->unit == 1) memset(to, g->from.zero, (size_t)count);
    if (g->unit == 2)
        for (int64_t i = 0; i < count; i++) ((int16_t *)(void *)to)[i] = (int16_t)g->from.zero;
}

/* A row of the image, including its padding. */
static void stage_row(void *argument, int64_t index, int thread)
{
    (void)thread;
    const staging *all = argument;
    const geometry *g = all->g;
    int64_t n = index / g->rows, row = index % g->rows - g->window->padding_before[0];
    int64_t left = g->window->padding_before[1] * g->c, length = g->columns * g->c, inside = g->w * g->c;
    uint8_t *to = all->to + index * length * g->unit;
    if (row < 0 || row >= g->h) {
        stage_zeros(g, to, length);
        return;
    }
    const uint8_t *x = g->operation->in[0].data;
    stage_zeros(g, to, left);
    if (g->x_nhwc)
        stage_run(g, to + left * g->unit, 1, x + (n * g->h + row) * inside, inside);
    else
        for (int64_t c = 0; c < g->c; c++)
            stage_run(g, to + (left + c) * g->unit, g->c, x + ((n * g->c + c) * g->h + row) * g->w, g->w);
    stage_zeros(g, to + (left + inside) * g->unit, length - left - inside);
}

static const uint8_t *stage(const cpu_calculator *cpu, const geometry *g, uint8_t *to)
{
    if (g->in_place) return g->operation->in[0].data;
    staging all = {.g = g, .to = to};
    int64_t rows = g->n * g->rows, size = rows * g->columns * g->c * g->unit;
    memset(to + size, 0, SLACK);
    cpu_parallel_static_exact(cpu, rows, size / 16, stage_row, &all);
    return to;
}

/* ---- the convolution ---- */

typedef struct depthwise_work {
    const quantized_layer *layer;
    quantized_depthwise_function *row;
} depthwise_work;

static void depthwise_task(void *argument, int64_t index, int thread)
{
    (void)thread;
    const depthwise_work *all = argument;
    all->row(all->layer, index);
}

static void convolve(const cpu_calculator *cpu, const geometry *g, const quantized_layer *layer)
{
    depthwise_work all = {.layer = layer, .row = quantized_depthwise_cpu};
    if (!g->depthwise) {
        quantized_product_cpu(cpu, layer, g->unit == 1, g->n * g->p * g->q, g->length);
        return;
    }
#if SDLF_VECTOR_BYTES == 64
    if (g->unit == 1) all.row = quantized_depthwise_vnni_cpu;
#endif
    int64_t products = sdlf_tensor_count(&g->operation->out[0]) * sdlf_shape_span(g->operation->in[1].shape, 1, 4);
    cpu_parallel_static_exact(cpu, g->n * g->p, 4 * cpu_time_of_flops(products) / (g->unit == 1 ? 2 : 1),
                              depthwise_task, &all);
}

/* ---- conversion of outputs to row-major ---- */

static void turn_plane(void *argument, int64_t index, int thread)
{
    (void)thread;
    const staging *all = argument;
    const geometry *g = all->g;
    const sdlf_tensor *y = &g->operation->out[0];
    int64_t area = g->p * g->q, n = index / g->k, k = index % g->k;
    if (y->dtype == SDLF_FLOAT32 || y->dtype == SDLF_INT32) { /* copied as bits */
        const int32_t *from = (const int32_t *)(const void *)all->to + n * area * g->k + k;
        for (int64_t i = 0; i < area; i++) ((int32_t *)y->data)[index * area + i] = from[i * g->k];
    } else {
        const uint8_t *from = all->to + n * area * g->k + k;
        for (int64_t i = 0; i < area; i++) ((uint8_t *)y->data)[index * area + i] = from[i * g->k];
    }
}

static void set_runs(const geometry *g, int64_t *run)
{
    int64_t pixel = g->c * g->unit, s = g->joined ? 1 : g->window->size[1];
    for (int64_t i = 0; i < g->runs; i++)
        run[i] = i / s * g->window->dilation[0] * g->columns * pixel + i % s * g->window->dilation[1] * pixel;
}

/* Loads the zero point of x, which may be an operand. */
static void load_zero(geometry *g)
{
    const sdlf_tensor *zero = &g->operation->in[4];
    if (!sdlf_tensor_present(zero)) return;
    int x_zero = zero->dtype == SDLF_INT8 ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
    g->from.zero = x_zero + g->from.flip;
}

static void set_numbers(const geometry *g, int32_t *bias, float *scale, const int32_t *sums)
{
    const int32_t *given = sdlf_tensor_present(&g->operation->in[2]) ? g->operation->in[2].data : NULL;
    for (int64_t k = 0; k < g->k; k++)
        bias[k] = (int32_t)((given != NULL ? (uint32_t)given[k] : 0) - (uint32_t)g->from.zero * (uint32_t)sums[k]);
    memset(bias + g->k, 0, LANES * sizeof *bias);
    if (!sdlf_tensor_present(&g->operation->in[3])) return;
    memcpy(scale, g->operation->in[3].data, (size_t)g->k * sizeof *scale);
    memset(scale + g->k, 0, LANES * sizeof *scale);
}

static quantized_form form_of(sdlf_dtype dtype)
{
    return dtype == SDLF_INT32 ? QUANTIZED_SUMS : dtype == SDLF_FLOAT32 ? QUANTIZED_FLOATS : QUANTIZED_BYTES;
}

sdlf_status quantized_conv2d_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_quantized_conv2d_options *o = &operation->quantized_conv2d;
    geometry g = geometry_of(calculator, operation);
    if (sdlf_tensor_count(&operation->out[0]) == 0) return SDLF_OK;
    load_zero(&g);
    room r = room_of(&g);
    char *space = operation->workspace.data, *packed = space + r.packed;
    if (sdlf_tensor_present(&operation->prepared))
        packed = operation->prepared.data;
    else
        pack(cpu, &g, packed);
    int32_t *bias = (int32_t *)(void *)(space + r.bias);
    float *scale = (float *)(void *)(space + r.scale);
    int64_t *run = (int64_t *)(void *)(space + r.run), pixel = g.c * g.unit;
    set_numbers(&g, bias, scale, (const int32_t *)(const void *)packed);
    set_runs(&g, run);
    quantized_form form = form_of(operation->out[0].dtype);
    quantized_layer layer = {.image = stage(cpu, &g, (uint8_t *)space + r.image),
                             .image_step = g.rows * g.columns * pixel,
                             .row_step = o->window.stride[0] * g.columns * pixel,
                             .column_step = o->window.stride[1] * pixel,
                             .group_step = g.depthwise ? g.unit : g.length * g.unit,
                             .pixel_step = pixel,
                             .columns = o->window.dilation[1] == 1 ? o->window.size[1] : 0,
                             .stride = o->window.stride[1],
                             .run = run,
                             .runs = g.runs,
                             .quads = g.quads,
                             .weights = (const int32_t *)(const void *)(packed + sums_bytes(&g)),
                             .bias = bias,
                             .scale = scale,
                             .to = form == QUANTIZED_BYTES ? rounding_to(o->y_zero, o->low, o->high)
                                                           : (rounding){.low = o->low, .high = o->high},
                             .form = form,
                             .y = g.y_nhwc ? operation->out[0].data : space + r.result,
                             .p = g.p,
                             .q = g.q,
                             .k = g.k,
                             .groups = g.groups};
    convolve(cpu, &g, &layer);
    staging transposed = {.g = &g, .to = (uint8_t *)space + r.result};
    if (!g.y_nhwc)
        cpu_parallel_static_exact(cpu, g.n * g.k, cpu_time_of_elements(sdlf_tensor_count(&operation->out[0])),
                                  turn_plane, &transposed);
    return SDLF_OK;
}
