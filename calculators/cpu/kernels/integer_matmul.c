/* SPDX-License-Identifier: MIT */
/* integer_matmul. Contract: <sdlf/operations/quantization.h>; the microkernels: quantized_tiles.h, where a row of a is a pixel.
 *
 *     sum of (a - a_zero) (b - b_zero) = sum of a b - a_zero (sum of b) - b_zero (sum of a - k a_zero)
 *
 * The sum of each column of b is computed when b is packed, that of a row of a only if it is needed. If a has a single zero
 * point, the accumulators start with the second term; other terms are subtracted from a tile while it is in registers. With
 * VNNI a is read as uint8 and b as int8: for the other type the upper bit is flipped and the zero point moved by 128; otherwise
 * both are widened to int16. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized_tiles.h"

typedef struct geometry {
    const sdlf_operation *operation;
    int64_t matrices, m, k, n;
    int64_t packed; /* matrices of b: 1 if all share one */
    int64_t quads;  /* of a row */
    bool vnni;      /* elements are bytes; else int16 */
    uint8_t a_flip, b_flip;
    bool in_place; /* a is stored as the loops read it */
} geometry;

static geometry geometry_of(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1];
    int rank = a->shape.rank;
    geometry g = {.operation = operation, .vnni = quantized_has_vnni(calculator), .packed = 1};
    g.m = a->shape.dim[rank - 2], g.k = a->shape.dim[rank - 1], g.n = b->shape.dim[rank - 1];
    g.matrices = sdlf_shape_span(a->shape, 0, rank - 2);
    for (int i = 0; i < rank - 2; i++)
        if (b->shape.dim[i] > 1 && b->stride[i] != 0) g.packed = g.matrices;
    g.quads = cpu_divide_up(g.vnni ? g.k : 2 * g.k, 4);
    g.a_flip = g.vnni && a->dtype == SDLF_INT8 ? 128 : 0;
    g.b_flip = g.vnni && b->dtype == SDLF_UINT8 ? 128 : 0;
    g.in_place = g.vnni && g.a_flip == 0 && g.k % 4 == 0;
    return g;
}

/* The offset of matrix i of a batch, in elements. */
static int64_t matrix_offset(const sdlf_tensor *x, int64_t i)
{
    int64_t offset = 0;
    for (int axis = x->shape.rank - 3; axis >= 0; axis--) {
        offset += i % x->shape.dim[axis] * x->stride[axis];
        i /= x->shape.dim[axis];
    }
    return offset;
}

/* ---- b: for each column the sum of its packed elements, then the quads ---- */

static int64_t sums_bytes(const geometry *g)
{
    return cpu_round_up(g->n * (int64_t)sizeof(int32_t), 64);
}

static int64_t matrix_bytes(const geometry *g)
{
    return sums_bytes(g) + cpu_divide_up(g->n, LANES) * g->quads * LANES * (int64_t)sizeof(int32_t);
}

typedef struct packing {
    const geometry *g;
    const uint8_t *b;
    char *to;
} packing;

/* Packs a quad of each column: `rows` rows of b from there on, as 4 bytes or 2 int16; missing rows are 0. */
static inline void pack_quad(const geometry *g, const uint8_t *b, int64_t rows, int64_t count, uint32_t *to,
                             uint32_t *sum)
{
    uint8_t byte[4][LANES];
    const uint8_t flip = g->b_flip;
    memset(byte, flip, sizeof byte);
    for (int64_t r = 0; r < rows; r++) memcpy(byte[r], b + r * g->n, (size_t)count);
    if (g->vnni) {
        for (int lane = 0; lane < LANES; lane++) {
            uint8_t w[4];
            for (int r = 0; r < 4; r++) w[r] = byte[r][lane] ^ flip;
            to[lane] = (uint32_t)w[0] | (uint32_t)w[1] << 8 | (uint32_t)w[2] << 16 | (uint32_t)w[3] << 24;
            sum[lane] += (uint32_t)((int8_t)w[0] + (int8_t)w[1] + (int8_t)w[2] + (int8_t)w[3]);
        }
        return;
    }
    const bool is_signed = g->operation->in[1].dtype == SDLF_INT8;
    for (int lane = 0; lane < LANES; lane++) {
        int low = is_signed ? (int8_t)byte[0][lane] : byte[0][lane];
        int high = is_signed ? (int8_t)byte[1][lane] : byte[1][lane];
        to[lane] = (uint32_t)(uint16_t)low | (uint32_t)high << 16;
        sum[lane] += (uint32_t)(low + high);
    }
}

