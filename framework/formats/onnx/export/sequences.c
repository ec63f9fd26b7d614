/* SPDX-License-Identifier: MIT */
/* Tokens, positions, attention. The standard's own operators for attention, rotary embedding and RMS normalisation
 * require opset 23; these are decomposed into operators that every runtime has. Position tables are computed for the
 * network's sequence length. */
#include "framework/formats/onnx/export/export.h"

#include <math.h>
#include <stdlib.h>

static const char *reshaped(onnx_export *e, const char *x, sdlf_shape shape)
{
    return export_step2(e, "Reshape", x, export_shape(e, shape));
}

static const char *transposed(onnx_export *e, const char *x, sdlf_shape order)
{
    return export_step(e, "Transpose", (const char *const[]){x, NULL},
                       (const export_attribute[]){export_integers("perm", order), {0}});
}

/* A table (rows,columns) with entries computed by `at`. */
typedef double table_entry(const void *context, int64_t row, int64_t column);
static const char *table(onnx_export *e, int64_t rows, int64_t columns, table_entry *at, const void *context)
{
    float *numbers = malloc((size_t)(rows * columns) * sizeof *numbers);
    if (numbers == NULL || rows * columns > INT32_MAX) {
        free(numbers);
        export_no_memory(e);
        return NULL;
    }
    for (int64_t i = 0; i < rows * columns; i++) numbers[i] = (float)at(context, i / columns, i % columns);
    const char *name = export_reals(e, numbers, sdlf_shape(rows, columns));
    free(numbers);
    return name;
}

void export_embedding(onnx_export *e)
{
    const char *tokens = export_in(e, 0);
    if (sdlf_dtype_is_float(export_in_dtype(e, 0)))
        tokens = export_step(e, "Cast", (const char *const[]){tokens, NULL},
                             (const export_attribute[]){export_integer("to", onnx_type_of(SDLF_INT64)), {0}});
    export_node(e, "Gather", (const char *const[]){export_parameter(e, "weight"), tokens, NULL}, NULL);
}

void export_position_embedding(onnx_export *e)
{
    export_node(e, "Add", (const char *const[]){export_in(e, 0), export_parameter(e, "weight"), NULL}, NULL);
}

void export_rms_norm(onnx_export *e)
{
    const sdlf_rms_norm_options *options = export_options(e);
    const char *x = export_in(e, 0), *squares = export_step2(e, "Mul", x, x);
    bool as_input = e->opset >= 18; /* otherwise the axes are an attribute */
    const char *axes = as_input ? export_shape(e, sdlf_shape(-1)) : "";
    const char *mean = export_step(
        e, "ReduceMean", (const char *const[]){squares, axes, NULL},
        (const export_attribute[]){export_integer("keepdims", 1),
                                   as_input ? (export_attribute){0} : export_integers("axes", sdlf_shape(-1)),
                                   {0}});
    const char *sum = export_step2(e, "Add", mean, export_number(e, (double)options->epsilon, SDLF_FLOAT32));
    const char *normal = export_step2(e, "Div", x, export_step1(e, "Sqrt", sum));
    export_node(e, "Mul", (const char *const[]){normal, export_parameter(e, "weight"), NULL}, NULL);
}

/* ---- rotary embedding ---- */

typedef struct wave {
    double base;
    int64_t half;
    bool sine;
} wave;

static double wave_at(const void *context, int64_t row, int64_t column)
{
    const wave *w = context;
    double angle = (double)row * pow(w->base, -(double)(column % w->half) / (double)w->half);
    return w->sine ? (column < w->half ? -1 : 1) * sin(angle) : cos(angle);
}

/* Elements `start` to `end` of the last axis. */
static const char *part(onnx_export *e, const char *x, int64_t start, int64_t end)
{
    return export_step(e, "Slice",
                       (const char *const[]){x, export_list_integers(e, &start, 1), export_list_integers(e, &end, 1),
                                             export_list_integers(e, (const int64_t[]){-1}, 1), NULL},
                       NULL);
}

