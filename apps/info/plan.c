/* SPDX-License-Identifier: MIT */
/* sdlf info --net: the plan of a network, and the memory it takes. */
#include "apps/info/info.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/output/copies.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

static const char *const phase_names[] = {"forward", "backward", "update", "copy"};

/* Prints millions with two decimals, so that a column lines up; empty for 0. */
static void cell_millions(table *t, int64_t count)
{
    table_cell(t, "%s", count > 0 ? number_fixed((double)count / 1e6, 2).text : "");
}

static void cell_time(table *t, double seconds)
{
    table_cell(t, "%s", seconds > 0 ? number_fixed(1e3 * seconds, 3).text : "");
}

static void cell_count(table *t, int64_t count)
{
    table_cell(t, "%s", count >= 0 ? number_count(count).text : "");
}

/* True if a layer's name is its type, except for a number that distinguishes layers of one type ("relu_2"). True also for
 * the loss that a plan adds. */
static bool is_named_by_type(const char *name, const char *type)
{
    if (strcmp(name, "loss") == 0) return true;
    while (*name) {
        if (*name == *type) {
            name++;
            type++;
        } else if (*name == '_') {
            name += 1 + strspn(name + 1, "0123456789");
        } else {
            return false;
        }
    }
    return *type == '\0';
}

