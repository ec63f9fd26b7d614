/* SPDX-License-Identifier: MIT */
/* The placement experiment as a table and as JSON. */
#include "apps/bench/placement/report.h"

#include <math.h>
#include <stdio.h>

#include <sdlf/version.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

static double against(const placement_row *base, const placement_row *row)
{
    return base->seconds > 0 && row->seconds > 0 ? base->seconds / row->seconds : 0;
}

double placement_against_first(const placement_experiment *e, const placement_row *row)
{
    return against(&e->row[0], row);
}

double placement_against_host(const placement_experiment *e, const placement_row *row)
{
    return against(&e->row[e->host], row);
}

static void cell_ratio(table *t, double ratio)
{
    table_cell(t, "%s", ratio > 0 ? number_three(ratio).text : "");
}

double placement_limit(const placement_experiment *e)
{
    double share = e->row[e->host].backward_share;
    return share > 0 ? 1 / share : 0;
}

/* Amdahl's law: the limit if the forward pass takes no time. */
static void print_limit(const terminal *out, const placement_experiment *e)
{
    const placement_row *host = &e->row[e->host];
    if (placement_limit(e) <= 0) return;
    report_label(out, "limit");
    printf("backward passes and updates take %s of %s: with them there, no row can be more than %s times as fast\n\n",
           number_percent(host->backward_share, 0).text, host->name, number_three(placement_limit(e)).text);
}

void placement_print(const terminal *out, const placement_experiment *e)
{
    report_label(out, "batch");
    printf("%s, %s iterations\n\n", number_count(e->batch).text, number_count(e->iterations).text);
    table *t = table_create("where|>ms a step|>1 thread|>host|>copies|>MB up|>MB down|>copying, ms|>loss|");
    for (int i = 0; i < e->count; i++) {
        const placement_row *row = &e->row[i];
        bool measured = row->seconds > 0, copied = row->copies > 0;
        table_cell(t, "%s", row->name);
        table_cell(t, "%s", measured ? number_fixed(1e3 * row->seconds, 3).text : "-");
        cell_ratio(t, placement_against_first(e, row));
        cell_ratio(t, placement_against_host(e, row));
        table_cell(t, "%s", copied ? number_count(row->copies).text : "");
        table_cell(t, "%s", copied ? number_fixed(1e-6 * (double)row->up, 2).text : "");
        table_cell(t, "%s", copied ? number_fixed(1e-6 * (double)row->down, 2).text : "");
        table_cell(t, "%s", copied ? number_fixed(1e3 * row->copy_seconds, 3).text : "");
        table_cell(t, "%s", measured ? number_fixed(row->loss, 4).text : "");
        table_cell(t, "%s", row->missing);
    }
    table_print(t, out, 2);
    table_free(t);
    putchar('\n');
    print_limit(out, e);
    fflush(stdout);
}

void placement_print_notes(const terminal *out, const placement_report *r)
{
    char text[1024];
    snprintf(text, sizeof text,
             "1 thread, host: how many times faster than the first row, and than all on %s. Where not all is on %s, "
             "backward passes and updates are on %s; a layer goes there with the activations after it. Rows that name "
             "a convolution's algorithm run unfused, so that it is the one that runs; the others fuse what they can. "
             "MB: what a step copies to the memory of %s and back; copying: how long these copies take by themselves.",
             r->host, r->device, r->host, r->device);
    report_note(out, text);
}

static json_t *names_json(const char *const *names)
{
    json_t *array = json_array();
    for (int i = 0; names && names[i]; i++) json_array_append_new(array, json_string(names[i]));
    return array;
}

static json_t *row_json(const placement_experiment *e, const placement_row *row)
{
    json_t *json = json_pack("{ss ss ss sb so}", "name", row->name, "forward", row->forward->type->name, "backward",
                             row->backward->type->name, "fused", row->algorithm[0] == '\0', "available",
                             json_boolean(row->missing[0] == '\0'));
    if (row->placed) {
        json_object_set_new(json, "placed",
                            json_pack("{ss so}", "forward", row->placed->type->name, "layers", names_json(row->types)));
    }
    if (row->algorithm[0]) json_object_set_new(json, "conv_algorithm", json_string(row->algorithm));
    if (row->missing[0]) {
        json_object_set_new(json, "missing", json_text(row->missing));
        return json;
    }
    json_t *copies = json_pack("{si sI sI so}", "count", row->copies, "bytes_up", (json_int_t)row->up, "bytes_down",
                               (json_int_t)row->down, "seconds", json_number(row->copy_seconds));
    json_object_set_new(json, "seconds_per_step", json_number(row->seconds));
    json_object_set_new(json, "samples_per_second", json_number((double)e->batch / row->seconds));
    json_object_set_new(json, "runs", json_integer(row->runs));
    json_object_set_new(json, "against_one_thread", json_number(placement_against_first(e, row)));
    json_object_set_new(json, "against_host", json_number(placement_against_host(e, row)));
    json_object_set_new(json, "copies", copies);
    json_object_set_new(json, "loss", json_number(row->loss));
    return json;
}

json_t *placement_json(const placement_report *r)
{
    json_t *experiments = json_array();
    for (int i = 0; i < r->count; i++) {
        const placement_experiment *e = &r->experiment[i];
        json_t *rows = json_array();
        for (int j = 0; j < e->count; j++) json_array_append_new(rows, row_json(e, &e->row[j]));
        json_array_append_new(experiments,
                              json_pack("{sI sI so so}", "batch", (json_int_t)e->batch, "iterations",
                                        (json_int_t)e->iterations, "limit_against_host",
                                        json_number(placement_limit(e) > 0 ? placement_limit(e) : NAN), "rows", rows));
    }
    return json_pack("{ss so so ss so ss ss so}", "version", SDLF_VERSION, "network", json_text(r->network), "data",
                     json_text(r->data), "math", r->math, "runs_on", json_text(r->runs_on), "host", r->host, "device",
                     r->device, "experiments", experiments);
}
