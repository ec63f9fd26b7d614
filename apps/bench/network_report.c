/* SPDX-License-Identifier: MIT */
/* The results of sdlf bench network. */
#include "apps/bench/network_report.h"

#include <math.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/output/algorithms.h"
#include "apps/output/copies.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

/* One pass of one layer, or of all: its time and the lower bound that the limits give. */
typedef struct pass {
    double seconds, floor;
    sdlf_cost cost;
} pass;

static pass pass_of(const bench_result *result, const char *calculator, sdlf_cost cost, double seconds)
{
    pass p = {.seconds = seconds, .cost = cost};
    for (int i = 0; i < result->ceiling_count && calculator; i++) {
        const ceilings *c = &result->ceilings[i];
        if (strcmp(c->calculator, calculator) == 0) p.floor = ceilings_floor(c, cost);
    }
    return p;
}

static pass forward_of(const bench_result *result, const sdlf_layer_info *info)
{
    return pass_of(result, info->forward, info->forward_cost, info->forward_seconds);
}

static pass backward_of(const bench_result *result, const sdlf_layer_info *info)
{
    return pass_of(result, info->backward, info->backward_cost, info->backward_seconds);
}

static void add(pass *total, pass part)
{
    total->seconds += part.seconds;
    total->floor += part.floor;
    total->cost.flops += part.cost.flops;
    total->cost.bytes += part.cost.bytes;
}

