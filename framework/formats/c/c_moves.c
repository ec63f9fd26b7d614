/* SPDX-License-Identifier: MIT */
/* Statements that move elements: fill, copy (with type conversion), select, gather. */
#include "framework/formats/c/c_export.h"

#include <stdio.h>

void c_print_fill(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    c_loops loops;
    c_open(e, &loops, (const sdlf_tensor *const[]){&o->out[0]}, 1, false);
    c_print(e, "%s%s = %s;\n", c_indent(loops.depth).text, c_element(e, &o->out[0], loops.index[0]).text,
            c_constant(o->out[0].dtype, o->fill.value).text);
}

/* ---- type conversion ---- */

typedef struct range {
    const char *low, *high;     /* as integers */
    const char *low_f, *high_f; /* the same as floats, or the next one */
} range;

static range range_of(sdlf_dtype dtype)
{
    switch (dtype) {
    case SDLF_UINT8: return (range){"0", "UINT8_MAX", "0.0f", "255.0f"};
    case SDLF_INT8: return (range){"INT8_MIN", "INT8_MAX", "-128.0f", "127.0f"};
    case SDLF_INT32: return (range){"INT32_MIN", "INT32_MAX", "-2147483648.0f", "2147483648.0f"};
    default: return (range){"INT64_MIN", "INT64_MAX", "-9223372036854775808.0f", "9223372036854775808.0f"};
    }
}

/* v of type `from` converted to type `to`: floats round toward zero, all saturate, NaN becomes 0. */
static c_name converted(sdlf_dtype from, sdlf_dtype to)
{
    c_name text;
    const char *type = c_type(to);
    range r = range_of(to);
    bool wider = from == SDLF_BOOL || to == SDLF_INT64 || (to == SDLF_INT32 && from != SDLF_INT64);
    if (to == SDLF_BOOL)
        snprintf(text.text, sizeof text.text, "v != 0");
    else if (to == SDLF_FLOAT32 || (from != SDLF_FLOAT32 && wider))
        snprintf(text.text, sizeof text.text, "(%s)v", type);
    else if (from == SDLF_FLOAT32)
        snprintf(text.text, sizeof text.text, "v != v ? 0 : v <= %s ? %s : v >= %s ? %s : (%s)v", r.low_f, r.low,
                 r.high_f, r.high, type);
    else if (from == SDLF_UINT8) /* to int8 */
        snprintf(text.text, sizeof text.text, "v > %s ? %s : (%s)v", r.high, r.high, type);
    else if (from == SDLF_INT8) /* to uint8 */
        snprintf(text.text, sizeof text.text, "v < 0 ? 0 : (uint8_t)v");
    else
        snprintf(text.text, sizeof text.text, "v < %s ? %s : v > %s ? %s : (%s)v", r.low, r.low, r.high, r.high, type);
    return text;
}

void c_print_copy(c_export *e, const c_step *step)
{
    const sdlf_tensor *x = &step->operation.in[0], *y = &step->operation.out[0];
    bool converts = x->dtype != y->dtype;
    c_loops loops;
    if (!converts && c_is_whole(e, x) && c_is_whole(e, y) && c_root(e, x->buffer) == c_root(e, y->buffer)) return;
    c_open(e, &loops, (const sdlf_tensor *const[]){x, y}, 2, converts);
    c_name from = c_element(e, x, loops.index[0]), to = c_element(e, y, loops.index[1]);
    if (converts) {
        c_print(e, "%sconst %s v = %s;\n", c_indent(loops.depth).text, c_type(x->dtype), from.text);
        c_print(e, "%s%s = %s;\n", c_indent(loops.depth).text, to.text, converted(x->dtype, y->dtype).text);
    } else {
        c_print(e, "%s%s = %s;\n", c_indent(loops.depth).text, to.text, from.text);
    }
    c_close(e, &loops);
}

void c_print_select(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    c_loops loops;
    c_open(e, &loops, (const sdlf_tensor *const[]){&o->in[0], &o->in[1], &o->in[2], &o->out[0]}, 4, false);
    c_name part[2];
    for (int i = 0; i < 2; i++)
        part[i] = sdlf_tensor_present(&o->in[1 + i]) ? c_element(e, &o->in[1 + i], loops.index[1 + i]) : (c_name){"0"};
    c_print(e, "%s%s = %s ? %s : %s;\n", c_indent(loops.depth).text, c_element(e, &o->out[0], loops.index[3]).text,
            c_element(e, &o->in[0], loops.index[0]).text, part[0].text, part[1].text);
}

/* x viewed as (outer, length, inner); an index may count from the end, or be out of range. */
void c_print_gather(c_export *e, const c_step *step)
{
    const sdlf_tensor *x = &step->operation.in[0], *index = &step->operation.in[1], *y = &step->operation.out[0];
    int axis = step->operation.index.axis;
    long long outer = (long long)sdlf_shape_span(x->shape, 0, axis), length = (long long)x->shape.dim[axis];
    long long inner = (long long)sdlf_shape_span(x->shape, axis + 1, x->shape.rank);
    long long indices = (long long)sdlf_tensor_count(index);
    char from[96], to[96];
    snprintf(from, sizeof from, "(i * %lld + at) * %lld + k", length, inner);
    snprintf(to, sizeof to, "(i * %lld + j) * %lld + k", indices, inner);
    c_print(e, "    for (int i = 0; i < %lld; i++)\n        for (int j = 0; j < %lld; j++) {\n", outer, indices);
    c_print(e, "            const %s wanted = %s;\n", c_type(index->dtype), c_element(e, index, "j").text);
    c_print(e, "            const %s at = wanted < 0 ? wanted + %lld : wanted;\n", c_type(index->dtype), length);
    c_print(e, "            for (int k = 0; k < %lld; k++)\n                %s = at >= 0 && at < %lld ? %s : 0;\n",
            inner, c_element(e, y, to).text, length, c_element(e, x, from).text);
    c_print(e, "        }\n");
}
