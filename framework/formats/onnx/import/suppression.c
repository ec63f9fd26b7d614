/* SPDX-License-Identifier: MIT */
/* NonMaxSuppression: of overlapping boxes, keeps those with the highest scores. Overlaps are computed for all pairs;
 * then boxes are selected one after the other, for all classes in parallel: the best remaining one, which removes those
 * that it suppresses. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/dynamic_length.h"

enum { MOST_PAIRS = 1 << 24, MOST_TURNS = 1024 };

/* The lower and upper bound of each box along an axis, (N, boxes). */
static void bounds_of(onnx_context *c, onnx_flow boxes, int axis, bool center, onnx_flow *low, onnx_flow *high)
{
    int64_t batch = boxes.shape.dim[0], count = boxes.shape.dim[1];
    onnx_flow part[2];
    for (int i = 0; i < 2; i++) {
        int at = center ? (i == 0 ? 1 - axis : 3 - axis) : 2 * i + axis; /* x, y, width, height; or y1, x1, y2, x2 */
        part[i] = onnx_reshape_batch(c, onnx_take(c, boxes, 2, at, 1, 1), sdlf_shape(batch, count), -1);
    }
    if (center) {
        onnx_flow half = onnx_with_number(c, "mul", part[1], 0.5);
        *low = onnx_elementwise(c, "sub", part[0], half);
        *high = onnx_elementwise(c, "add", part[0], half);
        return;
    }
    *low = onnx_elementwise(c, "min", part[0], part[1]);
    *high = onnx_elementwise(c, "max", part[0], part[1]);
}

/* (N, boxes) as (N, boxes, 1), or (N, 1, boxes). */
static onnx_flow upright(onnx_context *c, onnx_flow x, bool column)
{
    return onnx_split_axis(c, x, 1, column ? x.shape.dim[1] : 1);
}

/* (N, boxes, boxes): 1 where the intersection over union exceeds the threshold. */
static onnx_flow overlaps(onnx_context *c, onnx_flow boxes, bool center, onnx_flow threshold)
{
    onnx_flow common = boxes, area = boxes;
    for (int axis = 0; axis < 2; axis++) {
        onnx_flow low, high;
        bounds_of(c, boxes, axis, center, &low, &high);
        onnx_flow from = onnx_elementwise(c, "max", upright(c, low, true), upright(c, low, false));
        onnx_flow to = onnx_elementwise(c, "min", upright(c, high, true), upright(c, high, false));
        onnx_flow length = onnx_with_number(c, "max", onnx_elementwise(c, "sub", to, from), 0);
        onnx_flow side = onnx_elementwise(c, "sub", high, low);
        common = axis == 0 ? length : onnx_elementwise(c, "mul", common, length);
        area = axis == 0 ? side : onnx_elementwise(c, "mul", area, side);
    }
    onnx_flow either = onnx_elementwise(c, "add", upright(c, area, true), upright(c, area, false));
    either = onnx_elementwise(c, "sub", either, common);
    onnx_flow there = onnx_with_number(c, "greater", common, 0); /* boxes without an area suppress none */
    onnx_flow ratio =
        onnx_elementwise(c, "div", common, onnx_choose(c, there, either, onnx_number(c, SDLF_FLOAT32, 1)));
    return onnx_cast(c, onnx_elementwise(c, "and", there, onnx_elementwise(c, "greater", ratio, threshold)),
                     SDLF_FLOAT32);
}

static onnx_flow threshold_of(onnx_context *c, int input)
{
    return onnx_has(c, input) ? onnx_reshape(c, onnx_in(c, input), SDLF_SCALAR) : onnx_number(c, SDLF_FLOAT32, 0);
}