/* Both passes of all layers. */
static pass step_of(const bench_result *result)
{
    pass total = {0};
    for (int i = 0; i < sdlf_plan_layer_count(result->plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(result->plan, i);
        add(&total, forward_of(result, &info));
        add(&total, backward_of(result, &info));
    }
    return total;
}

/* Milliseconds, GFLOP/s, GB/s and the share of the floor; four empty cells if nothing ran. */
static void cell_pass(table *t, pass p)
{
    bool ran = p.seconds > 0;
    table_cell(t, "%s", ran ? number_fixed(1e3 * p.seconds, 3).text : "");
    table_cell(t, "%s", ran ? number_fixed(1e-9 * (double)p.cost.flops / p.seconds, 1).text : "");
    table_cell(t, "%s", ran ? number_fixed(1e-9 * (double)p.cost.bytes / p.seconds, 1).text : "");
    table_cell(t, "%s", ran ? number_percent(p.floor / p.seconds, 0).text : "");
}

static void print_layers(const terminal *out, const bench_result *result)
{
    table *t = table_create(result->mode == SDLF_TRAIN
                                ? "layer|-output|>fwd ms|>GFLOP/s|->GB/s|>floor|>bwd ms|>GFLOP/s|->GB/s|>floor"
                                : "layer|output|>ms|>GFLOP/s|>GB/s|>floor||||");
    pass forward = {0}, backward = {0};
    for (int i = 0; i < sdlf_plan_layer_count(result->plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(result->plan, i);
        table_cell(t, "%s", info.layer);
        table_cell(t, "%s", sdlf_shape_print(info.shape).text);
        cell_pass(t, forward_of(result, &info));
        cell_pass(t, backward_of(result, &info));
        add(&forward, forward_of(result, &info));
        add(&backward, backward_of(result, &info));
    }
    table_rule(t);
    table_cell(t, "total");
    table_cell(t, "%s", "");
    cell_pass(t, forward);
    cell_pass(t, backward);
    table_print(t, out, 2);
    table_free(t);
    copies_print(out, result->plan, true);
    algorithms_print(out, result->plan);
}

static void print_epoch(const terminal *out, const bench_result *result, pass step)
{
    const epoch_time *e = &result->epoch;
    double floor = step.floor * (double)e->samples / (double)result->batch;
    report_label(out, "epoch");
    printf("%s for %s samples, %s samples/s, %s a step of %s", number_duration(e->seconds).text,
           number_count(e->samples).text, number_fixed((double)e->samples / e->seconds, 0).text,
           number_duration(e->seconds / (double)e->steps).text, number_count(result->batch).text);
    if (e->measured_steps < e->steps) {
        printf("; extrapolated from %s of %s steps", number_count(e->measured_steps).text, number_count(e->steps).text);
    }
    putchar('\n');
    if (!result->plan) return;
    report_label(out, "floor");
    printf("%s for the epoch: %s of its time\n", number_duration(floor).text,
           number_percent(floor / e->seconds, 0).text);
}

void bench_print_limits(const terminal *out, const bench_result *result)
{
    for (int i = 0; i < result->ceiling_count; i++) {
        const ceilings *c = &result->ceilings[i];
        report_label(out, "limits");
        printf("%s: %s in a product of %sx%s, %s in a copy of %s\n", c->calculator,
               number_scaled(c->flops, "FLOP/s").text, number_count(c->side).text, number_count(c->side).text,
               number_scaled(c->bytes, "B/s").text, number_bytes(c->copy_bytes).text);
    }
    fflush(stdout);
}

void bench_print(const terminal *out, const bench_result *result)
{
    pass step = step_of(result);
    if (result->epoch.seconds > 0) {
        print_epoch(out, result, step);
        if (!result->plan) return;
    } else {
        report_label(out, "pass");
        printf("%s for %s samples, %s samples/s; floor %s: %s of its time\n", number_duration(step.seconds).text,
               number_count(result->batch).text, number_fixed((double)result->batch / step.seconds, 0).text,
               number_duration(step.floor).text, number_percent(step.floor / step.seconds, 0).text);
    }
    putchar('\n');
    print_layers(out, result);
    putchar('\n');
    report_note(out,
                "floor: the part of its time that a layer's FLOPs or bytes, whichever take longer, need at the limits "
                "above; more than 100% where its data stayed in a cache");
}

static json_t *pass_json(pass p)
{
    if (p.seconds <= 0) return json_null();
    return json_pack("{so sI sI so so so}", "seconds", json_number(p.seconds), "flops", (json_int_t)p.cost.flops,
                     "bytes", (json_int_t)p.cost.bytes, "flops_per_second",
                     json_number((double)p.cost.flops / p.seconds), "bytes_per_second",
                     json_number((double)p.cost.bytes / p.seconds), "of_floor", json_number(p.floor / p.seconds));
}

static json_t *epoch_json(const bench_result *result)
{
    const epoch_time *e = &result->epoch;
    if (e->seconds <= 0) return json_null();
    double floor = step_of(result).floor * (double)e->samples / (double)result->batch;
    return json_pack("{so sI sI sI so so so}", "seconds", json_number(e->seconds), "samples", (json_int_t)e->samples,
                     "steps", (json_int_t)e->steps, "measured_steps", (json_int_t)e->measured_steps,
                     "samples_per_second", json_number((double)e->samples / e->seconds), "floor_seconds",
                     json_number(floor), "of_floor", json_number(floor / e->seconds));
}

json_t *bench_json(const bench_result *result)
{
    json_t *limits = json_array(), *layers = json_array();
    for (int i = 0; i < result->ceiling_count; i++) {
        const ceilings *c = &result->ceilings[i];
        json_array_append_new(limits,
                              json_pack("{ss so sI so sI}", "calculator", c->calculator, "flops_per_second",
                                        json_number(c->flops), "product_side", (json_int_t)c->side, "bytes_per_second",
                                        json_number(c->bytes), "copy_bytes", (json_int_t)c->copy_bytes));
    }
    for (int i = 0; i < sdlf_plan_layer_count(result->plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(result->plan, i);
        json_array_append_new(layers, json_pack("{so so so so}", "layer", json_text(info.layer), "shape",
                                                json_shape(info.shape), "forward", pass_json(forward_of(result, &info)),
                                                "backward", pass_json(backward_of(result, &info))));
    }
    json_t *copied = copies_json(result->plan, true);
    return json_pack("{ss so so ss ss sI so so so so so so}", "version", SDLF_VERSION, "network",
                     json_text(sdlf_model_name(result->model)), "data", json_text(result->data), "mode",
                     result->mode == SDLF_TRAIN ? "train" : "infer", "math", result->math, "batch",
                     (json_int_t)result->batch, "limits", limits, "epoch", epoch_json(result), "step",
                     pass_json(step_of(result)), "copies", copied, "algorithms", algorithms_json(result->plan),
                     "layers", layers);
}