/* True if any layer runs elsewhere than the first one's forward pass. */
static bool is_spread(const sdlf_plan *plan)
{
    const char *first = NULL;
    for (int i = 0; i < sdlf_plan_layer_count(plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        if (!first) first = info.forward;
        if (strcmp(info.forward, first) != 0 || (info.backward && strcmp(info.backward, first) != 0)) return true;
    }
    return false;
}

/* "cpu", or "cuda, cpu" if the backward pass runs elsewhere. */
static void cell_calculators(table *t, const sdlf_layer_info *info)
{
    bool two = info->backward && strcmp(info->forward, info->backward) != 0;
    table_cell(t, "%s%s%s", info->forward, two ? ", " : "", two ? info->backward : "");
}

static void print_layers(const terminal *out, const sdlf_plan *plan, bool training, bool timed)
{
    table *t =
        table_create(training ? "layer|type|output|on|>parameters|>MFLOP fwd|>bwd|->MB fwd|->bwd|>ms fwd|>bwd|->offset"
                              : "layer|type|output|on|>parameters|>MFLOP||->MB||>ms||->offset");
    sdlf_layer_info total = {.parameters = 0};
    bool spread = is_spread(plan);
    for (int i = 0; i < sdlf_plan_layer_count(plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        table_cell(t, "%s", info.layer);
        table_cell(t, "%s", is_named_by_type(info.layer, info.type) ? "" : info.type);
        table_cell(t, "%s", sdlf_shape_print(info.shape).text);
        if (spread) cell_calculators(t, &info);
        if (!spread) table_cell(t, "%s", "");
        cell_count(t, info.parameters > 0 ? info.parameters : -1);
        cell_millions(t, info.forward_cost.flops);
        cell_millions(t, info.backward_cost.flops);
        cell_millions(t, info.forward_cost.bytes);
        cell_millions(t, info.backward_cost.bytes);
        cell_time(t, timed ? info.forward_seconds : 0);
        cell_time(t, timed ? info.backward_seconds : 0);
        cell_count(t, info.offset);
        total.parameters += info.parameters;
        total.forward_cost.flops += info.forward_cost.flops;
        total.forward_cost.bytes += info.forward_cost.bytes;
        total.backward_cost.flops += info.backward_cost.flops;
        total.backward_cost.bytes += info.backward_cost.bytes;
        total.forward_seconds += info.forward_seconds;
        total.backward_seconds += info.backward_seconds;
    }
    table_rule(t);
    table_cell(t, "total");
    for (int i = 0; i < 3; i++) table_cell(t, "%s", "");
    cell_count(t, total.parameters);
    cell_millions(t, total.forward_cost.flops);
    cell_millions(t, total.backward_cost.flops);
    cell_millions(t, total.forward_cost.bytes);
    cell_millions(t, total.backward_cost.bytes);
    cell_time(t, timed ? total.forward_seconds : 0);
    cell_time(t, timed ? total.backward_seconds : 0);
    table_cell(t, "%s", "");
    table_print(t, out, 2);
    table_free(t);
}

static void print_steps(const terminal *out, const sdlf_plan *plan, bool timed)
{
    table *t =
        table_create("->#|phase|layer|operation|on|-algorithm|output|-dtype|>MFLOP|->MB|->offset|->workspace|>ms");
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info info = sdlf_plan_step_info(plan, i);
        table_cell(t, "%d", i + 1);
        table_cell(t, "%s", phase_names[info.phase]);
        table_cell(t, "%s", info.layer ? info.layer : "");
        table_cell(t, "%s", info.operation);
        table_cell(t, "%s", info.calculator);
        table_cell(t, "%s", info.algorithm ? info.algorithm : "");
        table_cell(t, "%s", sdlf_shape_print(info.shape).text);
        table_cell(t, "%s", sdlf_dtype_name(info.dtype));
        cell_millions(t, info.cost.flops);
        cell_millions(t, info.cost.bytes);
        cell_count(t, info.offset);
        cell_count(t, info.workspace > 0 ? info.workspace : -1);
        table_cell(t, "%s", timed ? number_fixed(1e3 * info.seconds, 3).text : "");
    }
    table_print(t, out, 2);
    table_free(t);
}

static void print_memory(const terminal *out, const sdlf_memory_info *memory, const sdlf_machine *here)
{
    char text[200];
    table *t = table_create("memory|>bytes|");
    const struct {
        const char *what;
        int64_t bytes;
    } row[] = {
        {"activations, gradients, workspaces, prepacked weights", memory->arena},
        {"parameters", memory->parameters},
        {"optimizer states", memory->states},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (row[i].bytes == 0) continue;
        table_cell(t, "%s", row[i].what);
        cell_count(t, row[i].bytes);
        table_cell(t, "%s", "");
    }
    int64_t total = memory->arena + memory->parameters + memory->states;
    table_rule(t);
    table_cell(t, "total");
    cell_count(t, total);
    table_cell(t, "%s", number_bytes(total).text);
    table_print(t, out, 2);
    table_free(t);
    snprintf(text, sizeof text, "%s of the host's memory is available (%s).",
             number_bytes(here->available + here->held).text, here->available_by);
    fputs("  ", out->file);
    report_wrapped(out, text, 2);
    if (memory->unshared > memory->arena) {
        snprintf(
            text, sizeof text,
            "Activations, gradients and workspaces share their memory by lifetime; apart they would take %s bytes.",
            number_count(memory->unshared).text);
        fputs("  ", out->file);
        report_wrapped(out, text, 2);
    }
}

void info_print_plan(const terminal *out, const info_plan *p)
{
    bool training = p->options->mode == SDLF_TRAIN;
    report_network(out, &(report_subject){.model = p->model,
                                          .plan = p->plan,
                                          .mode = p->options->mode,
                                          .batch = p->options->batch,
                                          .memory = p->memory.arena + p->memory.parameters + p->memory.states,
                                          .note = ""});
    report_label(out, "plan");
    printf("batch %s, %s\n\n", number_count(p->options->batch).text, training ? "training" : "inference");
    print_layers(out, p->plan, training, p->timed);
    copies_print(out, p->plan, p->timed);
    putchar('\n');
    if (p->steps) {
        print_steps(out, p->plan, p->timed);
        putchar('\n');
    }
    print_memory(out, &p->memory, &p->here);
}

static json_t *layer_json(const sdlf_layer_info *info)
{
    return json_pack("{so so so so so ss sI sI sI sI sI sI}", "layer", json_text(info->layer), "type",
                     json_text(info->type), "forward", json_text(info->forward), "backward", json_text(info->backward),
                     "shape", json_shape(info->shape), "dtype", sdlf_dtype_name(info->dtype), "parameters",
                     (json_int_t)info->parameters, "forward_flops", (json_int_t)info->forward_cost.flops,
                     "forward_bytes", (json_int_t)info->forward_cost.bytes, "backward_flops",
                     (json_int_t)info->backward_cost.flops, "backward_bytes", (json_int_t)info->backward_cost.bytes,
                     "offset", (json_int_t)info->offset);
}

static json_t *step_json(const sdlf_step_info *info, bool timed)
{
    return json_pack(
        "{ss so so so so so ss sI sI sI sI so}", "phase", phase_names[info->phase], "layer", json_text(info->layer),
        "operation", json_text(info->operation), "calculator", json_text(info->calculator), "algorithm",
        json_text(info->algorithm), "shape", json_shape(info->shape), "dtype", sdlf_dtype_name(info->dtype), "flops",
        (json_int_t)info->cost.flops, "bytes", (json_int_t)info->cost.bytes, "offset", (json_int_t)info->offset,
        "workspace", (json_int_t)info->workspace, "seconds", json_number(timed ? info->seconds : NAN));
}

json_t *info_plan_json(const info_plan *p)
{
    json_t *layers = json_array(), *steps = json_array();
    for (int i = 0; i < sdlf_plan_layer_count(p->plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(p->plan, i);
        json_array_append_new(layers, layer_json(&info));
    }
    for (int i = 0; i < sdlf_plan_step_count(p->plan); i++) {
        sdlf_step_info info = sdlf_plan_step_info(p->plan, i);
        json_array_append_new(steps, step_json(&info, p->timed));
    }
    json_t *memory = json_pack("{sI sI sI sI sI ss}", "arena", (json_int_t)p->memory.arena, "arena_without_reuse",
                               (json_int_t)p->memory.unshared, "parameters", (json_int_t)p->memory.parameters, "states",
                               (json_int_t)p->memory.states, "available",
                               (json_int_t)(p->here.available + p->here.held), "available_by", p->here.available_by);
    return json_pack("{ss so sI ss sI so so so so}", "version", SDLF_VERSION, "network",
                     json_text(sdlf_model_name(p->model)), "batch", (json_int_t)p->options->batch, "mode",
                     p->options->mode == SDLF_TRAIN ? "train" : "infer", "parameters",
                     (json_int_t)sdlf_model_trainable_count(p->model), "memory", memory, "layers", layers, "copies",
                     copies_json(p->plan, p->timed), "steps", steps);
}
