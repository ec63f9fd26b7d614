/* SPDX-License-Identifier: MIT */
/* Slice, Split and Concat. Constants are folded. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

/* ---- Concat ---- */

static int join_axis(onnx_context *c, int rank)
{
    if (!onnx_has_attribute(c, "axis")) onnx_wrong(c, "attribute 'axis' is missing");
    return onnx_axis(c, onnx_integer(c, "axis", 0), rank);
}

static bool fit_together(sdlf_shape a, sdlf_shape b, int axis)
{
    if (a.rank != b.rank) return false;
    for (int d = 0; d < a.rank; d++)
        if (d != axis && a.dim[d] != b.dim[d]) return false;
    return true;
}

static void fold_concat(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    int axis = join_axis(c, shape.rank);
    onnx_type type = onnx_known(c, 0)->type;
    for (int i = 1; i < c->input_count && onnx_ok(c); i++) {
        const onnx_tensor *part = onnx_known(c, i);
        bool fits = part->type == type && fit_together(shape, part->shape, axis);
        if (!fits || part->shape.dim[axis] > INT64_MAX - shape.dim[axis])
            onnx_wrong(c, "inputs 0 and %d do not fit together", i);
        else
            shape.dim[axis] += part->shape.dim[axis];
    }
    if (!onnx_ok(c)) return;
    onnx_tensor whole = onnx_new_tensor(c, type, shape);
    size_t size = onnx_type_size(type);
    int64_t outer = onnx_ok(c) ? sdlf_shape_span(shape, 0, axis) : 0,
            inner = sdlf_shape_span(shape, axis + 1, shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->input_count && whole.count > 0 && onnx_ok(c); i++) {
        onnx_tensor part = onnx_materialize(c, onnx_known(c, i));
        int64_t length = part.shape.dim[axis] * inner;
        for (int64_t o = 0; o < outer && length > 0 && onnx_ok(c); o++)
            memcpy((char *)whole.data + (size_t)(o * shape.dim[axis] * inner + at) * size,
                   (const char *)part.data + (size_t)(o * length) * size, (size_t)length * size);
        at += length;
    }
    onnx_set_output_constant(c, 0, &whole);
}

/* Expands a part that is common to all samples, next to batched parts, to every sample. */
static void spread(onnx_context *c, onnx_flow *part, int count, int axis)
{
    bool batched = false;
    for (int i = 0; i < count; i++) batched = batched || onnx_batch_axis(c, part[i]) == 0;
    for (int i = 0; i < count && batched && axis != 0 && onnx_ok(c); i++) {
        if (onnx_batch_axis(c, part[i]) >= 0 || part[i].shape.dim[0] != 1) continue;
        sdlf_expand_options options = {.shape = sdlf_shape_without(part[i].shape, 0), .samples = true};
        part[i] = onnx_layer(c, "expand", &options, &part[i], 1);
    }
}

/* Empty parts contribute nothing, and become no layers; a 1-D empty part is compatible with any shape. */
static void convert_concat(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    int axis = join_axis(c, shape.rank), count = 0;
    onnx_flow *part = onnx_arena_array(&c->import->file->arena, (size_t)c->input_count, sizeof *part);
    if (part == NULL) onnx_no_memory(c);
    for (int i = 0; i < c->input_count && onnx_ok(c); i++) {
        if (!onnx_is_constant(c, i) || c->input[i]->tensor.count > 0)
            part[count++] = onnx_in(c, i);
        else if (onnx_shape(c, i).rank > 1 && !fit_together(shape, onnx_shape(c, i), axis))
            onnx_wrong(c, "inputs 0 and %d do not fit together", i);
    }
    if (onnx_ok(c)) spread(c, part, count, axis);
    if (onnx_ok(c)) onnx_set_output(c, 0, onnx_join(c, part, count, axis));
}

/* ---- Slice and Split ---- */

/* One range per axis of x, normalised: start inside, count elements, step not 0. */
typedef struct ranges {
    int64_t start[SDLF_MAX_RANK], count[SDLF_MAX_RANK], step[SDLF_MAX_RANK];
} ranges;

