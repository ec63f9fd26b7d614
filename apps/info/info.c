/* SPDX-License-Identifier: MIT */
/* sdlf info: describes this program, or the plan of a network without running it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/execution.h"
#include "apps/arguments/onnx.h"
#include "apps/arguments/optimizer.h"
#include "apps/command.h"
#include "apps/graph/network_graph.h"
#include "apps/info/info.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/file.h"
#include "apps/output/json.h"
#include "apps/output/report.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"

static const char *const mode_names[] = {"infer", "train", NULL}; /* in the order of sdlf_mode */

enum { TIMES = 5 }; /* runs of a plan whose steps are timed */

typedef struct settings {
    argument_list dimensions;
    const char *net, *weights, *graph;
    int64_t batch;
    int mode;
    bool steps, time, json, json_network;
    execution execution;
    optimizer_settings optimizer;
} settings;

static const argument plan_arguments[] = {
    {.name = "A network's plan", .type = ARGUMENT_HEADING},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "a network from the list below, FILE.json or FILE.onnx"},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "a weights file with the network: safetensors or ONNX"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000000, .fallback = "64",
     .help = "samples a step"},
    {"mode", ARGUMENT_CHOICE, offsetof(settings, mode), "MODE", .choices = mode_names, .fallback = "train",
     .help = "what the plan is for"},
    {"steps", ARGUMENT_FLAG, offsetof(settings, steps), .help = "list every operation, not only every layer"},
    {"time", ARGUMENT_FLAG, offsetof(settings, time),
     .help =
         "run the plan a few times, and time each layer, each copy between memories and, with --steps, each operation"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {"json-network", ARGUMENT_FLAG, offsetof(settings, json_network),
     .help = "print the network file of this network, and nothing else"},
    {"graph", ARGUMENT_TEXT, offsetof(settings, graph), "FILE.svg", .standard = ARGUMENT_STANDARD_OUTPUT,
     .help = "draw the network as a graph of its layers, and do nothing else"},
    {0},
};

static sdlf_status show_build(const settings *set, const terminal *out)
{
    sdlf_machine here;
    sdlf_status status = sdlf_machine_look(&here);
    if (status != SDLF_OK) return status;
    if (set->json) return json_print_result(info_build_json(&here));
    info_print_build(out, &here);
    return SDLF_OK;
}

/* Times on arbitrary values: the time of a step does not depend on them. */
static sdlf_status time_steps(sdlf_plan *plan, sdlf_model *model, sdlf_mode mode)
{
    const sdlf_timing timing = {.repeats = TIMES, .go_on = interrupt_goes_on};
    sdlf_status status = samples_write_random(plan, model, mode, 1);
    interrupt_waits();
    return status == SDLF_OK ? sdlf_plan_time_with(plan, &timing) : status;
}

/* The required memory is known and checked before any is allocated. */
static sdlf_status show_plan(settings *set, const terminal *out, sdlf_plan_options *options, sdlf_model *model)
{
    machine calculators = {.count = 0};
    sdlf_plan *plan = NULL;
    info_plan info = {.model = model, .options = options, .steps = set->steps, .timed = set->time};
    sdlf_status status = execution_complete(&set->execution, model);
    if (status == SDLF_OK) status = execution_to_plan(&set->execution, &calculators, options);
    if (status == SDLF_OK) status = sdlf_machine_look(&info.here);
    if (status == SDLF_OK) status = sdlf_plan_measure(&info.memory, model, options);
    if (status == SDLF_OK) {
        status = machine_check_memory(&calculators, info.memory.arena + info.memory.parameters + info.memory.states,
                                      "a smaller --batch");
    }
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, model, options);
    if (status == SDLF_OK) status = execution_keep_choices(&set->execution);
    if (status == SDLF_OK) execution_warn(&set->execution, plan, "info");
    if (status == SDLF_OK && !set->json) report_header(out, calculators.calculator, calculators.count);
    fflush(stdout);
    if (status == SDLF_OK && set->time) status = time_steps(plan, model, options->mode);
    if (status == SDLF_ERROR_INTERRUPTED) {
        info.timed = false;
        status = SDLF_OK;
    }
    if (status == SDLF_OK) {
        info.plan = plan;
        if (!set->json) info_print_plan(out, &info);
        interrupt_say(!set->json, info.timed ? "; times are of fewer runs" : "; there are no times");
        if (set->json) status = json_print_measured(info_plan_json(&info));
    }
    sdlf_plan_free(plan);
    machine_close(&calculators);
    execution_release(&set->execution);
    return status;
}

