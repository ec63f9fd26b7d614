/* SPDX-License-Identifier: MIT */
/* Einsum: "bij,bjk->bik". Operands are contracted one after the other; a label that neither the result nor a later
 * operand has is summed over as early as possible, by a matrix product if applicable. */
#include <ctype.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

enum { LETTERS = 128, DOTS = LETTERS, LABELS = DOTS + SDLF_MAX_RANK, NONE = -1 };

/* Axis i of x has label[i]: a letter, or DOTS + k for the axis at distance k from the end of "...". */
typedef struct term {
    onnx_flow x;
    int label[SDLF_MAX_RANK];
} term;

typedef struct labels {
    int label[SDLF_MAX_RANK], count;
} labels;

static int place(const int *label, int count, int wanted)
{
    for (int i = 0; i < count; i++)
        if (label[i] == wanted) return i;
    return NONE;
}

static void add(onnx_context *c, labels *list, int label)
{
    if (list->count == SDLF_MAX_RANK) onnx_unsupported(c, "more than %d dimensions", SDLF_MAX_RANK);
    if (onnx_ok(c)) list->label[list->count++] = label;
}

/* ---- the equation ---- */

/* Parses labels up to a comma, an arrow or the end; "..." expands to `dots` axes. */
static const char *parse(onnx_context *c, const char *at, int dots, labels *list)
{
    list->count = 0;
    for (; *at != '\0' && *at != ',' && *at != '-' && onnx_ok(c); at++) {
        if (*at == ' ') continue;
        if (strncmp(at, "...", 3) == 0) {
            at += 2;
            for (int i = dots - 1; i >= 0; i--) add(c, list, DOTS + i);
        } else if (isalpha((unsigned char)*at)) {
            add(c, list, *at);
        } else {
            onnx_wrong(c, "attribute 'equation' has a '%c'", *at > ' ' && *at < 127 ? *at : '?');
        }
    }
    return at;
}

/* The number of letters of the operand, without "...". */
static int letters(const char *at)
{
    int count = 0;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) count += isalpha((unsigned char)*at) != 0;
    return count;
}

/* The implicit result: the axes of "...", then the letters that occur exactly once, sorted. */
static void implied(onnx_context *c, const char *equation, int dots, labels *result)
{
    result->count = 0;
    for (int i = dots - 1; i >= 0; i--) add(c, result, DOTS + i);
    for (int letter = 'A'; letter <= 'z'; letter++) {
        int count = 0;
        for (const char *at = equation; *at != '\0'; at++) count += *at == letter;
        if (count == 1 && isalpha(letter)) add(c, result, letter);
    }
}

static const char *equation_of(onnx_context *c)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "equation");
    if (attribute != NULL && attribute->s.len > 0 && attribute->s.len < 4096)
        return onnx_arena_text(&c->import->file->arena, (const char *)attribute->s.data, attribute->s.len);
    onnx_wrong(c, "attribute 'equation' is missing, or too long");
    return "";
}

/* ---- terms ---- */

static void sum_axis(onnx_context *c, term *t, int axis)
{
    bool floats = sdlf_dtype_is_float(t->x.dtype);
    t->x = floats ? onnx_reduce(c, t->x, SDLF_REDUCE_LAYER_SUM, sdlf_shape(axis), false)
                  : onnx_reduce_integers(c, t->x, SDLF_REDUCE_LAYER_SUM, sdlf_shape(axis), false);
    if (onnx_ok(c)) memmove(t->label + axis, t->label + axis + 1, (size_t)(t->x.shape.rank - axis) * sizeof *t->label);
}

/* Sums over every axis whose label is not kept. */
static void sum_rest(onnx_context *c, term *t, const bool *kept)
{
    for (int axis = t->x.shape.rank - 1; axis >= 0 && onnx_ok(c); axis--)
        if (!kept[t->label[axis]]) sum_axis(c, t, axis);
}

/* For an operand with a repeated label, takes the diagonal. */
static void take_diagonals(onnx_context *c, term *t)
{
    for (int i = 0; i < t->x.shape.rank && onnx_ok(c); i++) {
        int other = i + 1 + place(t->label + i + 1, t->x.shape.rank - i - 1, t->label[i]), order[SDLF_MAX_RANK],
            count = 0;
        if (other == i) continue;
        int64_t length = t->x.shape.dim[i];
        if (t->x.shape.dim[other] != length)
            onnx_wrong(c, "axes of one label have %lld and %lld elements", (long long)length,
                       (long long)t->x.shape.dim[other]);
        for (int k = 0; k < t->x.shape.rank; k++) {
            if (k == other) continue;
            order[count++] = k;
            if (k == i) order[count++] = other;
        }
        if (onnx_batch_axis(c, t->x) == i || onnx_batch_axis(c, t->x) == other) t->x = onnx_batch_fixed(c, t->x);
        onnx_flow both = onnx_join_axes(c, onnx_transpose(c, t->x, order), i, i + 1);
        t->x = onnx_take(c, both, i, 0, length, length + 1);
        memmove(t->label + other, t->label + other + 1, (size_t)(SDLF_MAX_RANK - other - 1) * sizeof *t->label);
        i--; /* there may be a third one */
    }
}

