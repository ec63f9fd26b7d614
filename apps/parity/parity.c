/* SPDX-License-Identifier: MIT */
/* sdlf parity: compares the results of two calculators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/parity/report.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};
static const char *const mode_names[] = {"infer", "train", NULL}; /* in the order of sdlf_mode */

typedef struct settings {
    argument_list dimensions;
    const char *net, *weights, *data, *side[2];
    int64_t batch, seed, threads, device;
    int dtype, mode;
    double tolerance;
    bool own_activations, json;
} settings;

static const argument parity_arguments[] = {
    {.name = "What is compared", .type = ARGUMENT_HEADING},
    {"a", ARGUMENT_TEXT, offsetof(settings, side[0]), "CALC[:MATH]", .fallback = "reference",
     .help = "one calculator, with a math mode where it has a choice: cuda:tf32"},
    {"b", ARGUMENT_TEXT, offsetof(settings, side[1]), "CALC[:MATH]", .fallback = "cpu",
     .help = "the other, or the same one in another mode"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "a network from the list below, FILE.json or FILE.onnx (default: simple_cnn)"},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the parameters, and the network unless --net names one"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET",
     .help = "input data; random: any shape (default: digits if they fit, else random)"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000000, .fallback = "16",
     .help = "samples"},
    {"mode", ARGUMENT_CHOICE, offsetof(settings, mode), "MODE", .choices = mode_names,
     .help = "only outputs, or gradients too; default: train, but infer with float64"},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "floating-point type"},
    {"own-activations", ARGUMENT_FLAG, offsetof(settings, own_activations),
     .help = "let b's backward pass start from its own activations instead of a's"},
    {"tolerance", ARGUMENT_FLOAT, offsetof(settings, tolerance), "X", .minimum = 0, .maximum = 1e9,
     .help = "largest error, as a share of a tensor's largest magnitude (default: 2e-5; with tf32 or fp16 1e-2, with "
             "bf16 8e-2; with float64 1e-10)"},
    {"seed", ARGUMENT_INT, offsetof(settings, seed), "N", .minimum = 1, .maximum = 9e18, .fallback = "1",
     .help = "seed of initial weights, dropout and random samples"},
    {.name = "Calculators", .type = ARGUMENT_HEADING},
    {"threads", ARGUMENT_INT, offsetof(settings, threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"device", ARGUMENT_INT, offsetof(settings, device), "N", .minimum = 0, .maximum = 1023, .fallback = "0",
     .help = "which GPU, counted from 0"},
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON: every tensor"},
    {0},
};

typedef struct session {
    settings set;
    bool mode_given, tolerance_given;
    machine machine; /* the two calculators, in order */
    sdlf_model *model[2];
    sdlf_dataset *data;
    parity_options options;
    parity_result result;
    sdlf_math math[2];
} session;

/* "cuda:tf32" */
static sdlf_status open_side(session *s, int side)
{
    char *name = memory_copy_text(s->set.side[side]), *colon = strchr(name, ':');
    if (colon) *colon = '\0';
    sdlf_calculator_options options = {.threads = (int)s->set.threads, .device = (int)s->set.device};
    options.math = colon ? sdlf_math_from_name(colon + 1) : SDLF_MATH_FP32;
    sdlf_status status = SDLF_OK;
    if (options.math == SDLF_MATH_COUNT) {
        status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no math mode '%s'; there are fp32, tf32, fp16, bf16", colon + 1);
    }
    if (status == SDLF_OK) status = sdlf_calculator_open(&s->machine.calculator[side], name, &options);
    if (status == SDLF_OK) {
        const sdlf_calculator_class *type = s->machine.calculator[side]->type;
        s->machine.count = side + 1;
        if (options.math != SDLF_MATH_FP32 && !type->has_math) {
            status = sdlf_fail(SDLF_ERROR_ARGUMENT, "the %s calculator computes only in fp32", type->name);
        }
    }
    s->math[side] = options.math;
    if (status == SDLF_ERROR_ARGUMENT) sdlf_fail_context(status, "--%c %s", 'a' + side, s->set.side[side]);
    free(name);
    return status;
}

static sdlf_status open_model(const session *s, sdlf_model **model)
{
    const char *net = s->set.net, *weights = s->set.weights;
    if (weights) return network_open_weights(model, weights, net, &s->set.dimensions);
    return network_open(model, net ? net : "simple_cnn", (uint64_t)s->set.seed, &s->set.dimensions);
}

/* Opens images of digits if the network takes them. */
static sdlf_status open_data(session *s)
{
    const char *name = s->set.data;
    if (!name) {
        sdlf_shape shape = network_sample_shape(s->model[0]);
        name = sdlf_shape_equal(shape, sdlf_shape(1, 28, 28)) ? "digits" : "random";
    }
    if (strcmp(name, "random") == 0) return SDLF_OK;
    sdlf_status status = samples_open(
        &s->data, &(samples_request){
                      .set = name, .sample = samples_shape(s->model[0]), .model = s->model[0], .command = "parity"});
    if (status != SDLF_OK || s->set.data || samples_fit(s->model[0], s->data)) return status;
    sdlf_dataset_free(s->data);
    s->data = NULL;
    return SDLF_OK;
}

