/* SPDX-License-Identifier: MIT */
/* integer_matmul. Contract: <sdlf/operations/kinds.h>; the inner loops: quantized_tiles.h, to which a row of a is a pixel.
 *
 *     sum of (a - a_zero) (b - b_zero) = sum of a b - a_zero (sum of b) - b_zero (sum of a - k a_zero)
 *
 * The sum of a column of b is made with the packed b. Where a has one zero point and b's are 0, the second term stands in the sums from
 * the start; else a second pass subtracts what is left. With VNNI a is read as uint8 and b as int8: those of the other type have
 * their upper bit flipped, and their zero point moved by 128; else both are widened to int16. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized_tiles.h"

typedef struct geometry {
    const sdlf_operation *operation;
    int64_t matrices, m, k, n;
    int64_t packed; /* matrices of b: 1 where it is the same for all */
    int64_t quads;  /* of a row */
    bool vnni;      /* elements are bytes; else int16 */
    uint8_t a_flip, b_flip;
    bool in_place; /* a lies as the loops read it */
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

/* Where matrix number i of a batch begins, in elements. */
static int64_t matrix_offset(const sdlf_tensor *x, int64_t i)
{
    int64_t offset = 0;
    for (int axis = x->shape.rank - 3; axis >= 0; axis--) {
        offset += i % x->shape.dim[axis] * x->stride[axis];
        i /= x->shape.dim[axis];
    }
    return offset;
}

/* ---- b: for each column the sum of its elements as they are packed, then the quads ---- */

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

/* A quad of each column: `rows` rows of b from there on, of 4 bytes or 2 int16; what is missing is 0. */
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

/* A vector of columns. */
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
    int64_t packed, bias, a_zero, b_zero, image, bytes; /* where each begins; all of it */
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
    r.packed = take(&r, sdlf_tensor_present(&g->operation->prepared) ? 0 : matrix_bytes(g));
    r.bias = take(&r, (g->n + LANES) * (int64_t)sizeof(int32_t));
    r.a_zero = take(&r, g->m * (int64_t)sizeof(int32_t));
    r.b_zero = take(&r, g->n * (int64_t)sizeof(int32_t));
    r.image = take(&r, g->in_place ? 0 : g->m * g->quads * 4);
    return r;
}

int64_t integer_matmul_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    geometry g = geometry_of(calculator, operation);
    return room_of(&g).bytes;
}

/* ---- zero points, of elements as they are read ---- */

static void load_zeros(const sdlf_tensor *from, int moved, int32_t *to, int64_t count)
{
    bool present = sdlf_tensor_present(from), one = !present || from->shape.dim[0] == 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = one ? 0 : i;
        to[i] = moved;
        if (present)
            to[i] += from->dtype == SDLF_INT8 ? ((const int8_t *)from->data)[at] : ((const uint8_t *)from->data)[at];
    }
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
    uint8_t *image; /* where they are brought, of quads */
    const uint8_t *rows;
    const int32_t *a_zero, *b_zero, *sum; /* sum: of each column of b */
    int32_t *y;
} matrix;

static void stage_row(void *argument, int64_t row, int thread)
{
    (void)thread;
    const matrix *all = argument;
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

static int32_t sum_of_row(const geometry *g, const uint8_t *row)
{
    const int16_t *wide = (const int16_t *)(const void *)row;
    uint32_t sum = 0;
    if (g->vnni)
        for (int64_t i = 0; i < g->k; i++) sum += row[i];
    else
        for (int64_t i = 0; i < g->k; i++) sum += (uint32_t)(int32_t)wide[i];
    return (int32_t)sum;
}

/* Row i of y, less what the zero points make. */
static void correct_row(void *argument, int64_t i, int thread)
{
    (void)thread;
    const matrix *all = argument;
    const geometry *g = all->g;
    const uint32_t a_zero = (uint32_t)all->a_zero[i];
    const uint32_t rest = (uint32_t)sum_of_row(g, all->rows + i * g->quads * 4) - (uint32_t)g->k * a_zero;
    uint32_t *y = (uint32_t *)all->y + i * g->n;
    const uint32_t *sum = (const uint32_t *)all->sum, *b_zero = (const uint32_t *)all->b_zero;
    for (int64_t j = 0; j < g->n; j++) y[j] -= a_zero * sum[j] + b_zero[j] * rest;
}

/* One matrix of the batch; `packed` is its b. */
static void multiply(const cpu_calculator *cpu, matrix *all, int32_t *bias, const char *packed)
{
    const geometry *g = all->g;
    const int64_t run = 0;
    const bool at_once = are_all(all->a_zero, g->m, all->a_zero[0]) && are_all(all->b_zero, g->n, 0);
    all->sum = (const int32_t *)(const void *)packed;
    for (int64_t j = 0; j < g->n; j++)
        bias[j] = at_once ? (int32_t)(0 - (uint32_t)all->a_zero[0] * (uint32_t)all->sum[j]) : 0;
    all->rows = g->in_place ? all->a : all->image;
    if (!g->in_place) cpu_parallel_near_exact(cpu, g->m, g->m * g->k / 16, stage_row, all);
    quantized_layer layer = {.image = all->rows,
                             .column_step = g->quads * 4,
                             .run = &run,
                             .runs = 1,
                             .quads = g->quads,
                             .weights = (const int32_t *)(const void *)(packed + sums_bytes(g)),
                             .bias = bias,
                             .form = QUANTIZED_SUMS,
                             .y = all->y,
                             .p = 1,
                             .q = g->m,
                             .k = g->n,
                             .groups = 1};
    quantized_product_cpu(cpu, &layer, g->vnni, g->m, g->k);
    if (!at_once) cpu_parallel_near_exact(cpu, g->m, cpu_time_of_elements(g->m * (g->n + g->k)), correct_row, all);
}

sdlf_status integer_matmul_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_tensor *a = &operation->in[0];
    geometry g = geometry_of(calculator, operation);
    if (sdlf_tensor_count(&operation->out[0]) == 0) return SDLF_OK;
    if (g.k == 0) {
        memset(operation->out[0].data, 0, (size_t)sdlf_tensor_bytes(&operation->out[0]));
        return SDLF_OK;
    }
    room r = room_of(&g);
    char *space = operation->workspace.data, *packed = space + r.packed;
    const bool ready = sdlf_tensor_present(&operation->prepared);
    int32_t *bias = (int32_t *)(void *)(space + r.bias), *a_zero = (int32_t *)(void *)(space + r.a_zero),
            *b_zero = (int32_t *)(void *)(space + r.b_zero);
    load_zeros(&operation->in[2], g.a_flip, a_zero, g.m);
    load_zeros(&operation->in[3], -(int)g.b_flip, b_zero, g.n);
    memset(bias + g.n, 0, LANES * sizeof *bias);
    for (int64_t i = 0; i < g.matrices; i++) {
        if (!ready && i < g.packed) pack(cpu, &g, i, packed);
        if (ready) packed = (char *)operation->prepared.data + (g.packed > 1 ? i : 0) * matrix_bytes(&g);
        matrix one = {.g = &g,
                      .a = (const uint8_t *)a->data + matrix_offset(a, i),
                      .image = (uint8_t *)space + r.image,
                      .a_zero = a_zero,
                      .b_zero = b_zero,
                      .y = (int32_t *)operation->out[0].data + i * g.m * g.n};
        multiply(cpu, &one, bias, packed);
    }
    return SDLF_OK;
}
