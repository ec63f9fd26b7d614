/* SPDX-License-Identifier: MIT */
/* Epochs on host and device side by side, as tables and as JSON. */
#include "apps/bench/epoch_report.h"

#include <stdio.h>
#include <stdlib.h>

#include <sdlf/version.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"
#include "apps/system/memory.h"

static double ratio(double host, double device)
{
    return host > 0 && device > 0 ? host / device : 0;
}

/* Milliseconds of a whole epoch; empty if nothing ran. */
static void cell_time(table *t, double seconds, double steps)
{
    table_cell(t, "%s", seconds > 0 ? number_fixed(1e3 * seconds * steps, 2).text : "");
}

static void cell_ratio(table *t, double value)
{
    table_cell(t, "%s", value > 0 ? number_three(value).text : "");
}

static void print_line(table *t, const layer_line *line, const char *name, double steps)
{
    table_cell(t, "%s", name);
    table_cell(t, "%s", line->shape.rank > 0 ? sdlf_shape_print(line->shape).text : "");
    for (int side = 0; side < LAYER_TIMES_SIDES; side++) {
        for (int phase = 0; phase < LAYER_TIMES_PHASES; phase++) cell_time(t, line->seconds[side][phase], steps);
    }
    cell_ratio(t, ratio(layer_times_sum(line, 0), layer_times_sum(line, 1)));
}

static double steps_of(const epoch_comparison *b)
{
    return (double)b->epoch[0].samples / (double)b->batch;
}

void epoch_print(const terminal *out, const epoch_report *r, const epoch_comparison *b)
{
    double steps = steps_of(b);
    report_label(out, "batch");
    printf("%s, %s steps an epoch; ms of an epoch:\n\n", number_count(b->batch).text,
           number_count(b->epoch[0].steps).text);
    char *headings = memory_print("layer|-output|>%s fwd|>bwd|->update|>copies|>%s fwd|>bwd|->update|>copies|>times",
                                  r->calculator[0], r->calculator[1]);
    table *t = table_create(headings);
    for (int i = 0; i < b->layers.count; i++) {
        const layer_line *line = &b->layers.line[i];
        if (layer_times_sum(line, 0) + layer_times_sum(line, 1) > 0) print_line(t, line, line->name, steps);
    }
    layer_line total = layer_times_total(&b->layers);
    table_rule(t);
    print_line(t, &total, "total", steps);
    table_print(t, out, 2);
    table_free(t);
    free(headings);
    putchar('\n');
    fflush(stdout);
}

void epoch_print_summary(const terminal *out, const epoch_report *r)
{
    char *headings = memory_print(">batch|>%s|>samples/s|>layers|>%s|>samples/s|>layers|>times|", r->calculator[0],
                                  r->calculator[1]);
    table *t = table_create(headings);
    bool estimated = false;
    for (int i = 0; i < r->count; i++) {
        const epoch_comparison *b = &r->batch[i];
        layer_line total = layer_times_total(&b->layers);
        table_cell(t, "%s", number_count(b->batch).text);
        for (int side = 0; side < LAYER_TIMES_SIDES; side++) {
            const epoch_time *e = &b->epoch[side];
            table_cell(t, "%s", number_duration(e->seconds).text);
            table_cell(t, "%s", number_fixed((double)e->samples / e->seconds, 0).text);
            table_cell(t, "%s", number_duration(layer_times_sum(&total, side) * steps_of(b)).text);
            estimated = estimated || e->measured_steps < e->steps;
        }
        cell_ratio(t, ratio(b->epoch[0].seconds, b->epoch[1].seconds));
        table_cell(t, "%s", "");
    }
    report_label(out, "epoch");
    puts(estimated ? "trained, and extrapolated from some of its steps:\n" : "trained:\n");
    table_print(t, out, 2);
    table_free(t);
    free(headings);
    putchar('\n');
    report_note(
        out, "layers: the sum of all layers, each run by itself and waited for; an epoch is quicker where a device "
             "goes on without waiting. An update that is fused with its gradient counts as backward. copies: between "
             "memories, counted at the layer that waits for them.");
}

static json_t *phases_json(const layer_line *line, int side)
{
    const double *s = line->seconds[side];
    return json_pack("{so so so so}", "forward", json_number(s[SDLF_PHASE_FORWARD]), "backward",
                     json_number(s[SDLF_PHASE_BACKWARD]), "update", json_number(s[SDLF_PHASE_UPDATE]), "copies",
                     json_number(s[SDLF_PHASE_COPY]));
}

static json_t *layers_json(const layer_times *times)
{
    json_t *layers = json_array();
    for (int i = 0; i < times->count; i++) {
        const layer_line *line = &times->line[i];
        json_array_append_new(
            layers, json_pack("{so so so so so}", "layer", json_text(line->name), "shape", json_shape(line->shape),
                              "host", phases_json(line, 0), "device", phases_json(line, 1), "times",
                              json_number(ratio(layer_times_sum(line, 0), layer_times_sum(line, 1)))));
    }
    return layers;
}

static json_t *side_json(const epoch_comparison *b, int side)
{
    const epoch_time *e = &b->epoch[side];
    layer_line total = layer_times_total(&b->layers);
    return json_pack("{so so sI sI so}", "seconds", json_number(e->seconds), "samples_per_second",
                     json_number((double)e->samples / e->seconds), "measured_steps", (json_int_t)e->measured_steps,
                     "memory", (json_int_t)e->memory, "layers_seconds_per_step",
                     json_number(layer_times_sum(&total, side)));
}

json_t *epoch_json(const epoch_report *r)
{
    json_t *batches = json_array();
    for (int i = 0; i < r->count; i++) {
        const epoch_comparison *b = &r->batch[i];
        json_array_append_new(batches,
                              json_pack("{sI sI sI so so so so}", "batch", (json_int_t)b->batch, "steps",
                                        (json_int_t)b->epoch[0].steps, "samples", (json_int_t)b->epoch[0].samples,
                                        "host", side_json(b, 0), "device", side_json(b, 1), "times",
                                        json_number(ratio(b->epoch[0].seconds, b->epoch[1].seconds)), "layers_per_step",
                                        layers_json(&b->layers)));
    }
    return json_pack("{ss so so ss ss ss so}", "version", SDLF_VERSION, "network", json_text(r->network), "data",
                     json_text(r->data), "math", r->math, "host", r->calculator[0], "device", r->calculator[1],
                     "batches", batches);
}