/* Permutes the axes to the order of the list, with 1 for labels that the term lacks. */
static onnx_flow align(onnx_context *c, const term *t, const labels *list)
{
    int order[SDLF_MAX_RANK], count = 0, batch = NONE;
    sdlf_shape shape = {.rank = list->count};
    if (!onnx_ok(c)) return t->x;
    for (int i = 0; i < list->count; i++) {
        int axis = place(t->label, t->x.shape.rank, list->label[i]);
        shape.dim[i] = axis >= 0 ? t->x.shape.dim[axis] : 1;
        if (axis >= 0) order[count++] = axis;
        if (axis >= 0 && axis == onnx_batch_axis(c, t->x)) batch = i;
    }
    return onnx_reshape_batch(c, onnx_transpose(c, t->x, order), shape, batch);
}

/* The roles of labels in a contraction. */
typedef struct parts {
    labels both, left, right, summed; /* in both and kept; in one; in both and summed over */
    bool fits;                        /* summed axes have equal lengths in both */
} parts;

static parts classify_labels(onnx_context *c, const term *a, const term *b, const bool *kept)
{
    parts p = {.fits = true};
    for (int i = 0; i < a->x.shape.rank; i++) {
        int label = a->label[i], other = place(b->label, b->x.shape.rank, label);
        add(c, other < 0 ? &p.left : kept[label] ? &p.both : &p.summed, label);
        if (other >= 0 && !kept[label]) p.fits = p.fits && a->x.shape.dim[i] == b->x.shape.dim[other];
        bool broadcasts = other < 0 || a->x.shape.dim[i] == b->x.shape.dim[other] || label >= DOTS;
        if (!broadcasts)
            onnx_wrong(c, "axes '%c' have %lld and %lld elements", label, (long long)a->x.shape.dim[i],
                       (long long)b->x.shape.dim[other]);
    }
    for (int i = 0; i < b->x.shape.rank; i++)
        if (place(a->label, a->x.shape.rank, b->label[i]) < 0) add(c, &p.right, b->label[i]);
    return p;
}

static labels joined(onnx_context *c, const labels *const *lists, int count)
{
    labels all = {.count = 0};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < lists[i]->count; k++) add(c, &all, lists[i]->label[k]);
    return all;
}

/* The position of the plan's batch in the result. */
static int batch_of(onnx_context *c, const term *a, const term *b, const labels *result)
{
    int left = onnx_batch_axis(c, a->x), right = onnx_batch_axis(c, b->x);
    int at = left >= 0 ? place(result->label, result->count, a->label[left]) : NONE;
    return at < 0 && right >= 0 ? place(result->label, result->count, b->label[right]) : at;
}

/* (both, left, summed) times (both, right, summed), as a batched matrix product with merged axes. */
static onnx_flow by_matrices(onnx_context *c, const term *a, const term *b, const parts *p, const labels *result)
{
    labels rows = joined(c, (const labels *const[]){&p->both, &p->left, &p->summed}, 3);
    labels columns = joined(c, (const labels *const[]){&p->both, &p->right, &p->summed}, 3);
    onnx_flow x = align(c, a, &rows), y = align(c, b, &columns);
    sdlf_shape shape = {.rank = result->count};
    int first = p->both.count, batch = batch_of(c, a, b, result);
    for (int i = 0; i < result->count && onnx_ok(c); i++) {
        int left = place(rows.label, rows.count, result->label[i]),
            right = place(columns.label, columns.count, result->label[i]);
        int64_t dim = left >= 0 ? x.shape.dim[left] : 1, other = right >= 0 ? y.shape.dim[right] : 1;
        shape.dim[i] = dim == 1 ? other : dim;
    }
    const labels *const own[] = {&p->left, &p->right};
    onnx_flow *const factor[] = {&x, &y};
    for (int i = 0; i < 2 && onnx_ok(c); i++) { /* (both, own, summed) as matrices */
        int count = own[i]->count;
        *factor[i] = onnx_join_axes(c, *factor[i], first + count, factor[i]->shape.rank - 1);
        if (count > 1) *factor[i] = onnx_join_axes(c, *factor[i], first, first + count - 1);
        if (count == 0) *factor[i] = onnx_split_axis(c, *factor[i], first, 1);
    }
    return onnx_reshape_batch(c, onnx_product(c, x, y, true), shape, batch);
}

