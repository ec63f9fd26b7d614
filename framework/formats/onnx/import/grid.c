/* SPDX-License-Identifier: MIT */
/* GridSample and AffineGrid: images sampled at computed positions. Indices count across all samples, so they are valid
 * only for the batch that the model is made for. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

enum { MOST_AXES = 3, MOST_TAPS = 4 };

typedef enum sampling_mode { NEAREST, LINEAR, CUBIC } sampling_mode;
typedef enum border { ZEROS, BORDER, REFLECTION } border;

/* The contribution of one axis to every output: the surrounding elements of x and their weights, each (N, places). */
typedef struct taps {
    int count;
    onnx_flow index[MOST_TAPS], weight[MOST_TAPS], inside[MOST_TAPS];
} taps;

typedef struct sampling {
    sampling_mode mode;
    border border;
    bool corners; /* -1 and 1 are the centres of the outermost elements, not their edges */
} sampling;

static sampling sampling_of(onnx_context *c)
{
    static const struct {
        const char *name;
        sampling_mode mode;
    } modes[] = {{"linear", LINEAR}, {"bilinear", LINEAR}, {"nearest", NEAREST}, {"cubic", CUBIC}, {"bicubic", CUBIC}};
    static const char *const borders[] = {"zeros", "border", "reflection"};
    onnx_word mode = onnx_text(c, "mode", "linear"), border_word = onnx_text(c, "padding_mode", "zeros");
    sampling s = {.corners = onnx_flag(c, "align_corners", false)};
    size_t m = 0, b = 0, mode_count = sizeof modes / sizeof modes[0];
    while (m < mode_count && strcmp(modes[m].name, mode.text) != 0) m++;
    while (b < 3 && strcmp(borders[b], border_word.text) != 0) b++;
    if (m == mode_count || b == 3)
        onnx_wrong(c, "attributes 'mode' and 'padding_mode' are '%s' and '%s'", mode.text, border_word.text);
    s.mode = m < mode_count ? modes[m].mode : LINEAR;
    s.border = (border)b;
    return s;
}

/* ---- one axis ---- */

static onnx_flow clamped(onnx_context *c, onnx_flow x, double low, double high)
{
    return onnx_with_number(c, "min", onnx_with_number(c, "max", x, low), high);
}

/* Reflects at both ends. */
static onnx_flow reflected(onnx_context *c, onnx_flow x, double low, double span)
{
    if (span <= 0) return onnx_with_number(c, "mul", x, 0);
    onnx_flow far = onnx_function(c, SDLF_UNARY_ABS, onnx_with_number(c, "sub", x, low));
    far = onnx_with_number(c, "modulo", far, 2 * span);
    onnx_flow back = onnx_with_number(c, "add", onnx_with_number(c, "mul", far, -1), 2 * span);
    return onnx_with_number(c, "add", onnx_elementwise(c, "min", far, back), low);
}

/* Keys' cubic kernel at distance d, either within 1 or between 1 and 2. */
static onnx_flow cubic(onnx_context *c, onnx_flow d, bool near)
{
    const double a = -0.75;
    const double factor[2][4] = {{a, -5 * a, 8 * a, -4 * a}, {a + 2, -(a + 3), 0, 1}};
    onnx_flow y = onnx_with_number(c, "mul", d, factor[near][0]);
    for (int i = 1; i < 4; i++) {
        y = onnx_with_number(c, "add", y, factor[near][i]);
        if (i < 3) y = onnx_elementwise(c, "mul", y, d);
    }
    return y;
}

static onnx_flow weight_of(onnx_context *c, const sampling *s, onnx_flow ratio, int tap)
{
    onnx_flow rest = onnx_with_number(c, "add", onnx_with_number(c, "mul", ratio, -1), 1);
    if (s->mode == LINEAR) return tap == 0 ? rest : ratio;
    switch (tap) {
    case 0: return cubic(c, onnx_with_number(c, "add", ratio, 1), false);
    case 1: return cubic(c, ratio, true);
    case 2: return cubic(c, rest, true);
    default: return cubic(c, onnx_with_number(c, "add", rest, 1), false);
    }
}