/* Packs a vector of columns. */
static void pack_columns(void *argument, int64_t index, int thread)
{
    (void)thread;
    const packing *all = argument;
    const geometry *g = all->g;
    int64_t first = index * LANES, count = cpu_min(LANES, g->n - first), each = g->vnni ? 4 : 2;
    uint32_t *to = (uint32_t *)(void *)(all->to + sums_bytes(g)) + index * g->quads * LANES, sum[LANES] = {0};
    for (int64_t quad = 0; quad < g->quads; quad++) {
        int64_t row = quad * each;
        pack_quad(g, all->b + row * g->n + first, cpu_min(each, g->k - row), count, to + quad * LANES, sum);
    }
    memcpy(all->to + first * (int64_t)sizeof *sum, sum, (size_t)count * sizeof *sum);
}

static void pack(const cpu_calculator *cpu, const geometry *g, int64_t matrix, char *to)
{
    const sdlf_tensor *b = &g->operation->in[1];
    packing all = {.g = g, .b = (const uint8_t *)b->data + matrix_offset(b, matrix), .to = to};
    cpu_parallel_exact(cpu, cpu_divide_up(g->n, LANES), g->k * g->n, pack_columns, &all);
}

int64_t integer_matmul_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    return g.packed * matrix_bytes(&g);
}

sdlf_status integer_matmul_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    for (int64_t i = 0; i < g.packed; i++)
        pack(cpu_from(calculator), &g, i, (char *)operation->prepared.data + i * matrix_bytes(&g));
    return SDLF_OK;
}

/* ---- scratch space ---- */

typedef struct room {
    int64_t packed, bias, a_zero, b_zero, scale, shift, rest, image, bytes; /* the offset of each; total size */
} room;

static int64_t take(room *r, int64_t size)
{
    int64_t at = r->bytes;
    r->bytes += cpu_round_up(size, 64);
    return at;
}

static room room_of(const geometry *g)
{
    const int64_t columns = (g->n + LANES) * (int64_t)sizeof(int32_t), rows = g->m * (int64_t)sizeof(int32_t);
    room r = {0};
    r.packed = take(&r, sdlf_tensor_present(&g->operation->prepared) ? 0 : matrix_bytes(g));
    r.bias = take(&r, columns);
    r.b_zero = take(&r, columns);
    r.scale = take(&r, columns);
    r.shift = take(&r, columns);
    r.a_zero = take(&r, rows);
    r.rest = take(&r, rows);
    r.image = take(&r, g->in_place ? 0 : g->m * g->quads * 4);
    return r;
}

int64_t integer_matmul_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    return room_of(&g).bytes;
}

/* ---- per-row and per-column operands ---- */

/* Loads zero points, relative to the elements as they are read. */
static void load_zeros(const sdlf_tensor *from, int otherwise, int moved, int32_t *to, int64_t count)
{
    bool present = sdlf_tensor_present(from), one = !present || from->shape.dim[0] == 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = one ? 0 : i;
        to[i] = moved + (present ? 0 : otherwise);
        if (present)
            to[i] += from->dtype == SDLF_INT8 ? ((const int8_t *)from->data)[at] : ((const uint8_t *)from->data)[at];
    }
}

static void load_floats(const sdlf_tensor *from, float otherwise, float *to, int64_t count)
{
    bool present = sdlf_tensor_present(from), one = !present || from->shape.dim[0] == 1;
    for (int64_t i = 0; i < count; i++) to[i] = present ? ((const float *)from->data)[one ? 0 : i] : otherwise;
    memset(to + count, 0, LANES * sizeof *to);
}

static bool are_all(const int32_t *x, int64_t count, int32_t value)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] != value) return false;
    return true;
}

/* ---- rows of a ---- */

typedef struct matrix {
    const geometry *g;
    const uint8_t *a;
    uint8_t *image; /* where rows are staged as quads */
    const uint8_t *rows;
    const int32_t *a_zero;
    int32_t *rest; /* for each row, sum of a - k a_zero; NULL: not needed */
} matrix;

static void stage_row(const matrix *all, int64_t row)
{
    const geometry *g = all->g;
    const uint8_t *from = all->a + row * g->k;
    uint8_t *to = all->image + row * g->quads * 4;
    int16_t *wide = (int16_t *)(void *)to;
    const bool is_signed = g->operation->in[0].dtype == SDLF_INT8;
    memset(to + (g->quads - 1) * 4, 0, 4);
    if (g->vnni)
        for (int64_t i = 0; i < g->k; i++) to[i] = from[i] ^ g->a_flip;
    else if (is_signed)
        for (int64_t i = 0; i < g->k; i++) wide[i] = (int8_t)from[i];
    else
        for (int64_t i = 0; i < g->k; i++) wide[i] = from[i];
}

static uint32_t sum_of_row(const geometry *g, const uint8_t *row)
{
    const int16_t *wide = (const int16_t *)(const void *)row;
    uint32_t sum = 0;
    if (g->vnni)
        for (int64_t i = 0; i < g->k; i++) sum += row[i];
    else
        for (int64_t i = 0; i < g->k; i++) sum += (uint32_t)(int32_t)wide[i];
    return sum;
}

