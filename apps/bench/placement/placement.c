/* SPDX-License-Identifier: MIT */
/* sdlf bench placement: compares where the layers of a network run. */
#include <stdio.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/bench/bench.h"
#include "apps/bench/placement/report.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/output/stream.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"

typedef struct settings {
    const char *net, *data, *host, *device, *svg;
    int64_t batch, iterations; /* 0: those of the experiment */
    machine_choice choice;
    bool json;
} settings;

static const argument placement_arguments[] = {
    {.name = "What is timed", .type = ARGUMENT_HEADING},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn", .help = "a network from the list below, FILE.json or FILE.onnx"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET", .fallback = "digits", .help = "what it is trained on"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000000,
     .help = "samples a step (default: an experiment with 16, then one with 1,024)"},
    {"iterations", ARGUMENT_INT, offsetof(settings, iterations), "N", .minimum = 1, .maximum = 1000000,
     .help = "steps of each row (default: 5 with 16 samples, else 50)"},
    {.name = "Calculators", .type = ARGUMENT_HEADING},
    {"device-calculator", ARGUMENT_TEXT, offsetof(settings, device), "NAME", .fallback = "cuda",
     .help = "what layers are moved to"},
    {"host-calculator", ARGUMENT_TEXT, offsetof(settings, host), "NAME", .fallback = "cpu",
     .help = "what computes the rest"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the host's calculator, except in the first row, which has one (default: all)"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"svg", ARGUMENT_TEXT, offsetof(settings, svg), "FILE", .standard = ARGUMENT_STANDARD_OUTPUT,
     .help = "draw a chart, too"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    machine serial, machine; /* with one thread; as chosen */
    placement_machine calculators;
    sdlf_dataset *data;
    placement_report report;
    int measured; /* rows */
    bool text;    /* print the table */
    terminal out;
} session;

static void describe(session *s)
{
    size_t used = 0;
    for (int i = 0; i < s->machine.count; i++) {
        char text[200] = "";
        const sdlf_calculator_class *type = s->machine.calculator[i]->type;
        if (type->describe) type->describe(s->machine.calculator[i], text, sizeof text);
        used += (size_t)snprintf(s->report.runs_on + used, sizeof s->report.runs_on - used, "%s%s: %s", i ? "; " : "",
                                 type->name, text);
        if (used >= sizeof s->report.runs_on) break;
    }
}

static sdlf_status open_calculators(session *s)
{
    s->machine.choice = s->serial.choice = s->set.choice;
    s->serial.choice.threads = 1;
    sdlf_status status = machine_open(&s->machine, s->set.device, &s->calculators.device);
    if (status == SDLF_OK) status = machine_open(&s->machine, s->set.host, &s->calculators.host);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK && !sdlf_calculator_is_on_host(s->calculators.host)) {
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--host-calculator %s: expected one that computes in the host's memory",
                           s->set.host);
    }
    if (status == SDLF_OK && s->set.choice.threads != 1) {
        status = machine_open(&s->serial, s->set.host, &s->calculators.serial);
    }
    return status;
}

static sdlf_status measure_row(const session *s, placement_experiment *e, int index)
{
    placement_row *row = &e->row[index];
    sdlf_model *model = NULL; /* a new one: every row starts with the same parameters */
    status_line_show("%d of %d: %s", index + 1, e->count, row->name);
    sdlf_status status = samples_open_network(&model, s->set.net, s->set.data);
    if (status == SDLF_OK) status = placement_measure(row, model, s->data, e->batch, e->iterations);
    sdlf_model_free(model);
    status_line_clear();
    return status;
}