/* The axis of input 0 that has the plan's batch; -1: none. */
static int batch_axis(onnx_context *c)
{
    return onnx_is_constant(c, 0) ? -1 : onnx_batch_axis(c, onnx_in(c, 0));
}

/* `one_sample`: the range is along the batch axis and fixes the number of samples; other batches are then rejected. */
static void give_ranges(onnx_context *c, int output, const ranges *range, bool one_sample)
{
    sdlf_shape shape = onnx_shape(c, 0), taken = shape;
    int64_t step[SDLF_MAX_RANK], first = 0;
    for (int i = 0; i < shape.rank; i++) taken.dim[i] = range->count[i];
    bool kept = onnx_has_trainable_input(c) || onnx_keeps_rows(c);
    if (onnx_is_constant(c, 0) && !(kept && sdlf_shape_count(taken) > 0)) {
        bool empty = sdlf_shape_count(taken) == 0; /* then nothing is selected, and steps are irrelevant */
        onnx_strides(shape, step);
        for (int i = 0; i < shape.rank; i++) {
            first += empty ? 0 : range->start[i] * step[i];
            step[i] = empty || range->count[i] < 2 ? 0 : step[i] * range->step[i];
        }
        onnx_tensor tensor = onnx_pick(c, onnx_known(c, 0), taken, first, step);
        onnx_set_output_constant(c, output, &tensor);
        return;
    }
    if (onnx_ok(c) && sdlf_shape_count(taken) == 0) { /* an empty tensor is always constant */
        const onnx_value *x = c->input[0];
        onnx_type type = x->narrow != ONNX_UNDEFINED ? x->narrow : onnx_type_of(x->flow.dtype);
        bool batched = onnx_batch_axis(c, x->flow) == 0;
        if (batched && one_sample)
            onnx_unsupported(c, "it selects nothing from a batch of 1, but the plan chooses the batch");
        onnx_set_output_constant(
            c, output, &(onnx_tensor){.name = "", .type = type, .shape = taken, .data = "", .batched = batched});
        return;
    }
    sdlf_slice_options options = {.axes = {.rank = 0}};
    for (int i = 0; i < shape.rank; i++) {
        if (range->count[i] == shape.dim[i] && range->step[i] == 1) continue;
        int at = options.axes.rank++;
        int64_t end = range->start[i] + range->count[i] * range->step[i];
        options.axes.dim[at] = i;
        options.start.dim[at] = range->start[i];
        options.end.dim[at] = end < 0 ? -INT32_MAX : end; /* before element 0, and not counted from the end */
        options.step.dim[at] = range->step[i];
    }
    options.start.rank = options.end.rank = options.step.rank = options.axes.rank;
    onnx_flow x = one_sample ? onnx_batch_fixed(c, onnx_in(c, 0)) : onnx_in(c, 0);
    onnx_set_output(c, output, options.axes.rank == 0 ? x : onnx_layer(c, "slice", &options, &x, 1));
}

