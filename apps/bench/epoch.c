/* SPDX-License-Identifier: MIT */
/* sdlf bench epoch: times an epoch of training on host and device, side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/bench/bench.h"
#include "apps/bench/epoch_report.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"

typedef struct settings {
    const char *net, *data, *host, *device;
    argument_list batch;
    int64_t steps, repeats;
    machine_choice choice;
    bool no_fusion, json;
} settings;

static const int64_t usual_batches[] = {16, 64, 128, 1024};

static const argument epoch_arguments[] = {
    {.name = "What is timed", .type = ARGUMENT_HEADING},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn", .help = "a network from the list below, FILE.json or FILE.onnx"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET", .fallback = "digits", .help = "the data of the epoch"},
    {"batch", ARGUMENT_LIST, offsetof(settings, batch), "N",
     .help = "samples a step; may be repeated (default: 16, 64, 128 and 1024 in turn)"},
    {"steps", ARGUMENT_INT, offsetof(settings, steps), "N", .minimum = 2, .maximum = 1e9,
     .help = "train N steps and extrapolate to an epoch (default: the whole epoch)"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "10",
     .help = "runs of every layer, whose median is taken"},
    {.name = "Calculators", .type = ARGUMENT_HEADING},
    {"host-calculator", ARGUMENT_TEXT, offsetof(settings, host), "NAME", .fallback = "cpu", .help = "host calculator"},
    {"device-calculator", ARGUMENT_TEXT, offsetof(settings, device), "NAME", .fallback = "cuda",
     .help = "device calculator"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(settings, no_fusion), .help = "run each operation by itself"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *side[LAYER_TIMES_SIDES];
    sdlf_dataset *data;
    sdlf_optimizer optimizer;
    epoch_report report;
} session;

static sdlf_status read_batches(session *s)
{
    const argument_list *given = &s->set.batch;
    if (given->count > EPOCH_BATCHES_MAX) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch: expected at most %d batch sizes, found %d", EPOCH_BATCHES_MAX,
                         given->count);
    }
    for (int i = 0; i < given->count; i++) {
        char *end;
        long long batch = strtoll(given->item[i], &end, 10);
        if (*end != '\0' || batch < 1 || batch > 1000000) {
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch %s: expected a whole number from 1 to 1,000,000",
                             given->item[i]);
        }
        s->report.batch[s->report.count++].batch = batch;
    }
    for (size_t i = 0; given->count == 0 && i < sizeof usual_batches / sizeof usual_batches[0]; i++)
        s->report.batch[s->report.count++].batch = usual_batches[i];
    return SDLF_OK;
}

static sdlf_status open_calculators(session *s)
{
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.device, &s->side[1]);
    if (status == SDLF_OK) status = machine_open(&s->machine, s->set.host, &s->side[0]);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    for (int side = 0; side < LAYER_TIMES_SIDES && status == SDLF_OK; side++)
        s->report.calculator[side] = s->side[side]->type->name;
    return status;
}

static sdlf_status time_epoch(session *s, epoch_comparison *b, int side)
{
    const machine_choice *choice = &s->set.choice;
    sdlf_model *model = NULL;
    status_line_show("batch %s on %s: an epoch", number_count(b->batch).text, s->report.calculator[side]);
    sdlf_status status = samples_open_network(&model, s->set.net, s->set.data);
    sdlf_trainer_options options = {
        .batch = b->batch,
        .seed = 1,
        .optimizer = s->optimizer,
        .schedule = {.peak = 1e-3f},
        .forward = s->report.calculator[side],
        .threads = (int)choice->threads,
        .device = (int)choice->device,
        .math = (sdlf_math)choice->math,
        .no_fusion = s->set.no_fusion,
    };
    if (status == SDLF_OK) status = epoch_time_measure(&b->epoch[side], model, s->data, &options, s->set.steps);
    status_line_clear();
    sdlf_model_free(model);
    return status;
}

/* Times the plan that a trainer would run, step by step: on a device it draws its batches itself. */
static sdlf_status time_layers(session *s, sdlf_model *model, int64_t batch, int side, sdlf_plan **plan)
{
    sdlf_feed feed = samples_feed(model, s->data);
    bool fed = !sdlf_calculator_is_on_host(s->side[side]);
    sdlf_plan_options options = {
        .batch = batch,
        .mode = SDLF_TRAIN,
        .forward = s->side[side],
        .optimizer = s->optimizer,
        .no_fusion = s->set.no_fusion,
        .loss_scale = s->set.choice.math == SDLF_MATH_FP16 ? SDLF_LOSS_SCALE_DYNAMIC : 0,
        .feed = fed ? &feed : NULL,
    };
    sdlf_status status = sdlf_plan_create(plan, model, &options);
    if (status == SDLF_OK && !fed) status = samples_write(*plan, model, s->data, batch, SDLF_TRAIN);
    const sdlf_timing timing = {.repeats = (int)s->set.repeats, .go_on = interrupt_goes_on};
    status_line_show("batch %s on %s: every layer", number_count(batch).text, s->report.calculator[side]);
    if (status == SDLF_OK) status = sdlf_plan_time_with(*plan, &timing);
    status_line_clear();
    return status;
}