/* Taps for coordinates in [-1, 1] along an axis of `length` elements. */
static taps taps_of(onnx_context *c, const sampling *s, onnx_flow coordinate, int64_t length)
{
    taps t = {.count = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4};
    double size = (double)length, low = s->corners ? 0 : -0.5, span = s->corners ? size - 1 : size;
    onnx_flow u =
        onnx_with_number(c, "mul", onnx_with_number(c, "add", coordinate, 1), (s->corners ? size - 1 : size) / 2);
    if (!s->corners) u = onnx_with_number(c, "sub", u, 0.5);
    onnx_flow first = onnx_function(c, s->mode == NEAREST ? SDLF_UNARY_ROUND : SDLF_UNARY_FLOOR, u);
    onnx_flow ratio = onnx_elementwise(c, "sub", u, first);
    for (int i = 0; i < t.count && onnx_ok(c); i++) {
        int offset = s->mode == CUBIC ? i - 1 : i;
        onnx_flow at = offset == 0 ? first : onnx_with_number(c, "add", first, offset);
        t.inside[i] = onnx_elementwise(c, "and", onnx_with_number(c, "greater_equal", at, 0),
                                       onnx_with_number(c, "less", at, size));
        if (s->border == REFLECTION) at = reflected(c, at, low, span);
        t.index[i] = onnx_cast(c, clamped(c, at, 0, size - 1), SDLF_INT64);
        t.weight[i] = s->mode == NEAREST ? ratio : weight_of(c, s, ratio, i);
    }
    return t;
}

/* ---- all axes ---- */

static onnx_flow last_axis_added(onnx_context *c, onnx_flow x)
{
    return onnx_split_axis(c, x, x.shape.rank - 1, x.shape.dim[x.shape.rank - 1]);
}

/* The sum over all combinations of the axes' taps, (N, places, channels). */
static onnx_flow sum_of_taps(onnx_context *c, const sampling *s, onnx_flow rows, const taps *t, const sdlf_shape *x,
                             int axes)
{
    int64_t stride[MOST_AXES], inner = sdlf_shape_span(*x, 2, x->rank);
    int total = 1;
    onnx_flow sum = rows, first = onnx_count_up(c, 0, inner, x->dim[0], 0, 2);
    for (int a = 0; a < axes; a++) {
        stride[a] = sdlf_shape_span(*x, 3 + a, x->rank);
        total *= t[a].count;
    }
    for (int k = 0; k < total && onnx_ok(c); k++) {
        onnx_flow place = first, weight = first, inside = first;
        for (int a = 0, rest = k; a < axes; rest /= t[a].count, a++) {
            int i = rest % t[a].count;
            place = onnx_elementwise(
                c, "add", place, onnx_elementwise(c, "mul", t[a].index[i], onnx_int64s(c, &stride[a], SDLF_SCALAR)));
            weight = a == 0 ? t[a].weight[i] : onnx_elementwise(c, "mul", weight, t[a].weight[i]);
            inside = a == 0 ? t[a].inside[i] : onnx_elementwise(c, "and", inside, t[a].inside[i]);
        }
        onnx_flow value = onnx_gather(c, rows, place, 0);
        if (s->mode != NEAREST) value = onnx_elementwise(c, "mul", value, last_axis_added(c, weight));
        if (s->border == ZEROS)
            value = onnx_choose(c, last_axis_added(c, inside), value, onnx_number(c, SDLF_FLOAT32, 0));
        sum = k == 0 ? value : onnx_elementwise(c, "add", sum, value);
    }
    return sum;
}