static ranges all_of(sdlf_shape shape)
{
    ranges range;
    for (int i = 0; i < shape.rank; i++) {
        range.start[i] = 0;
        range.count[i] = shape.dim[i];
        range.step[i] = 1;
    }
    return range;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Sets a range with numpy's slicing rules. */
static void set_range(ranges *range, int axis, int64_t length, int64_t start, int64_t end, int64_t step)
{
    const int64_t far = INT32_MAX;
    step = clamp(step, -far, far);
    start = clamp(start, -far, far);
    end = clamp(end, -far, far);
    start = clamp(start < 0 ? start + length : start, step < 0 ? -1 : 0, step < 0 ? length - 1 : length);
    end = clamp(end < 0 ? end + length : end, step < 0 ? -1 : 0, length);
    int64_t reach = step < 0 ? start - end : end - start, stride = step < 0 ? -step : step;
    range->start[axis] = start;
    range->step[axis] = step;
    range->count[axis] = reach <= 0 ? 0 : (reach + stride - 1) / stride;
}

static void convert_slice(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    bool inputs = c->opset >= 10;
    onnx_list starts = inputs ? onnx_known_integers(c, 1) : onnx_integers(c, "starts");
    onnx_list ends = inputs ? onnx_known_integers(c, 2) : onnx_integers(c, "ends");
    onnx_list none = {NULL, -1};
    onnx_list axes = !inputs ? onnx_integers(c, "axes") : onnx_has(c, 3) ? onnx_known_integers(c, 3) : none;
    onnx_list steps = inputs && onnx_has(c, 4) ? onnx_known_integers(c, 4) : none;
    if (onnx_ok(c) &&
        (starts.count < 0 || ends.count != starts.count || starts.count > shape.rank ||
         (axes.count >= 0 && axes.count != starts.count) || (steps.count >= 0 && steps.count != starts.count)))
        onnx_wrong(c, "%d starts, %d ends, %d axes, %d steps for %d dimensions", starts.count, ends.count, axes.count,
                   steps.count, shape.rank);
    ranges range = all_of(shape);
    bool one_sample = false;
    int batch = batch_axis(c);
    for (int i = 0; i < starts.count && onnx_ok(c); i++) {
        int axis = axes.count >= 0 ? onnx_axis(c, axes.item[i], shape.rank) : i;
        int64_t step = steps.count >= 0 ? steps.item[i] : 1;
        bool everything = ends.item[i] >= INT32_MAX && starts.item[i] == 0 && step == 1;
        one_sample = one_sample || (axis == batch && !everything);
        if (step == 0) onnx_wrong(c, "a step of 0");
        if (onnx_ok(c)) set_range(&range, axis, shape.dim[axis], starts.item[i], ends.item[i], step);
    }
    if (onnx_ok(c)) give_ranges(c, 0, &range, one_sample);
}

static void convert_split(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), shape.rank);
    onnx_list split = c->opset < 13    ? onnx_integers(c, "split")
                      : onnx_has(c, 1) ? onnx_known_integers(c, 1)
                                       : (onnx_list){NULL, -1};
    int64_t parts = onnx_integer(c, "num_outputs", c->output_count), at = 0;
    if (!onnx_ok(c)) return;
    int64_t length = shape.dim[axis];
    if (parts != c->output_count || (split.count >= 0 && split.count != c->output_count)) {
        onnx_wrong(c, "%d outputs, and %lld parts were asked for", c->output_count,
                   (long long)(split.count >= 0 ? split.count : parts));
        return;
    }
    if (split.count < 0 && c->opset < 18 && parts > 0 && length % parts != 0) {
        onnx_wrong(c, "%lld elements in %lld equal parts", (long long)length, (long long)parts);
        return;
    }
    int64_t part = parts > 0 ? length / parts + (length % parts != 0) : 0;
    ranges range = all_of(shape);
    int batch = batch_axis(c);
    for (int i = 0; i < c->output_count && onnx_ok(c); i++) {
        int64_t count = split.count >= 0 ? split.item[i] : clamp(length - at, 0, part);
        if (count < 0 || count > length - at) {
            onnx_wrong(c, "part %d has %lld of %lld elements", i, (long long)count, (long long)length);
            return;
        }
        range.start[axis] = at;
        range.count[axis] = count;
        give_ranges(c, i, &range, axis == batch && (split.count >= 0 || count != length));
        at += count;
    }
    if (onnx_ok(c) && at != length)
        onnx_wrong(c, "the parts have %lld of %lld elements", (long long)at, (long long)length);
}

const onnx_operator onnx_slice_operators[] = {
    {.type = "Concat",
     .since = 4,
     .minimum_inputs = 1,
     .maximum_inputs = 4096,
     .attributes = " axis ",
     .convert = convert_concat,
     .fold = fold_concat},
    {.type = "Slice",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 5,
     .known = 0x1E,
     .attributes = " axes ends starts ",
     .convert = convert_slice,
     .fold = convert_slice},
    {.type = "Split",
     .since = 2,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " axis num_outputs split ",
     .convert = convert_split,
     .fold = convert_split},
    {.type = NULL},
};
