/* SPDX-License-Identifier: MIT */
/* The scaling benchmark as tables and as JSON. */
#include "apps/bench/scaling/report.h"

#include <math.h>
#include <stdio.h>

#include <sdlf/version.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

const char *const scaling_names[] = {"strong", "weak"};

double scaling_times(const scaling_report *r, scaling_kind kind, int index)
{
    const scaling_point *one = &r->point[kind][0], *p = &r->point[kind][index];
    if (!(one->seconds > 0 && p->seconds > 0)) return (double)NAN;
    return (double)p->batch / (double)one->batch * (one->seconds / p->seconds);
}

double scaling_efficiency(const scaling_report *r, scaling_kind kind, int index)
{
    return scaling_times(r, kind, index) / r->point[kind][index].ranks;
}

double scaling_hidden(const scaling_point *p)
{
    if (p->ranks < 2 || !(p->sums > 0)) return (double)NAN;
    return fmin(1, fmax(0, 1 - (p->seconds - p->compute) / p->sums));
}

double scaling_rate(const scaling_point *p)
{
    return p->ranks > 1 && p->sums > 0 ? scaling_sent(p->ranks, p->bytes) / p->sums : (double)NAN;
}

double scaling_large_rate(const scaling_report *r, int index)
{
    bool measured = r->large[index] > 0;
    return measured ? scaling_sent(r->point[SCALING_WEAK][index].ranks, SCALING_SUM) / r->large[index] : (double)NAN;
}

static void print_kind(const terminal *out, const scaling_report *r, scaling_kind kind)
{
    report_label(out, scaling_names[kind]);
    printf("%s samples %s\n\n", number_count(r->batch).text,
           kind == SCALING_STRONG ? "a step, for all ranks together" : "a step, for each rank");
    table *t =
        table_create(">ranks|>samples/s|>times|>efficiency|>ms a step|>computing|>sums|>hidden|>MB|>GB/s|>of GB/s");
    for (int i = 0; i < r->count; i++) {
        const scaling_point *p = &r->point[kind][i];
        if (p->batch == 0) continue;
        bool several = p->ranks > 1;
        table_cell(t, "%d", p->ranks);
        table_cell(t, "%s", number_fixed((double)p->batch / p->seconds, 0).text);
        table_cell(t, "%s", number_three(scaling_times(r, kind, i)).text);
        table_cell(t, "%s", number_percent(scaling_efficiency(r, kind, i), 1).text);
        table_cell(t, "%s", number_fixed(1e3 * p->seconds, 3).text);
        table_cell(t, "%s", number_fixed(1e3 * p->compute, 3).text);
        table_cell(t, "%s", several ? number_fixed(1e3 * p->sums, 3).text : "");
        table_cell(t, "%s", several ? number_percent(scaling_hidden(p), 0).text : "");
        table_cell(t, "%s", several ? number_fixed(1e-6 * scaling_sent(p->ranks, p->bytes), 2).text : "");
        table_cell(t, "%s", several ? number_fixed(1e-9 * scaling_rate(p), 2).text : "");
        table_cell(t, "%s", several ? number_fixed(1e-9 * scaling_large_rate(r, i), 2).text : "");
    }
    table_print(t, out, 2);
    table_free(t);
    putchar('\n');
}

void scaling_print(const terminal *out, const scaling_report *r)
{
    for (int kind = 0; kind < SCALING_KINDS; kind++) print_kind(out, r, (scaling_kind)kind);
    report_note(
        out, "times: samples a second against one rank's; efficiency: that for each rank. computing: ms of the same "
             "steps without the sums over ranks; sums: ms of the sums of a step, by themselves; hidden: the share of "
             "their time that is hidden behind computing. MB: what each rank sends of a step's gradients (2 (n - 1) / "
             "n times their bytes, as by a ring), GB/s: that in the sums' time; of GB/s: the same of one sum of 64 MB, "
             "measured in this run.");
    fflush(stdout);
}

static json_t *point_json(const scaling_report *r, scaling_kind kind, int index)
{
    const scaling_point *p = &r->point[kind][index];
    return json_pack(
        "{si sI so so so so so so so sI si so so}", "ranks", p->ranks, "batch", (json_int_t)p->batch, "seconds",
        json_number(p->seconds), "samples_per_second", json_number((double)p->batch / p->seconds), "times",
        json_number(scaling_times(r, kind, index)), "efficiency", json_number(scaling_efficiency(r, kind, index)),
        "compute_seconds", json_number(p->compute), "sum_seconds", json_number(p->ranks > 1 ? p->sums : (double)NAN),
        "hidden", json_number(scaling_hidden(p)), "gradient_bytes", (json_int_t)p->bytes, "buckets", p->buckets,
        "sent_bytes", json_number(scaling_sent(p->ranks, p->bytes)), "bytes_per_second", json_number(scaling_rate(p)));
}

json_t *scaling_json(const scaling_report *r)
{
    json_t *result =
        json_pack("{ss so ss ss so ss ss sb sI sI sI}", "version", SDLF_VERSION, "network", json_text(r->network),
                  "sample", sdlf_shape_print(r->sample).text, "communicator", r->communicator, "runs_on",
                  json_text(r->runs_on), "math", r->math, "gradient_dtype", r->gradients, "sync_batch_norm", r->sync,
                  "batch", (json_int_t)r->batch, "steps", (json_int_t)r->steps, "repeats", (json_int_t)r->repeats);
    for (int kind = 0; kind < SCALING_KINDS; kind++) {
        json_t *points = json_array();
        for (int i = 0; i < r->count; i++)
            if (r->point[kind][i].batch > 0) json_array_append_new(points, point_json(r, (scaling_kind)kind, i));
        json_object_set_new(result, scaling_names[kind], points);
    }
    json_t *sums = json_array();
    for (int i = 0; i < r->count; i++) {
        if (!(r->large[i] > 0)) continue;
        json_array_append_new(sums, json_pack("{si si so so}", "ranks", r->point[SCALING_WEAK][i].ranks, "bytes",
                                              SCALING_SUM, "seconds", json_number(r->large[i]), "bytes_per_second",
                                              json_number(scaling_large_rate(r, i))));
    }
    json_object_set_new(result, "large_sums", sums);
    return result;
}
