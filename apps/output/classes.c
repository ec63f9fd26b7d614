/* SPDX-License-Identifier: MIT */
/* How well each class is distinguished. */
#include "apps/output/classes.h"

#include <inttypes.h>
#include <math.h>

#include "apps/output/number.h"
#include "apps/output/table.h"

typedef struct class_figures {
    int64_t count;    /* samples of this class */
    int64_t called;   /* samples predicted as this class */
    int64_t correct;  /* both */
    int mistaken_for; /* the class that samples of this one are most often mistaken for, other than itself; -1: none */
    double precision, recall; /* NaN if nothing was counted */
} class_figures;

static int64_t cell(const sdlf_evaluation *e, int truth, int predicted)
{
    return e->confusion[(int64_t)truth * e->class_count + predicted];
}

static class_figures figures_of(const sdlf_evaluation *e, int label)
{
    class_figures f = {.correct = cell(e, label, label), .mistaken_for = -1};
    int64_t most = 0;
    for (int other = 0; other < e->class_count; other++) {
        f.count += cell(e, label, other);
        f.called += cell(e, other, label);
        if (other == label || cell(e, label, other) <= most) continue;
        most = cell(e, label, other);
        f.mistaken_for = other;
    }
    f.precision = f.called > 0 ? (double)f.correct / (double)f.called : NAN;
    f.recall = f.count > 0 ? (double)f.correct / (double)f.count : NAN;
    return f;
}

/* "3", or, with a name, "3 cat". */
static void class_cell(table *t, const labels *names, int label)
{
    const char *name = labels_name(names, label);
    table_cell(t, "%d%s%s", label, name ? " " : "", name ? name : "");
}

void classes_print(const terminal *out, const sdlf_evaluation *e, const labels *names)
{
    bool named = names->count > 0;
    char headings[96];
    snprintf(headings, sizeof headings, "%sclass|>%s|>precision|>recall|%s%smistaken for|>times", named ? "" : ">",
             e->of_pixels ? "pixels" : "samples", e->of_pixels ? ">IoU|" : "", named ? "" : ">");
    table *t = table_create(headings);
    for (int label = 0; label < e->class_count; label++) {
        class_figures f = figures_of(e, label);
        class_cell(t, names, label);
        table_cell(t, "%s", number_count(f.count).text);
        table_cell(t, "%s", number_percent(f.precision, 2).text);
        table_cell(t, "%s", number_percent(f.recall, 2).text);
        if (e->of_pixels) table_cell(t, "%s", number_percent(sdlf_evaluation_iou(e, label), 2).text);
        bool mistaken = f.mistaken_for >= 0;
        if (mistaken)
            class_cell(t, names, f.mistaken_for);
        else
            table_cell(t, "%s", "");
        table_cell(t, "%s", mistaken ? number_count(cell(e, label, f.mistaken_for)).text : "");
    }
    table_print(t, out, 2);
    table_free(t);
}

void classes_print_confusion(const terminal *out, const sdlf_evaluation *e, const labels *names)
{
    char headings[2048];
    size_t used = (size_t)snprintf(headings, sizeof headings, "%strue", names->count > 0 ? "" : ">");
    for (int label = 0; label < e->class_count && used < sizeof headings; label++) {
        used += (size_t)snprintf(headings + used, sizeof headings - used, "|>%d", label);
    }
    const char *bold = terminal_escape(out, TERMINAL_BOLD), *dim = terminal_escape(out, TERMINAL_DIM),
               *plain = terminal_escape(out, TERMINAL_PLAIN);
    table *t = table_create(headings);
    for (int truth = 0; truth < e->class_count; truth++) {
        class_cell(t, names, truth);
        for (int predicted = 0; predicted < e->class_count; predicted++) {
            int64_t count = cell(e, truth, predicted);
            if (count == 0) {
                table_cell(t, "%s.%s", dim, plain);
            } else {
                table_cell(t, "%s%s%s", truth == predicted ? bold : "", number_count(count).text,
                           truth == predicted ? plain : "");
            }
        }
    }
    table_print(t, out, 2);
    table_free(t);
}

json_t *classes_json(const sdlf_evaluation *e, const labels *names)
{
    json_t *classes = json_array(), *confusion = json_array();
    for (int label = 0; label < e->class_count; label++) {
        class_figures f = figures_of(e, label);
        const char *name = labels_name(names, label);
        json_array_append_new(classes,
                              json_pack("{si so sI sI sI so so so*}", "class", label, "name",
                                        name ? json_text(name) : json_null(), "samples", (json_int_t)f.count, "called",
                                        (json_int_t)f.called, "correct", (json_int_t)f.correct, "precision",
                                        json_number(f.precision), "recall", json_number(f.recall), "iou",
                                        e->of_pixels ? json_number(sdlf_evaluation_iou(e, label)) : NULL));
        json_t *row = json_array();
        for (int other = 0; other < e->class_count; other++) {
            json_array_append_new(row, json_integer(cell(e, label, other)));
        }
        json_array_append_new(confusion, row);
    }
    return json_pack("{sI sI so so so so so so*}", "samples", (json_int_t)e->samples, "correct", (json_int_t)e->correct,
                     "accuracy", json_number((double)e->correct / (double)e->samples), "loss", json_number(e->loss),
                     "seconds", json_number(e->seconds), "classes", classes, "confusion", confusion, "mean_iou",
                     e->of_pixels ? json_number(sdlf_evaluation_mean_iou(e)) : NULL);
}