static void read_row(void *argument, int64_t row, int thread)
{
    (void)thread;
    const matrix *all = argument;
    const geometry *g = all->g;
    if (!g->in_place) stage_row(all, row);
    if (all->rest == NULL) return;
    uint32_t sum = sum_of_row(g, all->rows + row * g->quads * 4);
    all->rest[row] = (int32_t)(sum - (uint32_t)g->k * (uint32_t)all->a_zero[row]);
}

/* What all matrices of the batch share. */
static quantized_layer layer_of(const geometry *g, const room *r, char *space)
{
    static const int64_t run = 0;
    const sdlf_operation *operation = g->operation;
    const sdlf_integer_matmul_options *o = &operation->integer_matmul;
    const sdlf_dtype dtype = operation->out[0].dtype;
    int32_t *bias = (int32_t *)(void *)(space + r->bias), *a_zero = (int32_t *)(void *)(space + r->a_zero),
            *b_zero = (int32_t *)(void *)(space + r->b_zero);
    float *scale = (float *)(void *)(space + r->scale), *shift = (float *)(void *)(space + r->shift);
    load_zeros(&operation->in[2], o->a_zero, g->a_flip, a_zero, g->m);
    load_zeros(&operation->in[3], o->b_zero, -(int)g->b_flip, b_zero, g->n);
    memset(bias, 0, (size_t)(g->n + LANES) * sizeof *bias);
    memset(b_zero + g->n, 0, LANES * sizeof *b_zero);
    quantized_layer layer = {
        .column_step = g->quads * 4, .run = &run, .runs = 1, .quads = g->quads, .bias = bias, .scale = scale};
    layer.form = dtype == SDLF_INT32 ? QUANTIZED_SUMS : dtype == SDLF_FLOAT32 ? QUANTIZED_FLOATS : QUANTIZED_BYTES;
    layer.p = 1, layer.q = g->m, layer.k = g->n, layer.groups = 1;
    if (!are_all(b_zero, g->n, 0)) layer.less_rows[0] = (int32_t *)(void *)(space + r->rest);
    if (!are_all(a_zero, g->m, a_zero[0])) layer.less_rows[1] = a_zero;
    layer.less_columns[0] = b_zero;
    if (layer.form == QUANTIZED_SUMS) return layer;
    layer.to = rounding_to(layer.form == QUANTIZED_BYTES ? o->y_zero : 0, o->low, o->high);
    load_floats(&operation->in[4], o->scale, scale, g->n);
    if (!sdlf_tensor_present(&operation->in[5])) return layer;
    load_floats(&operation->in[5], 0, shift, g->n);
    layer.shift = shift;
    return layer;
}

/* One matrix of the batch, whose packed b is in `packed`. */
static void multiply(const cpu_calculator *cpu, quantized_layer *layer, matrix *all, const char *packed)
{
    const geometry *g = all->g;
    const int32_t *sum = (const int32_t *)(const void *)packed;
    int32_t *bias = (int32_t *)layer->bias;
    const uint32_t a_zero = layer->less_rows[1] == NULL ? (uint32_t)all->a_zero[0] : 0;
    for (int64_t j = 0; j < g->n; j++) bias[j] = (int32_t)(0 - a_zero * (uint32_t)sum[j]);
    all->rows = g->in_place ? all->a : all->image;
    if (!g->in_place || all->rest != NULL) cpu_parallel_static_exact(cpu, g->m, g->m * g->k / 16, read_row, all);
    layer->image = all->rows;
    layer->weights = (const int32_t *)(const void *)(packed + sums_bytes(g));
    layer->less_columns[1] = sum;
    quantized_product_cpu(cpu, layer, g->vnni, g->m, g->k);
}

sdlf_status integer_matmul_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_tensor *a = &operation->in[0], *y = &operation->out[0];
    geometry g = geometry_of(calculator, operation);
    if (sdlf_tensor_count(y) == 0) return SDLF_OK;
    room r = room_of(&g);
    char *space = operation->workspace.data, *packed = space + r.packed;
    const bool ready = sdlf_tensor_present(&operation->prepared);
    quantized_layer layer = layer_of(&g, &r, space);
    for (int64_t i = 0; i < g.matrices; i++) {
        if (!ready && i < g.packed) pack(cpu, &g, i, packed);
        if (ready) packed = (char *)operation->prepared.data + (g.packed > 1 ? i : 0) * matrix_bytes(&g);
        matrix one = {.g = &g,
                      .a = (const uint8_t *)a->data + matrix_offset(a, i),
                      .image = (uint8_t *)space + r.image,
                      .a_zero = (const int32_t *)(void *)(space + r.a_zero),
                      .rest = (int32_t *)layer.less_rows[0]};
        layer.y = (char *)y->data + i * g.m * g.n * sdlf_dtype_size(y->dtype);
        multiply(cpu, &layer, &one, packed);
    }
    return SDLF_OK;
}