/* --json-network */
static sdlf_status print_network(const sdlf_model *model)
{
    char *text = NULL;
    sdlf_status status = sdlf_network_write(model, &text);
    if (status != SDLF_OK) return status;
    puts(text);
    free(text);
    return SDLF_OK;
}

static bool print_graph(FILE *file, const void *graph)
{
    network_graph_print(file, graph, false);
    return !ferror(file);
}

/* --graph */
static sdlf_status draw_network(sdlf_model *model, const char *path)
{
    network_graph *graph = NULL;
    sdlf_status status = network_graph_make(&graph, model);
    if (status == SDLF_OK) status = output_file_write(path, print_graph, graph);
    network_graph_free(graph);
    return status;
}

static sdlf_status show_network(settings *set, const terminal *out, const optimizer_rows *optimizers,
                                const arguments *given)
{
    sdlf_model *model = NULL;
    sdlf_plan_options options = {.batch = set->batch, .mode = (sdlf_mode)set->mode};
    sdlf_status status = set->weights ? network_open_weights(&model, set->weights, set->net, &set->dimensions)
                                      : network_open(&model, set->net, 1, &set->dimensions);
    if (status == SDLF_OK && options.mode == SDLF_INFER)
        status = optimizer_check_absent(optimizers, given);
    else if (status == SDLF_OK)
        status = optimizer_from_arguments(&options.optimizer, false, optimizers, &set->optimizer, given);
    bool other = set->json_network || set->graph;
    if (status == SDLF_OK && set->graph) status = draw_network(model, set->graph);
    if (status == SDLF_OK && set->json_network) status = print_network(model);
    if (status == SDLF_OK && !other) status = show_plan(set, out, &options, model);
    sdlf_model_free(model);
    return status;
}

/* Returns a given option that has no effect without a network: any but --json. NULL: none. */
static const char *option_of_plans(const arguments *given)
{
    const argument *row;
    for (int i = 0; (row = arguments_row(given->usage, i, NULL)); i++) {
        if (given->given[i] && strcmp(row->name, "json") != 0) return row->name;
    }
    return NULL;
}

static int run(int count, char **words)
{
    settings set = {.net = NULL};
    arguments given;
    optimizer_rows optimizers;
    optimizer_rows_make_short(&optimizers);
    const argument_part parts[] = {{plan_arguments, 0},
                                   {dimension_arguments, offsetof(settings, dimensions)},
                                   {execution_arguments, offsetof(settings, execution)},
                                   {machine_arguments, offsetof(settings, execution.choice)},
                                   {optimizers.row, offsetof(settings, optimizer)},
                                   {0}};
    const command_usage usage = {
        .command = "info",
        .synopsis = "[options]",
        .text = "Without --net or --weights: show what is in this program and what it runs on. With one of them: show "
                "the network's plan, layer by layer, and its exact memory use.",
        .parts = parts,
        .epilogue = network_print_list,
        .examples = "  sdlf info\n"
                    "  sdlf info --net simple_cnn --batch 1024\n"
                    "  sdlf info --weights lenet5.safetensors --mode infer --batch 1 --steps\n"
                    "  sdlf info --weights model.onnx --graph model.svg\n"
                    "  sdlf info --net resnet18 --json-network > mine.json\n"
                    "  sdlf info --net simple_cnn --forward cuda --backward cpu --time\n",
    };
    switch (arguments_read(&given, &usage, count, words, &set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    if (set.graph && set.json_network) {
        arguments_wrong("info", "--graph and --json-network contradict each other");
        return COMMAND_USAGE;
    }
    terminal out = terminal_of(stdout);
    bool network = set.net || set.weights;
    const char *idle = network ? NULL : option_of_plans(&given);
    if (idle) {
        arguments_wrong("info", "--%s needs --net or --weights", idle);
        return COMMAND_USAGE;
    }
    return command_conclude("info", network ? show_network(&set, &out, &optimizers, &given) : show_build(&set, &out));
}

const command info_command = {
    .name = "info", .summary = "list what is built in, or a network's plan and memory", .run = run};