static term multiply(onnx_context *c, const term *a, const term *b, const bool *kept)
{
    parts p = classify_labels(c, a, b, kept);
    labels result = joined(c, (const labels *const[]){&p.both, &p.left, &p.right}, 3);
    bool matrices = p.summed.count > 0 && p.fits && sdlf_dtype_is_float(a->x.dtype);
    term y = {.x = a->x};
    if (onnx_ok(c) && !matrices) {
        labels all = joined(c, (const labels *const[]){&result, &p.summed}, 2);
        memcpy(y.label, all.label, sizeof y.label);
        y.x = onnx_elementwise(c, "mul", align(c, a, &all), align(c, b, &all));
        if (onnx_ok(c)) sum_rest(c, &y, kept);
        return y;
    }
    memcpy(y.label, result.label, sizeof y.label);
    if (onnx_ok(c)) y.x = by_matrices(c, a, b, &p, &result);
    return y;
}

static void convert_einsum(onnx_context *c)
{
    const char *equation = equation_of(c), *at = equation;
    int count = c->input_count, dots = 0;
    labels list, result = {.count = 0};
    term *operand = onnx_arena_array(&c->import->file->arena, (size_t)count, sizeof *operand);
    if (operand == NULL || equation == NULL) onnx_no_memory(c);
    for (int i = 0; i < count && onnx_ok(c); i++) { /* determines the number of axes of "..." */
        int rest = onnx_shape(c, i).rank - letters(at);
        dots = rest > dots ? rest : dots;
        while (*at != '\0' && *at != ',' && *at != '-') at++;
        at += *at == ',';
    }
    at = equation;
    for (int i = 0; i < count && onnx_ok(c); i++) {
        int rest = onnx_shape(c, i).rank - letters(at);
        operand[i].x = onnx_in(c, i);
        at = parse(c, at, rest > 0 ? rest : 0, &list);
        if (onnx_ok(c) && (list.count != operand[i].x.shape.rank || (i + 1 < count) != (*at == ',')))
            onnx_wrong(c, "attribute 'equation' does not fit input %d, %s", i,
                       sdlf_shape_print(operand[i].x.shape).text);
        memcpy(operand[i].label, list.label, sizeof list.label);
        at += *at == ',';
    }
    if (onnx_ok(c) && strncmp(at, "->", 2) == 0)
        parse(c, at + 2, dots, &result);
    else if (onnx_ok(c) && *at == '\0')
        implied(c, equation, dots, &result);
    else
        onnx_wrong(c, "attribute 'equation' does not end after its operands");
    for (int i = 0; i < count && onnx_ok(c); i++) take_diagonals(c, &operand[i]);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        bool kept[LABELS] = {false};
        for (int k = 0; k < result.count; k++) kept[result.label[k]] = true;
        for (int later = i + 1; later < count; later++)
            for (int k = 0; k < operand[later].x.shape.rank; k++) kept[operand[later].label[k]] = true;
        bool first[LABELS];
        memcpy(first, kept, sizeof first);
        for (int k = 0; i > 0 && k < operand[i].x.shape.rank; k++) first[operand[i].label[k]] = true;
        if (i > 0) sum_rest(c, &operand[0], first);
        memcpy(first, kept, sizeof first);
        for (int k = 0; i > 0 && k < operand[0].x.shape.rank; k++) first[operand[0].label[k]] = true;
        sum_rest(c, &operand[i], first);
        if (i > 0 && onnx_ok(c)) operand[0] = multiply(c, &operand[0], &operand[i], kept);
    }
    for (int i = 0; i < result.count && onnx_ok(c); i++)
        if (result.label[i] < DOTS && place(operand[0].label, operand[0].x.shape.rank, result.label[i]) < 0)
            onnx_wrong(c, "attribute 'equation' gives '%c', which no operand has", result.label[i]);
    if (onnx_ok(c)) onnx_set_output(c, 0, align(c, &operand[0], &result));
}

const onnx_operator onnx_einsum_operators[] = {
    {.type = "Einsum",
     .since = 12,
     .minimum_inputs = 1,
     .maximum_inputs = 64,
     .attributes = " equation ",
     .convert = convert_einsum},
    {.type = NULL},
};
