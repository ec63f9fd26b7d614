/* conv2d_backward_weights, channels last. See conv2d_last_backward.h and weights_last.h.
 *
 * For each tap of the window, dw[tap] (C,K) = x^T dy over the output pixels that it reaches inside the image: products of rows read where
 * they lie, with no patches in between. A task walks its share of the rows of outputs a few at a time, so that what all taps read of
 * x and dy stays in the second-level cache. 2 N K P Q C R S FLOPs; floor: x and dy moved once. */
#include "calculators/cpu/kernels/conv2d_last_backward.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/weights_last.h"

enum {
    LEAST_TASKS = 16,
    LEAST_VECTORS = 4,                              /* of a part */
    MOST_SUMS = (8 << 20) / sizeof(element),        /* of all shares together, unless one is larger */
    BLOCK_ELEMENTS = (256 << 10) / sizeof(element), /* x and dy of the rows that a task walks at a time */
    BIAS_CHANNELS = 4 * LANES,
    BIAS_PIXELS = 256,
};

weights_last weights_last_of_cpu(const convolution *v, int64_t units, int64_t each)
{
    weights_last all = {.vectors = cpu_divide_up(v->k, LANES)};
    all.sums_size = each * v->c * all.vectors * LANES;
    int64_t most = cpu_max(1, MOST_SUMS / cpu_max(1, all.sums_size * v->groups));
    all.parts = cpu_min(cpu_divide_up(all.vectors, LEAST_VECTORS), LEAST_TASKS);
    all.shares = cpu_max(1, cpu_min(cpu_min(most, LEAST_TASKS), units));
    if (all.shares * v->groups >= LEAST_TASKS) all.parts = 1;
    return all;
}

/* ---- by rows ---- */

static bool pads_filters(const convolution *v)
{
    return v->k % LANES != 0;
}

/* Rows of outputs that are walked at a time. */
static int64_t rows_at_once(const convolution *v)
{
    int64_t row = v->q * v->groups * v->k + v->stride[0] * v->w * v->groups * v->c;
    return cpu_max(1, cpu_min(v->p, BLOCK_ELEMENTS / cpu_max(1, row)));
}

static weights_last rows_of(const convolution *v)
{
    weights_last all = weights_last_of_cpu(v, v->n * v->p, v->r_s);
    if (pads_filters(v)) all.scratch_size = rows_at_once(v) * v->q * all.vectors * LANES;
    return all;
}

/* The part's filters of `rows` rows of dy, with zeros behind the last. */
static void pad_filters(const weights_last *all, const element *dy, element *to, int64_t rows, int64_t width,
                        int64_t count)
{
    const convolution *v = &all->backward->v;
    for (int64_t i = 0; i < rows * v->q; i++) {
        memcpy(to + i * width, dy + i * v->groups * v->k, (size_t)count * sizeof *to);
        memset(to + i * width + count, 0, (size_t)(width - count) * sizeof *to);
    }
}

/* All taps of outputs [p, p + rows) of an image; dy begins with them. */
static void add_rows(const weights_last *all, const element *x, const element *dy, int64_t dy_step, int64_t p,
                     int64_t rows, element *sums, int64_t width)
{
    const convolution *v = &all->backward->v;
    int64_t filters = all->vectors * LANES, pixel = v->groups * v->c;
    bool follows = v->r_s == 1 && v->stride[0] == 1 && v->stride[1] == 1 && v->before[0] == 0 && v->before[1] == 0 &&
                   v->p == v->h && v->q == v->w;
    if (follows) {
        weights_last_add(sums, filters, x + p * v->w * pixel, pixel, dy, dy_step, v->c, width, rows * v->q);
        return;
    }
    for (int64_t tap = 0; tap < v->r_s; tap++, sums += v->c * filters) {
        int64_t r = tap / v->s, s = tap % v->s, top, bottom, left, right;
        convolution_inside(v, 0, r, v->p, v->h, &top, &bottom);
        convolution_inside(v, 1, s, v->q, v->w, &left, &right);
        for (int64_t row = cpu_max(p, top); row < cpu_min(p + rows, bottom); row++) {
            int64_t h = row * v->stride[0] + r * v->dilation[0] - v->before[0];
            int64_t w = left * v->stride[1] + s * v->dilation[1] - v->before[1];
            weights_last_add(sums, filters, x + (h * v->w + w) * pixel, v->stride[1] * pixel,
                             dy + ((row - p) * v->q + left) * dy_step, dy_step, v->c, width, right - left);
        }
    }
}