static void convert_grid_sample(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), grid = onnx_in(c, 1);
    sampling s = sampling_of(c);
    int axes = x.shape.rank - 2;
    bool fits = axes >= 1 && axes <= MOST_AXES && grid.shape.rank == x.shape.rank &&
                grid.shape.dim[0] == x.shape.dim[0] && grid.shape.dim[grid.shape.rank - 1] == axes;
    if (onnx_ok(c) && !fits)
        onnx_unsupported(c, "a grid %s for an input %s", sdlf_shape_print(grid.shape).text,
                         sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    if (onnx_batch_axis(c, x) >= 0) x = onnx_batch_fixed(c, x);
    if (onnx_batch_axis(c, grid) >= 0) grid = onnx_batch_fixed(c, grid);
    sdlf_shape shape = x.shape, y = shape;
    int64_t places = sdlf_shape_span(grid.shape, 1, axes + 1);
    for (int i = 0; i < axes; i++) y.dim[2 + i] = grid.shape.dim[1 + i];
    grid = onnx_reshape_batch(c, grid, sdlf_shape(shape.dim[0], places, axes), -1);
    taps t[MOST_AXES];
    for (int a = 0; a < axes && onnx_ok(c); a++) { /* the last axis's coordinate comes first */
        onnx_flow coordinate = onnx_take(c, grid, 2, axes - 1 - a, 1, 1);
        coordinate = onnx_reshape_batch(c, coordinate, sdlf_shape(shape.dim[0], places), -1);
        t[a] = taps_of(c, &s, coordinate, shape.dim[2 + a]);
    }
    if (!onnx_ok(c)) return;
    onnx_flow rows = onnx_join_axes(c, x, 2, shape.rank - 1); /* (N, channels, elements) */
    rows = onnx_join_axes(c, onnx_transpose(c, rows, (const int[]){0, 2, 1}), 0, 1);
    onnx_flow sum = sum_of_taps(c, &s, rows, t, &shape, axes);
    onnx_set_output(c, 0, onnx_reshape_batch(c, onnx_transpose(c, sum, (const int[]){0, 2, 1}), y, -1));
}

/* ---- AffineGrid ---- */

/* Each position of the result, (x, y, 1), times the sample's matrix. */
static void convert_affine_grid(onnx_context *c)
{
    onnx_flow theta = onnx_in(c, 0);
    onnx_list size = onnx_known_integers(c, 1);
    bool corners = onnx_flag(c, "align_corners", false);
    int axes = size.count - 2;
    if (onnx_ok(c) &&
        (axes < 2 || axes > 3 || theta.shape.rank != 3 || theta.shape.dim[1] != axes || theta.shape.dim[2] != axes + 1))
        onnx_wrong(c, "a matrix %s for %d dimensions", sdlf_shape_print(theta.shape).text, size.count);
    if (!onnx_ok(c)) return;
    sdlf_shape y = {.rank = axes + 2, .dim = {theta.shape.dim[0]}}, all = {.rank = axes};
    for (int i = 0; i < axes; i++) y.dim[1 + i] = all.dim[i] = size.item[2 + i];
    y.dim[axes + 1] = axes;
    int64_t count = sdlf_shape_count(all);
    if (count < 1) onnx_wrong(c, "a size of %s", sdlf_shape_print(all).text);
    onnx_tensor base = onnx_new_tensor(c, ONNX_DOUBLE, sdlf_shape(count < 1 ? 1 : count, axes + 1));
    for (int64_t p = 0; p < count && onnx_ok(c); p++) {
        int64_t rest = p;
        ((double *)base.data)[p * (axes + 1) + axes] = 1;
        for (int a = axes - 1; a >= 0; rest /= all.dim[a], a--) {
            double at = (double)(rest % all.dim[a]), length = (double)all.dim[a];
            double place = corners ? (length > 1 ? 2 * at / (length - 1) - 1 : 0) : (2 * at + 1) / length - 1;
            ((double *)base.data)[p * (axes + 1) + axes - 1 - a] = place;
        }
    }
    onnx_flow grid = onnx_product(c, onnx_constant_layer(c, &base), theta, true);
    onnx_set_output(c, 0, onnx_reshape(c, grid, y));
}

const onnx_operator onnx_grid_operators[] = {
    {.type = "GridSample",
     .since = 16,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " align_corners mode padding_mode ",
     .convert = convert_grid_sample},
    {.type = "AffineGrid",
     .since = 20,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " align_corners ",
     .convert = convert_affine_grid},
    {.type = NULL},
};
