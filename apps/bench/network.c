/* SPDX-License-Identifier: MIT */
/* sdlf bench network: the time of an epoch and of each layer, compared with the machine's limits. */
#include <stdio.h>
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/execution.h"
#include "apps/arguments/optimizer.h"
#include "apps/bench/bench.h"
#include "apps/bench/network_report.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

static const char *const mode_names[] = {"infer", "train", NULL}; /* in the order of sdlf_mode */

typedef struct settings {
    const char *net, *weights, *data;
    int64_t batch, steps, repeats, copy_size;
    int mode;
    bool json;
    execution execution;
    optimizer_settings optimizer;
} settings;

static const argument bench_arguments[] = {
    {.name = "What is timed", .type = ARGUMENT_HEADING},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn", .help = "a network from the list below, FILE.json or FILE.onnx"},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "a weights file that contains the network"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET", .fallback = "digits", .help = "the data of the epoch"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000000, .fallback = "64",
     .help = "samples a step"},
    {"mode", ARGUMENT_CHOICE, offsetof(settings, mode), "MODE", .choices = mode_names, .fallback = "train",
     .help = "an epoch of training, or only forward passes"},
    {"steps", ARGUMENT_INT, offsetof(settings, steps), "N", .minimum = 2, .maximum = 1e9,
     .help = "train N steps and extrapolate to an epoch (default: the whole epoch)"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "20",
     .help = "runs of every layer, whose median is taken"},
    {"copy-size", ARGUMENT_SIZE, offsetof(settings, copy_size), "BYTES", .minimum = 4096, .maximum = 1e12,
     .fallback = "256MB", .help = "size of the copy that measures memory bandwidth"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_model *model;
    sdlf_dataset *data;
    sdlf_plan_options options;
    sdlf_plan *plan;
    bool layers; /* are timed */
    int64_t memory;
    bench_result result;
} session;

/* Times every step of a plan. */
static sdlf_status time_layers(session *s)
{
    const sdlf_timing timing = {.repeats = (int)s->set.repeats, .go_on = interrupt_goes_on};
    sdlf_status status = sdlf_plan_create(&s->plan, s->model, &s->options);
    status_line_clear();
    if (status == SDLF_OK) execution_warn(&s->set.execution, s->plan, "bench");
    status_line_show("every layer, batch %s", number_count(s->set.batch).text);
    if (status == SDLF_OK) status = samples_write(s->plan, s->model, s->data, s->set.batch, s->options.mode);
    if (status == SDLF_OK) status = sdlf_plan_time_with(s->plan, &timing);
    return status;
}

static sdlf_status time_epoch(session *s)
{
    sdlf_trainer_options options = {
        .batch = s->set.batch, .seed = 1, .optimizer = s->options.optimizer, .schedule = {.peak = 1e-3f}};
    execution_to_trainer(&s->set.execution, &options);
    sdlf_status status = epoch_time_measure(&s->result.epoch, s->model, s->data, &options, s->set.steps);
    s->memory = s->result.epoch.memory;
    return status;
}

static sdlf_status measure_ceilings(session *s)
{
    sdlf_status status = machine_check_memory(&s->machine, 2 * s->set.copy_size, "a smaller --copy-size");
    for (int i = 0; i < s->machine.count && status == SDLF_OK && interrupt_signal() == 0; i++) {
        status = ceilings_measure(&s->result.ceilings[s->result.ceiling_count++], s->machine.calculator[i],
                                  SDLF_FLOAT32, s->set.copy_size);
    }
    return status;
}

static sdlf_status open_all(session *s, const optimizer_rows *optimizers, const arguments *given)
{
    const settings *set = &s->set;
    bool infer = set->mode == SDLF_INFER; /* a single plan, which takes over the parameters */
    s->options = (sdlf_plan_options){.batch = set->batch, .mode = (sdlf_mode)set->mode, .consume_parameters = infer};
    const char *net = arguments_given(given, "net") ? set->net : NULL;
    sdlf_status status = !set->weights ? samples_open_network(&s->model, set->net, set->data)
                         : infer       ? network_open_to_take(&s->model, set->weights, net, NULL)
                                       : network_open_weights(&s->model, set->weights, net, NULL);
    if (status == SDLF_OK && infer) {
        status = optimizer_check_absent(optimizers, given);
        if (status == SDLF_OK && arguments_given(given, "steps"))
            status =
                sdlf_fail(SDLF_ERROR_ARGUMENT, "--steps and --mode infer contradict each other: no epoch is trained");
    } else if (status == SDLF_OK) {
        status = optimizer_from_arguments(&s->options.optimizer, false, optimizers, &set->optimizer, given);
    }
    if (status == SDLF_OK) status = execution_complete(&s->set.execution, s->model);
    if (status == SDLF_OK) status = execution_to_plan(&s->set.execution, &s->machine, &s->options);
    if (status == SDLF_OK) status = sdlf_dataset_check(set->data, SDLF_SPLIT_TRAIN);
    sdlf_memory_info memory;
    if (status == SDLF_OK) status = sdlf_plan_measure(&memory, s->model, &s->options);
    if (status == SDLF_OK) {
        s->memory = memory.arena + memory.parameters + memory.states;
        status = machine_check_memory(&s->machine, s->memory, "a smaller --batch");
    }
    return status;
}

