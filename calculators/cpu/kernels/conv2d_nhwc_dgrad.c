/* SPDX-License-Identifier: MIT */
/* conv2d_backward_input, NHWC, as convolutions of dy. See conv2d_nhwc_backward.h.
 *
 * With stride 1 the input gradient is a convolution of dy with flipped filters, where the channels of x act as filters. With stride
 * t the pixels of dx whose indices are congruent modulo t are reached by the same taps: each such phase is a stride-1 convolution
 * of dy with these taps. So the forward kernels (implicit GEMM, Winograd, depthwise) compute it, without multiplications by zero. A
 * phase's pixels are computed contiguously and then scattered to dx; a single phase writes dx directly. */
#include "calculators/cpu/kernels/conv2d_nhwc.h"
#include "calculators/cpu/kernels/conv2d_nhwc_backward.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/grouped.h"
#include "calculators/cpu/kernels/winograd.h"

enum {
    MOST_PHASES = 16,     /* more phases are small ones: im2col does as well */
    FLIPPED_CHANNELS = 16 /* of a filter-flipping task: w is read in runs of that many */
};

/* Along one axis: dx[first + i step], i < count, reads `taps` values of dy from i - before; tap m: w[first_tap - m tap_step]. */
typedef struct phase_axis {
    int64_t first, step, count, taps, before, first_tap, tap_step;
} phase_axis;

typedef struct phase {
    phase_axis axis[2];
    convolution v; /* of dy */
} phase;

static phase_axis axis_of(const convolution *v, int axis, int64_t first)
{
    int64_t size = axis == 0 ? v->h : v->w, window = axis == 0 ? v->r : v->s, stride = v->stride[axis];
    int64_t least = (first + v->before[axis]) % stride; /* the first tap that reaches these pixels */
    phase_axis a = {.first = first, .step = stride, .count = cpu_divide_up(size - first, stride), .tap_step = stride};
    a.taps = least < window ? cpu_divide_up(window - least, stride) : 0;
    a.first_tap = least + (a.taps - 1) * stride;
    a.before = (a.taps - 1) * v->dilation[axis] - (first + v->before[axis] - least) / stride;
    return a;
}

static phase phase_of(const convolution *v, int64_t index)
{
    phase part = {.axis = {axis_of(v, 0, index / v->stride[1]), axis_of(v, 1, index % v->stride[1])}};
    const phase_axis *a = part.axis;
    part.v = (convolution){.n = v->n,
                           .groups = v->groups,
                           .c = v->k,
                           .h = v->p,
                           .w = v->q,
                           .k = v->c,
                           .r = a[0].taps,
                           .s = a[1].taps,
                           .p = a[0].count,
                           .q = a[1].count,
                           .r_s = a[0].taps * a[1].taps,
                           .p_q = a[0].count * a[1].count,
                           .taps = v->k * a[0].taps * a[1].taps,
                           .stride = {1, 1},
                           .dilation = {v->dilation[0], v->dilation[1]},
                           .before = {a[0].before, a[1].before}};
    return part;
}

/* The number of phases; phases without pixels are empty. */
static int64_t phases_of(const convolution *v)
{
    return v->stride[0] * v->stride[1];
}

static bool is_empty(const phase *part)
{
    return part->axis[0].count <= 0 || part->axis[1].count <= 0;
}

bool conv2d_nhwc_input_takes_cpu(const convolution *v)
{
    if (phases_of(v) > MOST_PHASES || (depthwise_takes(v) && !depthwise_nhwc_takes_cpu(v))) return false;
    for (int axis = 0; axis < 2; axis++) {
        if (v->stride[axis] > 1 && v->dilation[axis] > 1) return false;
    }
    for (int64_t i = 0; i < phases_of(v); i++) {
        phase part = phase_of(v, i);
        if (!is_empty(&part) && part.v.r_s > 0 && !conv2d_nhwc_takes_cpu(&part.v)) return false;
    }
    return true;
}

typedef struct context {
    const convolution_backward *backward;
    const element *residual;
    const phase *part;
    const element *sums; /* the phase's pixels; NULL: all 0 */
    element *flipped;
} context;

/* Scratch space: the flipped filters, a phase's pixels, and that of its convolution. */
static int64_t flipped_size(const convolution *v)
{
    return cpu_round_up(v->groups * v->k * v->taps, LANES);
}

static int64_t pixels_size(const convolution *v)
{
    if (phases_of(v) == 1) return 0;
    phase first = phase_of(v, 0); /* the largest */
    return cpu_round_up(v->n * first.v.p_q * v->groups * v->c, LANES);
}

static bool is_nothing(const phase *part)
{
    return is_empty(part) || part->v.r_s == 0;
}

im2col_space conv2d_nhwc_input_space_cpu(const convolution *v, bool prepared)
{
    im2col_space most = {0};
    for (int64_t i = 0; i < phases_of(v); i++) {
        phase part = phase_of(v, i);
        if (is_nothing(&part)) continue;
        im2col_space space = conv2d_nhwc_automatic_space_cpu(&part.v, prepared);
        most.each = cpu_max(most.each, space.each);
        most.shared = cpu_max(most.shared, space.shared);
    }
    most.shared += (prepared ? 0 : flipped_size(v)) + pixels_size(v);
    return most;
}

/* Elements of a phase's prepacked weights. */
static int64_t packed_size(const phase *part)
{
    return is_nothing(part) ? 0 : cpu_round_up(conv2d_nhwc_automatic_size_cpu(&part->v), LANES);
}