static sdlf_status compare_layers(session *s, epoch_comparison *b)
{
    sdlf_model *model = NULL; /* learning rate 0: both sides may share it */
    sdlf_plan *plan[LAYER_TIMES_SIDES] = {NULL};
    sdlf_status status = samples_open_network(&model, s->set.net, s->set.data);
    for (int side = 0; side < LAYER_TIMES_SIDES && status == SDLF_OK; side++)
        status = time_layers(s, model, b->batch, side, &plan[side]);
    if (status == SDLF_OK) b->layers = layer_times_make(model, (const sdlf_plan *const *)plan);
    for (int side = 0; side < LAYER_TIMES_SIDES; side++) sdlf_plan_free(plan[side]);
    sdlf_model_free(model);
    return status;
}

static sdlf_status bench_batch(session *s, epoch_comparison *b, sdlf_model *model)
{
    if (b->batch > s->data->samples.shape.dim[0]) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch %lld: %s has %lld samples", (long long)b->batch, s->data->name,
                         (long long)s->data->samples.shape.dim[0]);
    }
    sdlf_status status = machine_check_training(s->side[0], model, b->batch);
    for (int side = LAYER_TIMES_SIDES - 1; side >= 0 && status == SDLF_OK && interrupt_signal() == 0; side--)
        status = time_epoch(s, b, side);
    if (status == SDLF_OK && interrupt_signal() == 0) status = compare_layers(s, b);
    return status;
}

/* Measures one batch size after the other until a signal comes: an incomplete one is left out. */
static sdlf_status bench_batches(session *s, sdlf_model *model, const terminal *out)
{
    int wanted = s->report.count, done = 0;
    sdlf_status status = SDLF_OK;
    interrupt_waits();
    for (; done < wanted && status == SDLF_OK; done++) {
        status = bench_batch(s, &s->report.batch[done], model);
        if (interrupt_signal() != 0 && (status == SDLF_OK || status == SDLF_ERROR_INTERRUPTED)) break;
        if (status == SDLF_OK && out) epoch_print(out, &s->report, &s->report.batch[done]);
    }
    if (interrupt_signal() == 0) return status;
    for (int i = done; i < wanted; i++) layer_times_release(&s->report.batch[i].layers);
    s->report.count = done;
    if (done == 0) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "no batch size was timed to its end");
    return SDLF_OK;
}

static sdlf_status bench_all(session *s, sdlf_model **model)
{
    terminal out = terminal_of(stdout);
    bool text = !s->set.json;
    s->optimizer = sdlf_sgd(.momentum = 0.9);
    sdlf_status status = read_batches(s);
    if (status == SDLF_OK) status = samples_open_network(model, s->set.net, s->set.data);
    if (status == SDLF_OK) status = sdlf_dataset_check(s->set.data, SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) status = open_calculators(s); /* last: only some builds have the device */
    if (status == SDLF_OK && text) report_header(&out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    if (status == SDLF_OK)
        status = samples_open(
            &s->data, &(samples_request){
                          .set = s->set.data, .sample = samples_shape(*model), .model = *model, .command = "bench"});
    if (status == SDLF_OK) status = samples_check(*model, s->data);
    if (status != SDLF_OK) return status;
    if (text) report_data(&out, s->data, NULL);
    if (text) report_network(&out, &(report_subject){.model = *model, .note = ""});
    fflush(stdout);
    s->report.network = sdlf_model_name(*model);
    s->report.data = s->data->name;
    s->report.math = sdlf_math_name((sdlf_math)s->set.choice.math);
    int wanted = s->report.count;
    status = bench_batches(s, *model, text ? &out : NULL);
    if (status != SDLF_OK) return status;
    if (text) epoch_print_summary(&out, &s->report);
    interrupt_say(text, " after %d of %d batch sizes; the others are left out", s->report.count, wanted);
    return text ? SDLF_OK : json_print_measured(epoch_json(&s->report));
}

static int run(int count, char **words)
{
    session s = {.data = NULL};
    arguments given;
    const argument_part parts[] = {
        {epoch_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    const command_usage usage = {
        .command = "bench epoch",
        .synopsis = "[options]",
        .text = "Train an epoch on the host and one on a device, at several batch sizes, and time every layer's "
                "forward and backward pass, updates and copies on both: where does the device win, and by how much?",
        .parts = parts,
        .epilogue = network_print_list,
        .examples = "  sdlf bench epoch\n"
                    "  sdlf bench epoch --batch 64 --batch 512 --steps 50 --math tf32\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    sdlf_model *model = NULL;
    int code = command_conclude("bench epoch", bench_all(&s, &model));
    for (int i = 0; i < s.report.count; i++) layer_times_release(&s.report.batch[i].layers);
    sdlf_dataset_free(s.data);
    sdlf_model_free(model);
    machine_close(&s.machine);
    return code;
}

const bench epoch_bench = {"epoch", "an epoch on host and device, layer by layer, side by side", run};