static sdlf_status check_memory(session *s)
{
    sdlf_memory_info memory;
    int64_t bytes = 0;
    for (int side = 0; side < 2; side++) {
        sdlf_plan_options options = {.batch = s->options.batch,
                                     .mode = s->options.mode,
                                     .dtype = s->options.dtype,
                                     .forward = s->machine.calculator[side],
                                     .keep_activations = true,
                                     .gradients_only = s->options.mode == SDLF_TRAIN};
        sdlf_status status = sdlf_plan_measure(&memory, s->model[side], &options);
        if (status != SDLF_OK) return status;
        bytes += memory.arena + memory.parameters;
    }
    return machine_check_memory(&s->machine, bytes, "a smaller --batch");
}

static sdlf_status compare(session *s)
{
    const settings *set = &s->set;
    sdlf_status status = open_side(s, 0);
    if (status == SDLF_OK) status = open_side(s, 1);
    s->machine.choice.device = set->device;
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK) status = open_model(s, &s->model[0]);
    if (status == SDLF_OK) status = open_model(s, &s->model[1]);
    if (status == SDLF_OK) status = open_data(s);
    if (status != SDLF_OK) return status;
    sdlf_dtype dtype = set->dtype == 0 ? SDLF_FLOAT32 : SDLF_FLOAT64;
    s->options = (parity_options){
        .model = {s->model[0], s->model[1]},
        .calculator = {s->machine.calculator[0], s->machine.calculator[1]},
        .data = s->data,
        .batch = set->batch,
        .mode = s->mode_given           ? (sdlf_mode)set->mode
                : dtype == SDLF_FLOAT64 ? SDLF_INFER
                                        : SDLF_TRAIN,
        .dtype = dtype,
        .tolerance = s->tolerance_given ? set->tolerance : parity_tolerance(dtype, s->math[0], s->math[1]),
        .seed = (uint64_t)set->seed,
        .own_activations = set->own_activations,
    };
    if (s->options.own_activations && s->options.mode == SDLF_INFER)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--own-activations is for the backward pass, but %s",
                         s->mode_given ? "--mode infer has none"
                                       : "float64 compares none unless --mode train asks for it");
    status = check_memory(s);
    if (status != SDLF_OK) return status;
    status_line_show("%s beside %s", s->machine.calculator[0]->type->name, s->machine.calculator[1]->type->name);
    status = parity_run(&s->result, &s->options);
    status_line_clear();
    return status;
}

static sdlf_status show(const session *s)
{
    parity_report report = {.options = &s->options,
                            .result = &s->result,
                            .data = s->data ? s->data->name : "random",
                            .math = {s->math[0], s->math[1]}};
    if (s->result.count == 0 && !s->result.all) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "nothing was compared");
    if (s->set.json) {
        interrupt_say(false, " after %d tensors", s->result.count);
        return json_print_measured(parity_json(&report));
    }
    terminal out = terminal_of(stdout);
    report_header(&out, s->machine.calculator, s->machine.count);
    if (s->data) report_data(&out, s->data, NULL);
    report_network(&out, &(report_subject){.model = s->model[0], .note = s->data ? "" : "  on random numbers"});
    parity_print(&out, &report);
    interrupt_say(true, " after %d tensors", s->result.count);
    return SDLF_OK;
}

static int run(int count, char **words)
{
    session s = {.data = NULL, .result = {.first = -1}};
    arguments given;
    const argument_part parts[] = {{parity_arguments, 0}, {dimension_arguments, offsetof(settings, dimensions)}, {0}};
    const command_usage usage = {
        .command = "parity",
        .synopsis = "[options]",
        .text = "Compute one network with two calculators, or with two math modes of one, on the same samples: compare "
                "every layer's output, its gradient, and the gradients of every parameter. The first layer outside its "
                "tolerance is named. Exit code: 0 if they agree, 3 if they differ.",
        .parts = parts,
        .epilogue = network_print_list,
        .examples = "  sdlf parity\n"
                    "  sdlf parity --a cpu --b cuda:tf32 --net lenet5 --batch 64\n"
                    "  sdlf parity --a reference --b cuda --dtype float64 --weights net.safetensors\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.mode_given = arguments_given(&given, "mode");
    s.tolerance_given = arguments_given(&given, "tolerance");
    sdlf_status status = compare(&s);
    bool differ = s.result.first >= 0;
    if (status == SDLF_OK) status = show(&s);
    int code = command_conclude("parity", status);
    parity_release(&s.result);
    sdlf_dataset_free(s.data);
    sdlf_model_free(s.model[0]);
    sdlf_model_free(s.model[1]);
    machine_close(&s.machine);
    return code == COMMAND_OK && differ ? COMMAND_DIFFERENT : code;
}

const command parity_command = {.name = "parity", .summary = "compare two calculators, layer by layer", .run = run};
