/* SPDX-License-Identifier: MIT */
/* The results of an evaluation. See evaluation.h. */
#include "apps/output/evaluation.h"

#include <math.h>
#include <stdio.h>

#include "apps/output/classes.h"
#include "apps/output/number.h"
#include "apps/output/table.h"

/* The figures of one target; NaN if nothing was counted. */
typedef struct target_figures {
    double mae, rmse, r2;         /* 1 - (sum of squared differences) / (that of the mean) */
    double precision, recall, f1; /* of bce_with_logits */
    int64_t there;                /* samples with this label */
} target_figures;

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

static target_figures figures_of(const sdlf_evaluation *e, int k)
{
    const sdlf_target_figures *f = &e->targets[k];
    double count = (double)e->samples, spread = f->sum_squares - f->sum * f->sum / count;
    return (target_figures){
        .mae = f->absolute / count,
        .rmse = sqrt(f->squared / count),
        .r2 = spread > 0 ? 1 - f->squared / spread : (double)NAN,
        .precision = share(f->hits, f->hits + f->false_alarms),
        .recall = share(f->hits, f->hits + f->misses),
        .f1 = share(2 * f->hits, 2 * f->hits + f->false_alarms + f->misses),
        .there = f->hits + f->misses,
    };
}

static void print_targets(const terminal *out, const sdlf_evaluation *e, const labels *names)
{
    bool shares = e->kind == SDLF_LOSS_BCE;
    table *t = table_create(shares ? "label|>samples|>precision|>recall|>F1" : "target|>MAE|>RMSE|>R2");
    for (int k = 0; k < e->class_count; k++) {
        target_figures f = figures_of(e, k);
        const char *name = labels_name(names, k);
        table_cell(t, "%d%s%s", k, name ? " " : "", name ? name : "");
        if (shares) {
            table_cell(t, "%s", number_count(f.there).text);
            table_cell(t, "%s", number_percent(f.precision, 2).text);
            table_cell(t, "%s", number_percent(f.recall, 2).text);
            table_cell(t, "%s", number_percent(f.f1, 2).text);
        } else {
            table_cell(t, "%.4g", f.mae);
            table_cell(t, "%.4g", f.rmse);
            table_cell(t, isnan(f.r2) ? "-" : "%.4f", f.r2);
        }
    }
    table_print(t, out, 2);
    table_free(t);
}

void evaluation_print(const terminal *out, const sdlf_evaluation *e, const labels *names, bool confusion)
{
    putchar('\n');
    if (e->targets)
        print_targets(out, e, names);
    else
        classes_print(out, e, names);
    putchar('\n');
    if (!confusion || e->targets) return;
    classes_print_confusion(out, e, names);
    putchar('\n');
}

void evaluation_print_line(const sdlf_evaluation *e)
{
    double accuracy = sdlf_evaluation_accuracy(e);
    if (isnan(accuracy)) {
        printf("RMSE %.4g  MAE %.4g", sdlf_evaluation_rmse(e), sdlf_evaluation_mae(e));
    } else {
        bool several = e->targets != NULL;
        printf("%s%s", number_percent(accuracy, 2).text, several ? " of the labels  " : "  ");
        if (several) printf("F1 %s  ", number_percent(sdlf_evaluation_f1(e), 2).text);
        if (e->of_pixels) printf("mean IoU %s  ", number_percent(sdlf_evaluation_mean_iou(e), 2).text);
        printf("%s of %s%s right", number_count(e->correct).text, number_count(e->samples).text,
               several ? " samples all" : "");
    }
    printf("  loss %s\n", number_loss(e->loss, 4).text);
}

json_t *evaluation_json(const sdlf_evaluation *e, const labels *names)
{
    if (!e->targets) return classes_json(e, names);
    bool shares = e->kind == SDLF_LOSS_BCE;
    json_t *targets = json_array();
    for (int k = 0; k < e->class_count; k++) {
        target_figures f = figures_of(e, k);
        const char *name = labels_name(names, k);
        json_t *row = json_pack("{si so}", "target", k, "name", name ? json_text(name) : json_null());
        json_t *more =
            shares ? json_pack("{sI so so so}", "samples", (json_int_t)f.there, "precision", json_number(f.precision),
                               "recall", json_number(f.recall), "f1", json_number(f.f1))
                   : json_pack("{so so so}", "mae", json_number(f.mae), "rmse", json_number(f.rmse), "r2",
                               json_number(f.r2));
        if (row && more) json_object_update_new(row, more);
        json_array_append_new(targets, row);
    }
    json_t *figures = shares ? json_pack("{so so sI}", "accuracy", json_number(sdlf_evaluation_accuracy(e)), "f1",
                                         json_number(sdlf_evaluation_f1(e)), "correct", (json_int_t)e->correct)
                             : json_pack("{so so}", "rmse", json_number(sdlf_evaluation_rmse(e)), "mae",
                                         json_number(sdlf_evaluation_mae(e)));
    json_t *result =
        json_pack("{ss sI so so so}", "loss_name", sdlf_loss_names[e->kind], "samples", (json_int_t)e->samples, "loss",
                  json_number(e->loss), "seconds", json_number(e->seconds), "targets", targets);
    if (result && figures) json_object_update_new(result, figures);
    return result;
}