/* The two terms of the rotation of x (...,T,D). */
static void rotary_terms(onnx_export *e, const char *x, double base, int64_t length, int64_t depth,
                         const char *terms[3])
{
    wave w = {.base = base, .half = depth / 2};
    const char *halves[] = {part(e, x, w.half, depth), part(e, x, 0, w.half), NULL};
    const char *exchanged =
        export_step(e, "Concat", halves, (const export_attribute[]){export_integer("axis", -1), {0}});
    terms[0] = export_step2(e, "Mul", x, table(e, length, depth, wave_at, &w));
    w.sine = true;
    terms[1] = export_step2(e, "Mul", exchanged, table(e, length, depth, wave_at, &w));
    terms[2] = NULL;
}

void export_rotary_embedding(onnx_export *e)
{
    const sdlf_rotary_embedding_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    const char *terms[3];
    export_check_samples(e);
    rotary_terms(e, export_in(e, 0), (double)options->base, x.dim[x.rank - 2], x.dim[x.rank - 1], terms);
    export_node(e, "Add", terms, NULL);
}

/* ---- attention ---- */

/* As in layers/attention_scores.c; in float16 these values become minus infinity. */
enum { NOT_SEEN = -1000000000, AHEAD = 2 * NOT_SEEN };

static double ahead(const void *context, int64_t row, int64_t column)
{
    (void)context;
    return column > row ? AHEAD : 0;
}

static const char *apply_mask(onnx_export *e, const char *scores)
{
    const char *mask = export_in(e, 1), *unseen = export_number(e, NOT_SEEN, SDLF_FLOAT32);
    if (export_in_dtype(e, 1) == SDLF_BOOL)
        return export_step(e, "Where", (const char *const[]){mask, scores, unseen, NULL}, NULL);
    return export_step2(e, "Add", scores, export_step2(e, "Max", mask, unseen));
}

static const char *masked(onnx_export *e, const char *scores, bool causal, int64_t length)
{
    if (e->now->input_count > 1) scores = apply_mask(e, scores);
    return causal ? export_step2(e, "Add", scores, table(e, length, length, ahead, NULL)) : scores;
}

/* Rows times a transposed weight. */
static const char *projected(onnx_export *e, const char *x, const char *weight)
{
    return export_step2(e, "MatMul", x, transposed(e, export_parameter(e, weight), sdlf_shape(1, 0)));
}

void export_multi_head_attention(onnx_export *e)
{
    const sdlf_multi_head_attention_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    int64_t length = x.dim[1], heads = options->heads, depth = x.dim[2] / heads;
    const char *cut[3], *terms[3];
    export_check_samples(e);
    const char *all = projected(e, export_in(e, 0), "in_proj_weight");
    if (!options->no_bias) all = export_step2(e, "Add", all, export_parameter(e, "in_proj_bias"));
    all = transposed(e, reshaped(e, all, sdlf_shape(0, length, 3, heads, depth)), sdlf_shape(2, 0, 3, 1, 4));
    for (int i = 0; i < 3; i++) {
        const char *one = export_step2(e, "Gather", all, export_number(e, i, SDLF_INT64)); /* axis 0 */
        cut[i] = one;
        if (i == 2 || !options->rotary) continue;
        rotary_terms(e, one, (double)options->base, length, depth, terms);
        cut[i] = export_step(e, "Add", terms, NULL);
    }
    const char *scale = export_number(e, 1 / sqrt((double)depth), SDLF_FLOAT32);
    const char *q = export_step2(e, "Mul", cut[0], scale), *k = transposed(e, cut[1], sdlf_shape(0, 1, 3, 2));
    const char *scores = masked(e, export_step2(e, "MatMul", q, k), options->causal, length);
    const char *p = export_step(e, "Softmax", (const char *const[]){scores, NULL},
                                (const export_attribute[]){export_integer("axis", -1), {0}});
    const char *said = transposed(e, export_step2(e, "MatMul", p, cut[2]), sdlf_shape(0, 2, 1, 3));
    said = reshaped(e, said, sdlf_shape(0, length, x.dim[2]));
    const char *weight = transposed(e, export_parameter(e, "out_proj_weight"), sdlf_shape(1, 0));
    if (options->no_bias) {
        export_node(e, "MatMul", (const char *const[]){said, weight, NULL}, NULL);
        return;
    }
    const char *product = export_step2(e, "MatMul", said, weight);
    export_node(e, "Add", (const char *const[]){product, export_parameter(e, "out_proj_bias"), NULL}, NULL);
}
