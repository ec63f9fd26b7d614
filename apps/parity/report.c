/* SPDX-License-Identifier: MIT */
/* The results of sdlf parity, as a table and as JSON. */
#include "apps/parity/report.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

/* An empty cell if there is no such tensor. */
static void cell_error(table *t, double error)
{
    if (error < 0) {
        table_cell(t, "%s", "");
    } else {
        table_cell(t, "%.1e", error);
    }
}

/* The largest error of an entry's kind in one layer, with its mean; -1 if there is none. */
typedef struct worst {
    double largest, mean;
} worst;

static worst find_worst(const parity_result *r, const char *layer, unsigned kinds)
{
    worst w = {-1, -1};
    for (int i = 0; i < r->count; i++) {
        const parity_entry *e = &r->entry[i];
        if (strcmp(e->layer, layer) != 0 || !(kinds >> e->kind & 1) || e->error.largest <= w.largest) continue;
        w = (worst){e->error.largest, e->error.mean};
    }
    return w;
}

static bool is_within(const parity_result *r, const char *layer)
{
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->entry[i].layer, layer) == 0 && !r->entry[i].within) return false;
    }
    return true;
}

static void print_layers(const terminal *out, const parity_result *r)
{
    static const unsigned kinds[] = {1u << PARITY_OUTPUT, 1u << PARITY_GRADIENT,
                                     1u << PARITY_PARAMETER | 1u << PARITY_STATISTIC};
    table *t = table_create("layer|-type|shape|>output|->mean|>gradient|->mean|>parameters|->mean|");
    for (int i = 0; i < r->count; i++) {
        const parity_entry *e = &r->entry[i];
        if (e->kind != PARITY_OUTPUT) continue; /* every layer has one, and they come first */
        table_cell(t, "%s", e->layer);
        table_cell(t, "%s", strcmp(e->layer, e->type) == 0 ? "" : e->type);
        table_cell(t, "%s", sdlf_shape_print(e->shape).text);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            worst w = find_worst(r, e->layer, kinds[k]);
            cell_error(t, w.largest);
            cell_error(t, w.mean);
        }
        table_cell(t, "%s", is_within(r, e->layer) ? "" : "beyond");
    }
    table_print(t, out, 2);
    table_free(t);
}

/* "the gradient of conv2d.weight (32x1x5x5)" */
static void print_what(const parity_entry *e)
{
    switch (e->kind) {
    case PARITY_OUTPUT: printf("the output of %s", e->layer); break;
    case PARITY_GRADIENT: printf("the output gradient of %s", e->layer); break;
    case PARITY_PARAMETER: printf("the gradient of %s", e->parameter); break;
    case PARITY_STATISTIC: printf("%s", e->parameter); break;
    case PARITY_KINDS: break;
    }
    printf(" (%s, %s)", e->type, sdlf_shape_print(e->shape).text);
}

static const parity_entry *find_largest(const parity_result *r)
{
    const parity_entry *largest = NULL;
    for (int i = 0; i < r->count; i++) {
        if (!largest || r->entry[i].error.largest > largest->error.largest) largest = &r->entry[i];
    }
    return largest;
}

void parity_print(const terminal *out, const parity_report *p)
{
    const parity_options *o = p->options;
    const parity_result *r = p->result;
    const parity_entry *largest = find_largest(r);
    report_label(out, "parity");
    printf("a: %s %s, b: %s %s; %s, batch %s, %s\n\n", o->calculator[0]->type->name, sdlf_math_name(p->math[0]),
           o->calculator[1]->type->name, sdlf_math_name(p->math[1]), sdlf_dtype_name(o->dtype),
           number_count(o->batch).text,
           o->mode == SDLF_INFER ? "inference"
           : o->own_activations  ? "training; each side on its own activations"
                                 : "training; gradients on a's activations");
    print_layers(out, r);
    putchar('\n');
    report_note(
        out, "output, output gradient, parameter gradients: the largest error of an element, and the mean, as shares "
             "of the largest magnitude in the tensor");
    if (r->first < 0) {
        report_label(out, "agree");
        if (!largest) {
            puts(r->all ? "there was nothing to compare" : "nothing was compared");
            return;
        }
        printf("%sno error above %.0e; the largest, %.1e, is in ", r->all ? "" : "so far ", o->tolerance,
               largest->error.largest);
        print_what(largest);
        putchar('\n');
        return;
    }
    const parity_entry *first = &r->entry[r->first];
    report_label(out, "differ");
    printf("layer %s is the first beyond %.0e: ", first->layer, o->tolerance);
    print_what(first);
    printf(" has an error of %.1e at element %s: %.9g and %.9g\n", first->error.largest,
           number_count(first->error.element).text, first->error.a, first->error.b);
}

static json_t *entry_json(const parity_entry *e)
{
    return json_pack("{ss so ss so so so so so sI so so sb}", "what", parity_kind_names[e->kind], "layer",
                     json_text(e->layer), "type", e->type, "parameter", json_text(e->parameter), "shape",
                     json_shape(e->shape), "largest", json_number(e->error.largest), "mean", json_number(e->error.mean),
                     "scale", json_number(e->error.scale), "element", (json_int_t)e->error.element, "a",
                     json_number(e->error.a), "b", json_number(e->error.b), "within", e->within);
}

static json_t *side_json(const parity_report *p, int side)
{
    sdlf_calculator *calculator = p->options->calculator[side];
    char text[256] = "";
    if (calculator->type->describe) calculator->type->describe(calculator, text, sizeof text);
    return json_pack("{ss ss so}", "calculator", calculator->type->name, "math", sdlf_math_name(p->math[side]),
                     "runs_on", json_text(text));
}

json_t *parity_json(const parity_report *p)
{
    const parity_options *o = p->options;
    const parity_result *r = p->result;
    json_t *entries = json_array();
    for (int i = 0; i < r->count; i++) json_array_append_new(entries, entry_json(&r->entry[i]));
    return json_pack("{ss so so ss ss sI so so so sb sb so so}", "version", SDLF_VERSION, "network",
                     json_text(sdlf_model_name(o->model[0])), "data", json_text(p->data), "mode",
                     o->mode == SDLF_TRAIN ? "train" : "infer", "dtype", sdlf_dtype_name(o->dtype), "batch",
                     (json_int_t)o->batch, "a", side_json(p, 0), "b", side_json(p, 1), "tolerance",
                     json_number(o->tolerance), "own_activations", o->own_activations, "agree", r->all && r->first < 0,
                     "first", r->first < 0 ? json_null() : entry_json(&r->entry[r->first]), "tensors", entries);
}