static void convert_suppression(onnx_context *c)
{
    onnx_flow boxes = onnx_in(c, 0), scores = onnx_in(c, 1);
    double most = onnx_known_number(c, 2, 0);
    bool center = onnx_flag(c, "center_point_box", false);
    if (onnx_ok(c) && (boxes.shape.rank != 3 || scores.shape.rank != 3 || boxes.shape.dim[2] != 4 ||
                       boxes.shape.dim[0] != scores.shape.dim[0] || boxes.shape.dim[1] != scores.shape.dim[2]))
        onnx_wrong(c, "boxes %s and scores %s", sdlf_shape_print(boxes.shape).text,
                   sdlf_shape_print(scores.shape).text);
    if (!onnx_ok(c)) return;
    int64_t batch = scores.shape.dim[0], classes = scores.shape.dim[1], count = scores.shape.dim[2];
    if (!(most >= 1)) onnx_unsupported(c, "%g boxes of each class", most);
    int64_t turns = most < (double)count ? (int64_t)most : count;
    if (count > MOST_PAIRS / count || batch > MOST_PAIRS / (count * count) || turns > MOST_TURNS)
        onnx_unsupported(c, "%lld boxes of %lld: at most %d pairs are compared, and %d boxes of a class taken",
                         (long long)turns, (long long)count, MOST_PAIRS, MOST_TURNS);
    onnx_flow *index = onnx_arena_array(&c->import->file->arena, MOST_TURNS, sizeof *index);
    onnx_flow *taken = onnx_arena_array(&c->import->file->arena, MOST_TURNS, sizeof *taken);
    if (index == NULL || taken == NULL) onnx_no_memory(c);
    if (!onnx_ok(c)) return;
    if (onnx_batch_axis(c, boxes) >= 0) boxes = onnx_batch_fixed(c, boxes);
    if (onnx_batch_axis(c, scores) >= 0) scores = onnx_batch_fixed(c, scores);
    onnx_flow over = overlaps(c, boxes, center, threshold_of(c, 3)), gone = onnx_number(c, SDLF_FLOAT32, -INFINITY);
    onnx_flow place = onnx_count_up(c, 0, 1, count, 2, 3);
    if (onnx_has(c, 4))
        scores = onnx_choose(c, onnx_elementwise(c, "greater", scores, threshold_of(c, 4)), scores, gone);
    for (int64_t t = 0; t < turns && onnx_ok(c); t++) {
        onnx_flow best = onnx_layer(c, "arg_reduce", &(sdlf_arg_reduce_layer_options){.axis = 2}, &scores, 1);
        onnx_flow score = onnx_reduce(c, scores, SDLF_REDUCE_LAYER_MAX, sdlf_shape(2), true);
        index[t] = onnx_reshape_batch(c, best, sdlf_shape(batch, classes, 1), -1);
        taken[t] = onnx_elementwise(c, "greater", score, gone);
        if (t + 1 == turns) break;
        onnx_flow is = onnx_elementwise(c, "equal", place, index[t]);
        onnx_flow near = onnx_product(c, onnx_cast(c, is, SDLF_FLOAT32), over, false);
        scores = onnx_choose(c, onnx_elementwise(c, "or", is, onnx_with_number(c, "greater", near, 0)), gone, scores);
    }
    if (!onnx_ok(c)) return;
    int64_t rows = batch * classes * turns;
    onnx_flow is = onnx_flat(c, onnx_join(c, taken, (int)turns, 2)), length;
    onnx_flow order = onnx_true_first(c, is, &length), column[3];
    column[2] = onnx_gather(c, onnx_flat(c, onnx_join(c, index, (int)turns, 2)), order, 0);
    column[0] = onnx_elementwise(c, "div", order, onnx_number(c, SDLF_INT64, (double)(classes * turns)));
    column[1] = onnx_elementwise(c, "div", order, onnx_number(c, SDLF_INT64, (double)turns));
    column[1] = onnx_elementwise(c, "modulo", column[1], onnx_number(c, SDLF_INT64, (double)classes));
    for (int i = 0; i < 3; i++) column[i] = onnx_split_axis(c, column[i], 0, rows);
    onnx_set_output_dynamic_length(c, 0, onnx_join(c, column, 3, 1), 0, length);
}

const onnx_operator onnx_suppression_operators[] = {
    {.type = "NonMaxSuppression",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 5,
     .known = 4,
     .attributes = " center_point_box ",
     .convert = convert_suppression},
    {.type = NULL},
};