static sdlf_status run_experiment(session *s, int64_t batch, int64_t iterations, sdlf_model *model)
{
    placement_experiment *e = &s->report.experiment[s->report.count++];
    e->batch = batch;
    e->iterations = s->set.iterations ? s->set.iterations : iterations;
    e->count = placement_rows(e->row, model, &s->calculators);
    e->host = s->calculators.serial ? 1 : 0;
    if (s->data->samples.shape.dim[0] < batch) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a batch of %s: %s has %s samples", number_count(batch).text,
                         s->data->name, number_count(s->data->samples.shape.dim[0]).text);
    }
    sdlf_status status = machine_check_training(s->calculators.host, model, batch);
    for (int i = 0; i < e->count && status == SDLF_OK; i++) {
        if (e->row[i].missing[0]) continue;
        if (interrupt_signal() == 0) status = measure_row(s, e, i);
        s->measured += status == SDLF_OK && e->row[i].seconds > 0;
        if (status == SDLF_OK && e->row[i].seconds <= 0)
            snprintf(e->row[i].missing, sizeof e->row[i].missing, "stopped before");
    }
    if (status == SDLF_OK && s->measured == 0) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "no row was timed");
    if (status == SDLF_OK && s->text) placement_print(&s->out, e);
    return status;
}

static sdlf_status run_experiments(session *s, sdlf_model *model)
{
    if (s->set.batch) return run_experiment(s, s->set.batch, s->set.batch == 16 ? 5 : 50, model);
    sdlf_status status = run_experiment(s, 16, 5, model);
    return status == SDLF_OK && interrupt_signal() == 0 ? run_experiment(s, 1024, 50, model) : status;
}

static sdlf_status bench_all(session *s, sdlf_model **model)
{
    bool chart = s->set.svg && output_is_standard(s->set.svg); /* and nothing else */
    s->text = !s->set.json && !chart;
    if (s->set.json && chart)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--json and --svg -: only one of the two can go to standard output");
    sdlf_status status = samples_open_network(model, s->set.net, s->set.data);
    if (status == SDLF_OK) status = sdlf_dataset_check(s->set.data, SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) status = open_calculators(s); /* last: only some builds have the device */
    if (status == SDLF_OK && s->set.svg) status = output_stream_check(s->set.svg);
    if (status == SDLF_OK && s->text) report_header(&s->out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    if (status == SDLF_OK)
        status = samples_open(
            &s->data, &(samples_request){
                          .set = s->set.data, .sample = samples_shape(*model), .model = *model, .command = "bench"});
    if (status == SDLF_OK) status = samples_check(*model, s->data);
    if (status != SDLF_OK) return status;
    if (s->text) {
        report_data(&s->out, s->data, NULL);
        report_network(&s->out, &(report_subject){.model = *model, .note = ""});
        fflush(stdout);
    }
    s->report.network = sdlf_model_name(*model);
    s->report.data = s->data->name;
    s->report.math = sdlf_math_name((sdlf_math)s->set.choice.math);
    s->report.host = s->calculators.host->type->name;
    s->report.device = s->calculators.device->type->name;
    describe(s);
    interrupt_waits();
    status = run_experiments(s, *model);
    if (status != SDLF_OK) return status;
    if (s->text) placement_print_notes(&s->out, &s->report);
    interrupt_say(s->text, "; rows not reached have no time");
    if (s->set.json) status = json_print_measured(placement_json(&s->report));
    return status == SDLF_OK && s->set.svg ? placement_draw(&s->report, s->set.svg) : status;
}

static int run(int count, char **words)
{
    session s = {.out = terminal_of(stdout)};
    arguments given;
    const argument_part parts[] = {
        {placement_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    const command_usage usage = {
        .command = "bench placement",
        .synopsis = "[options]",
        .text = "Train a network with its layers in different places: all on the host with one thread and with all of "
                "them; convolution, pooling, fully connected layers and softmax on a device, one at a time; every "
                "forward pass there, with two-step, one-step and shared-memory convolution; all there. One table of "
                "times, speed-ups and copies.",
        .parts = parts,
        .epilogue = network_print_list,
        .examples = "  sdlf bench placement --svg placement.svg\n"
                    "  sdlf bench placement --batch 256 --iterations 20 --threads 8\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    sdlf_model *model = NULL;
    int code = command_conclude("bench placement", bench_all(&s, &model));
    sdlf_dataset_free(s.data);
    sdlf_model_free(model);
    machine_close(&s.serial);
    machine_close(&s.machine);
    return code;
}

const bench placement_bench = {"placement", "where should the layers run? host and device, layer kind by layer kind",
                               run};
