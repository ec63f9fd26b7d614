/* SPDX-License-Identifier: MIT */
/* Statements along one axis: reduce, arg_reduce, top_k, resample. x is viewed as (outer, length, inner). */
#include "framework/formats/c/c_export.h"

#include <stdio.h>

#include "framework/operations/resample_taps.h"

typedef struct line {
    long long outer, length, inner;
} line;

static line line_of(const sdlf_tensor *x, int axis)
{
    return (line){(long long)sdlf_shape_span(x->shape, 0, axis), (long long)x->shape.dim[axis],
                  (long long)sdlf_shape_span(x->shape, axis + 1, x->shape.rank)};
}

/* ---- reductions ---- */

static const struct {
    const char *start, *next, *end;
} reductions[SDLF_REDUCTION_COUNT] = {
    [SDLF_REDUCE_SUM] = {"0", "r + v", "r"},
    [SDLF_REDUCE_MEAN] = {"0", "r + v", "r / "},
    [SDLF_REDUCE_MAX] = {"-INFINITY", "v > r || v != v ? v : r", "r"}, /* NaN wins, and stays */
    [SDLF_REDUCE_MIN] = {"INFINITY", "v < r || v != v ? v : r", "r"},
    [SDLF_REDUCE_SUM_SQUARES] = {"0", "r + v * v", "r"},
    [SDLF_REDUCE_PRODUCT] = {"1", "r * v", "r"},
};

void c_print_reduce(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const sdlf_tensor *x = &o->in[0], *y = &o->out[0];
    line l = line_of(x, o->reduce.axis);
    sdlf_tensor from = *x, to = *y;
    c_loops loops;
    char index[160];
    from.shape = to.shape = sdlf_shape(l.outer, l.inner);
    from.stride[0] = l.length * l.inner, from.stride[1] = to.stride[1] = 1, to.stride[0] = l.inner;
    c_open(e, &loops, (const sdlf_tensor *const[]){&from, &to}, 2, true);
    c_name space = c_indent(loops.depth);
    const char *before = loops.index[0];
    if (l.inner == 1)
        snprintf(index, sizeof index, "%s%sk", before, before[0] != '\0' ? " + " : "");
    else
        snprintf(index, sizeof index, "%s%sk * %lld", before, before[0] != '\0' ? " + " : "", l.inner);
    c_print(e, "%sfloat r = %s;\n%sfor (int k = 0; k < %lld; k++) {\n", space.text,
            reductions[o->reduce.function].start, space.text, l.length);
    c_print(e, "%s    const float v = %s;\n", space.text, c_element(e, x, index).text);
    c_print(e, "%s    r = %s;\n%s}\n", space.text, reductions[o->reduce.function].next, space.text);
    c_print(e, "%s%s = %s", space.text, c_element(e, y, loops.index[1]).text, reductions[o->reduce.function].end);
    if (o->reduce.function == SDLF_REDUCE_MEAN) c_print(e, "%lld", l.length);
    c_print(e, ";\n");
    c_close(e, &loops);
}

void c_print_arg_reduce(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    line l = line_of(&o->in[0], o->arg_reduce.axis);
    c_use(e, "arg_reduce");
    c_print(e, "    arg_reduce(%s, %s, %lld, %lld, %lld, %d, %d);\n", c_address(e, &o->in[0], "").text,
            c_address(e, &o->out[0], "").text, l.outer, l.length, l.inner, o->arg_reduce.smallest, o->arg_reduce.last);
}

void c_print_top_k(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    line l = line_of(&o->in[0], o->top_k.axis);
    c_use(e, "top_k");
    c_print(e, "    top_k(%s, %s, %s, %lld, %lld, %lld, %lld, %d);\n", c_address(e, &o->in[0], "").text,
            c_address(e, &o->out[0], "").text, c_address(e, &o->out[1], "").text, l.outer, l.length, l.inner,
            (long long)o->out[0].shape.dim[o->top_k.axis], o->top_k.smallest);
}

/* ---- resampling: taps are computed here, and written to the file as a table ---- */

static void print_table(c_export *e, const sdlf_resample_options *options, int64_t length, int64_t outputs,
                        int64_t taps, bool weights)
{
    c_print(e, "        static const %s %s[%lld] = {", weights ? "float" : "int", weights ? "weight" : "from",
            (long long)(outputs * taps));
    for (int64_t j = 0; j < outputs; j++) {
        sdlf_resample_taps at = sdlf_resample_at(options, length, outputs, j);
        for (int64_t k = 0; k < taps; k++) {
            int64_t from = at.outside ? -1 : sdlf_resample_index(&at, length, k);
            double weight = at.outside ? 0 : sdlf_resample_weight(options, &at, length, k);
            c_print(e, "%s", (j * taps + k) % 8 == 0 ? "\n            " : " ");
            c_print(e, "%s,", weights ? c_number((float)weight).text : c_integer(SDLF_INT32, from).text);
        }
    }
    c_print(e, "\n        };\n");
}

void c_print_resample(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const sdlf_tensor *x = &o->in[0], *y = &o->out[0];
    line l = line_of(x, o->resample.axis);
    long long outputs = (long long)y->shape.dim[o->resample.axis];
    long long taps = (long long)sdlf_resample_at(&o->resample, l.length, outputs, 0).count;
    char from[96], to[96];
    bool outside = o->resample.extrapolates;
    if (outputs * taps > (1 << 20)) c_refuse(e, step->layer, "its table of weights has %lld numbers", outputs * taps);
    if (!c_ok(e)) return;
    snprintf(to, sizeof to, "(i * %lld + j) * %lld + k", outputs, l.inner);
    snprintf(from, sizeof from, "(i * %lld + from[%s]) * %lld + k", l.length, taps > 1 ? "t" : "j", l.inner);
    c_print(e, "    {\n");
    print_table(e, &o->resample, l.length, outputs, taps, false);
    if (taps > 1) print_table(e, &o->resample, l.length, outputs, taps, true);
    c_print(e, "        for (int i = 0; i < %lld; i++)\n            for (int j = 0; j < %lld; j++)\n", l.outer,
            outputs);
    c_print(e, "                for (int k = 0; k < %lld; k++)%s\n", l.inner, taps > 1 ? " {" : "");
    c_name target = c_element(e, y, to), source = c_element(e, x, from);
    if (taps == 1) {
        c_print(e, "                    %s = ", target.text);
        if (outside) c_print(e, "from[j] < 0 ? %s : ", c_number(o->resample.outside).text);
        c_print(e, "%s;\n    }\n", source.text);
        return;
    }
    c_print(e, "                    float sum = 0;\n");
    c_print(e, "                    for (int t = j * %lld; t < (j + 1) * %lld; t++) ", taps, taps);
    c_print(e, outside ? "sum += from[t] < 0 ? 0 : weight[t] * %s;\n" : "sum += weight[t] * %s;\n", source.text);
    if (outside)
        c_print(e, "                    %s = from[j * %lld] < 0 ? %s : sum;\n", target.text, taps,
                c_number(o->resample.outside).text);
    else
        c_print(e, "                    %s = sum;\n", target.text);
    c_print(e, "                }\n    }\n");
}