static void add_share(void *context, int64_t index, int thread)
{
    const weights_last *all = context;
    const convolution *v = &all->backward->v;
    int64_t share = index % all->shares, part = index / all->shares % all->parts,
            group = index / all->shares / all->parts;
    int64_t start = weights_last_start(all, part) * LANES, width = weights_last_start(all, part + 1) * LANES - start;
    int64_t last = (share + 1) * v->n * v->p / all->shares, count = cpu_min(width, v->k - start);
    element *sums = all->sums + (group * all->shares + share) * all->sums_size + start;
    for (int64_t i = 0; i < v->r_s * v->c; i++)
        memset(sums + i * all->vectors * LANES, 0, (size_t)width * sizeof *sums);
    for (int64_t first = share * v->n * v->p / all->shares, rows; first < last; first += rows) {
        int64_t n = first / v->p, p = first % v->p, dy_step = v->groups * v->k;
        rows = cpu_min(cpu_min(rows_at_once(v), v->p - p), last - first);
        const element *dy = all->backward->dy + first * v->q * dy_step + group * v->k + start;
        if (pads_filters(v)) {
            element *padded = all->scratch + thread * all->scratch_size;
            pad_filters(all, dy, padded, rows, width, count);
            dy = padded;
            dy_step = width;
        }
        add_rows(all, all->backward->x + n * v->h * v->w * v->groups * v->c + group * v->c, dy, dy_step, p, rows, sums,
                 width);
    }
}

/* dw of one vector of filters of a group, from all shares. */
static void write_filters(void *context, int64_t index, int thread)
{
    const weights_last *all = context;
    const convolution *v = &all->backward->v;
    int64_t group = index / all->vectors, k = index % all->vectors * LANES, filters = all->vectors * LANES;
    int64_t count = cpu_min(LANES, v->k - k);
    const element *sums = all->sums + group * all->shares * all->sums_size + k;
    element *dw = all->backward->dw + (group * v->k + k) * v->taps;
    (void)thread;
    for (int64_t i = 0; i < v->r_s * v->c; i++) {
        int64_t to = i % v->c * v->r_s + i / v->c;
        element lanes[LANES];
        vector sum = load(sums + i * filters);
        for (int64_t share = 1; share < all->shares; share++) sum += load(sums + share * all->sums_size + i * filters);
        store(lanes, sum);
        for (int64_t j = 0; j < count; j++) dw[j * v->taps + to] = lanes[j];
    }
}

/* ---- which way ---- */

static weights_last weights_of(const convolution *v)
{
    if (depthwise_last_takes_cpu(v)) return depthwise_weights_of_cpu(v);
    return winograd_weights_takes_cpu(v) ? winograd_weights_of_cpu(v) : rows_of(v);
}

bool conv2d_last_weights_takes_cpu(const convolution *v)
{
    return !depthwise_takes(v) || depthwise_last_takes_cpu(v);
}

im2col_space conv2d_last_weights_space_cpu(const convolution *v)
{
    weights_last all = weights_of(v);
    int64_t groups = depthwise_last_takes_cpu(v) ? 1 : v->groups;
    return (im2col_space){.each = all.scratch_size, .shared = groups * all.shares * all.sums_size};
}

void conv2d_last_weights_cpu(const cpu_calculator *cpu, const convolution_backward *backward, element *scratch)
{
    const convolution *v = &backward->v;
    bool depthwise = depthwise_last_takes_cpu(v), winograd = !depthwise && winograd_weights_takes_cpu(v);
    weights_last all = weights_of(v);
    int64_t groups = depthwise ? 1 : v->groups;
    all.backward = backward;
    all.sums = scratch;
    all.scratch = scratch + groups * all.shares * all.sums_size;
    cpu_parallel(cpu, groups * all.parts * all.shares, convolution_time(v),
                 depthwise  ? depthwise_weights_share_cpu
                 : winograd ? winograd_weights_share_cpu
                            : add_share,
                 &all);
    cpu_parallel(cpu, groups * all.vectors, cpu_time_of_elements(2 * groups * all.shares * all.sums_size),
                 depthwise  ? depthwise_weights_write_cpu
                 : winograd ? winograd_weights_write_cpu
                            : write_filters,
                 &all);
}

/* ---- the bias ---- */

typedef struct bias_context {
    const convolution *v;
    const element *dy;
    element *db;
} bias_context;

/* A task takes some filters; the sums of BIAS_PIXELS pixels are added up in double. */
static void sum_bias(void *context, int64_t index, int thread)
{
    const bias_context *all = context;
    int64_t filters = all->v->groups * all->v->k, pixels = all->v->n * all->v->p_q, first = index * BIAS_CHANNELS;
    int64_t count = cpu_min(BIAS_CHANNELS, filters - first);
    double sums[BIAS_CHANNELS] = {0};
    (void)thread;
    for (int64_t i = 0; i < pixels; i += BIAS_PIXELS) {
        element part[BIAS_CHANNELS] = {0};
        for (int64_t j = i; j < cpu_min(pixels, i + BIAS_PIXELS); j++) {
            const element *dy = all->dy + j * filters + first;
            for (int64_t k = 0; k < count; k++) part[k] += dy[k];
        }
        for (int64_t k = 0; k < count; k++) sums[k] += (double)part[k];
    }
    for (int64_t k = 0; k < count; k++) all->db[first + k] = (element)sums[k];
}

void conv2d_last_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db)
{
    bias_context all = {.v = v, .dy = dy, .db = db};
    int64_t filters = v->groups * v->k;
    cpu_parallel(cpu, cpu_divide_up(filters, BIAS_CHANNELS), cpu_time_of_elements(v->n * v->p_q * filters), sum_bias,
                 &all);
}