/* Measures until done or a signal comes. */
static sdlf_status measure(session *s, const terminal *out)
{
    status_line_show("the machine's limits");
    sdlf_status status = measure_ceilings(s);
    status_line_clear();
    if (status == SDLF_OK && !s->set.json) bench_print_limits(out, &s->result);
    if (status == SDLF_OK && s->options.mode == SDLF_TRAIN && interrupt_signal() == 0) {
        status_line_show("an epoch, batch %s", number_count(s->set.batch).text);
        status = time_epoch(s);
    }
    if (status == SDLF_OK && interrupt_signal() == 0) status = time_layers(s);
    status_line_clear();
    s->layers = status == SDLF_OK && s->plan;
    if (status == SDLF_ERROR_INTERRUPTED && s->result.epoch.seconds > 0) status = SDLF_OK;
    if (status == SDLF_OK && s->result.epoch.seconds <= 0 && !s->plan)
        return sdlf_fail(SDLF_ERROR_INTERRUPTED, "nothing of the network was timed");
    return status == SDLF_OK ? execution_keep_choices(&s->set.execution) : status;
}

static sdlf_status bench_all(session *s, const optimizer_rows *optimizers, const arguments *given)
{
    terminal out = terminal_of(stdout);
    bool text = !s->set.json;
    sdlf_status status = open_all(s, optimizers, given);
    if (status != SDLF_OK) return status;
    if (text) report_header(&out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    status = samples_open(
        &s->data, &(samples_request){
                      .set = s->set.data, .sample = samples_shape(s->model), .model = s->model, .command = "bench"});
    if (status == SDLF_OK && text) report_data(&out, s->data, NULL);
    fflush(stdout);
    interrupt_waits();
    if (status == SDLF_OK) status = measure(s, &out);
    if (status != SDLF_OK) return status;

    s->result.model = s->model;
    s->result.plan = s->layers ? s->plan : NULL;
    s->result.data = s->data->name;
    s->result.math = sdlf_math_name((sdlf_math)s->set.execution.choice.math);
    s->result.mode = s->options.mode;
    s->result.batch = s->set.batch;
    const char *missing = s->layers ? "; layers' times are of fewer runs" : "; no layer was timed";
    if (!text) {
        interrupt_say(false, "%s", missing);
        return json_print_measured(bench_json(&s->result));
    }
    report_network(&out, &(report_subject){.model = s->model,
                                           .plan = s->plan,
                                           .mode = s->options.mode,
                                           .batch = s->set.batch,
                                           .memory = s->memory,
                                           .note = ""});
    bench_print(&out, &s->result);
    interrupt_say(true, "%s", missing);
    return SDLF_OK;
}

static void epilogue(void)
{
    network_print_list();
    bench_print_list();
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    optimizer_rows optimizers;
    optimizer_rows_make_short(&optimizers);
    const argument_part parts[] = {{bench_arguments, 0},
                                   {execution_arguments, offsetof(settings, execution)},
                                   {machine_arguments, offsetof(settings, execution.choice)},
                                   {optimizers.row, offsetof(settings, optimizer)},
                                   {0}};
    const command_usage usage = {
        .command = "bench",
        .synopsis = "[BENCHMARK] [options]",
        .text = "Without a benchmark's name, or with 'network': time an epoch of training, then every layer, forward "
                "and backward. Each time is shown beside its floor: what the FLOPs and the bytes would take at the "
                "speed of a large matrix product and of a large copy, measured in the same run.",
        .parts = parts,
        .epilogue = epilogue,
        .examples = "  sdlf bench\n"
                    "  sdlf bench --net lenet5 --batch 1024 --steps 20\n"
                    "  sdlf bench --mode infer --batch 1\n"
                    "  sdlf bench placement --help\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("bench", bench_all(&s, &optimizers, &given));
    sdlf_plan_free(s.plan);
    sdlf_dataset_free(s.data);
    sdlf_model_free(s.model);
    machine_close(&s.machine);
    execution_release(&s.set.execution);
    return code;
}

const bench network_bench = {"network", "an epoch of training and every layer (what runs when none is named)", run};