/* The size for all phases, and space for the flipped filters. */
int64_t conv2d_nhwc_input_packed_size_cpu(const convolution *v)
{
    int64_t size = flipped_size(v);
    for (int64_t i = 0; i < phases_of(v); i++) {
        phase part = phase_of(v, i);
        size += packed_size(&part);
    }
    return size;
}

static int64_t flipping_tasks(const convolution *v)
{
    return cpu_divide_up(v->c, FLIPPED_CHANNELS);
}

/* w (G K,C,R,S) as filters of the phase's convolution: flipped (G C,K,taps). A task handles some channels of a group. */
static void flip_filters(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution *v = &all->backward->v;
    const phase_axis *a = all->part->axis;
    int64_t group = index / flipping_tasks(v), first = index % flipping_tasks(v) * FLIPPED_CHANNELS;
    int64_t last = cpu_min(first + FLIPPED_CHANNELS, v->c), taps = a[0].taps * a[1].taps;
    (void)thread;
    for (int64_t k = 0; k < v->k; k++) {
        const element *from = all->backward->w + (group * v->k + k) * v->taps;
        for (int64_t c = first; c < last; c++) {
            element *to = all->flipped + ((group * v->c + c) * v->k + k) * taps;
            for (int64_t r = 0; r < a[0].taps; r++) {
                const element *row = from + c * v->r_s + (a[0].first_tap - r * a[0].tap_step) * v->s;
                for (int64_t s = 0; s < a[1].taps; s++) *to++ = row[a[1].first_tap - s * a[1].tap_step];
            }
        }
    }
}

/* Scatters a row of a phase's pixels to dx. */
static void spread_row(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution *v = &all->backward->v;
    const phase_axis *a = all->part->axis;
    int64_t n = index / a[0].count, h = a[0].first + index % a[0].count * a[0].step, channels = v->groups * v->c;
    (void)thread;
    for (int64_t i = 0; i < a[1].count; i++) {
        int64_t to = ((n * v->h + h) * v->w + a[1].first + i * a[1].step) * channels;
        const element *sums = all->sums ? all->sums + (index * a[1].count + i) * channels : NULL;
        element *dx = all->backward->dx + to;
        const element *residual = all->residual ? all->residual + to : NULL;
        for (int64_t c = 0; c < channels; c++) dx[c] = (sums ? sums[c] : 0) + (residual ? residual[c] : 0);
    }
}

/* True if the kernel that computes it packs filters with arbitrary strides. */
static bool packs_from_anywhere(const convolution *v)
{
    if (grouped_takes_cpu(v)) return true;
    return !depthwise_nhwc_takes_cpu(v) && !(winograd_takes_cpu(v) && winograd_pays_cpu(v));
}

/* A phase's weights; flipped into all->flipped if the kernel needs it. */
static implicit_weights weights_of(const cpu_calculator *cpu, context *all)
{
    const convolution *v = &all->backward->v;
    const phase *part = all->part;
    if (!packs_from_anywhere(&part->v)) {
        cpu_parallel(cpu, v->groups * flipping_tasks(v), cpu_time_of_elements(4 * flipped_size(v)), flip_filters, all);
        return implicit_weights_of(&part->v, all->flipped);
    }
    return (implicit_weights){.w = all->backward->w + part->axis[0].first_tap * v->s + part->axis[1].first_tap,
                              .group = v->k * v->taps,
                              .filter = v->r_s,
                              .channel = v->taps,
                              .row = -part->axis[0].tap_step * v->s,
                              .column = -part->axis[1].tap_step};
}

void conv2d_nhwc_input_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution_backward *backward)
{
    const convolution *v = &backward->v;
    element *flipped = packed + conv2d_nhwc_input_packed_size_cpu(v) - flipped_size(v);
    for (int64_t i = 0; i < phases_of(v); i++) {
        phase part = phase_of(v, i);
        context all = {.backward = backward, .part = &part, .flipped = flipped};
        if (is_nothing(&part)) continue;
        implicit_weights w = weights_of(cpu, &all);
        conv2d_nhwc_automatic_pack_cpu(cpu, packed, &part.v, &w);
        packed += packed_size(&part);
    }
}

static void compute_phase(const cpu_calculator *cpu, context *all, const element *packed, element *scratch)
{
    const convolution *v = &all->backward->v;
    const phase *part = all->part;
    bool whole = phases_of(v) == 1, any = part->v.r_s > 0;
    element *pixels = scratch + (packed != NULL ? 0 : flipped_size(v));
    all->flipped = scratch;
    all->sums = any ? pixels : NULL;
    if (any) {
        convolution_forward forward = {.v = part->v,
                                       .x = all->backward->dy,
                                       .residual = whole ? all->residual : NULL,
                                       .y = whole ? all->backward->dx : pixels,
                                       .activation = {.function = SDLF_IDENTITY}};
        implicit_weights w = {.w = NULL};
        if (packed == NULL) w = weights_of(cpu, all);
        conv2d_nhwc_automatic_forward_cpu(cpu, &forward, packed, &w, pixels + pixels_size(v));
    }
    if (whole && any) return;
    cpu_parallel_static(cpu, v->n * part->axis[0].count,
                        cpu_time_of_elements(2 * v->n * part->v.p_q * v->groups * v->c), spread_row, all);
}

void conv2d_nhwc_input_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const element *residual,
                           const element *packed, element *scratch)
{
    const convolution *v = &backward->v;
    for (int64_t i = 0; i < phases_of(v); i++) {
        phase part = phase_of(v, i);
        context all = {.backward = backward, .residual = residual, .part = &part};
        if (!is_empty(&part)) compute_phase(cpu, &all, packed, scratch);
        if (packed != NULL) packed += packed_size(&part);
    }
}
