/* SPDX-License-Identifier: MIT */
/* sdlf eval: evaluates weights on a data set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/arguments/ranks.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/evaluation.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

typedef struct settings {
    argument_list dimensions;
    const char *weights, *net, *data, *calculator, *loss;
    rank_settings ranks;
    int64_t batch;
    machine_choice choice;
    bool train_half, strict, confusion, json;
    int64_t workers, cache;
    int tta; /* sdlf_views */
} settings;

static const char *const view_names[] = {"none", "flip", "shift", NULL}; /* sdlf_views */

static const char *loss_name(int index)
{
    return sdlf_loss_names[index];
}

static const argument table_of_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .required = true, .help = "a safetensors file, as train writes it, or an ONNX file"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the network, for weights files that hold none: a built-in name, FILE.json or FILE.onnx"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET",
     .help = "the data set; its test half is used (default: what the weights were trained on, or digits)"},
    {"train-half", ARGUMENT_FLAG, offsetof(settings, train_half), .help = "use the training half"},
    {"strict", ARGUMENT_FLAG, offsetof(settings, strict), .help = "refuse pictures that cannot be read"},
    {"workers", ARGUMENT_INT, offsetof(settings, workers), "N", .minimum = 1, .maximum = 64,
     .help = "threads that decode pictures of a folder (default: one for each processor)"},
    {"cache", ARGUMENT_INT, offsetof(settings, cache), "MB", .minimum = 1, .maximum = 1e9,
     .help = "decoded pictures, and their masks, to keep in memory; others are decoded when they are needed (default: "
             "all are kept)"},
    {"loss", ARGUMENT_NAME, offsetof(settings, loss), "NAME", .names = loss_name,
     .help = "the loss, for weights whose file names none (default: what the weights were trained with, or "
             "cross_entropy); others need a set with float targets"},
    {"tta", ARGUMENT_CHOICE, offsetof(settings, tta), "VIEWS", .choices = view_names, .fallback = "none",
     .help =
         "test-time augmentation: average over each picture and its mirror image (flip), and these moved by a pixel "
         "(shift)"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000000,
     .help = "samples a step (default: chosen automatically)"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"confusion", ARGUMENT_FLAG, offsetof(settings, confusion), .help = "print the confusion matrix too"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    arguments given;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_model *model;
    sdlf_dataset *data;
    sdlf_evaluation evaluation;
    sdlf_communicator *ranks; /* NULL: this process does everything */
    bool silent;              /* another rank prints */
} session;

/* --loss */
static sdlf_status set_loss(session *s)
{
    int kind = 0;
    if (!s->set.loss) return SDLF_OK;
    while (strcmp(s->set.loss, sdlf_loss_names[kind]) != 0) kind++;
    return sdlf_fail_context(sdlf_model_set_loss(s->model, (sdlf_loss)kind), "--loss");
}

/* Opens the data, or only checks that they exist. */
static sdlf_status find_data(session *s, bool open)
{
    const char *known = sdlf_model_training_state(s->model)->data;
    const char *data = s->set.data ? s->set.data : *known ? known : "digits";
    sdlf_split split = s->set.train_half ? SDLF_SPLIT_TRAIN : SDLF_SPLIT_TEST;
    samples_request request = {.set = data,
                               .split = split,
                               .whole = s->set.data != NULL && !samples_same_set(s->set.data, known),
                               .sample = samples_shape(s->model),
                               .model = s->model,
                               .strict = s->set.strict,
                               .targets = sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY,
                               .workers = ranks_workers(&s->set.ranks, s->set.workers),
                               .cache = s->set.cache,
                               .command = s->silent ? NULL : "eval"};
    sdlf_status status = open ? samples_open(&s->data, &request) : sdlf_dataset_check(data, split);
    return s->set.data ? status : sdlf_fail_context(status, "the data of %s (--data names another)", s->set.weights);
}

/* Rejects a batch whose activations exceed this machine's memory before allocating them. */
static sdlf_status check_memory(const session *s)
{
    sdlf_memory_info memory;
    sdlf_plan_options options = {.batch = s->set.batch, .forward = s->calculator, .consume_parameters = true};
    sdlf_status status = sdlf_plan_measure(&memory, s->model, &options);
    return status == SDLF_OK ? machine_check_memory(&s->machine, memory.arena + memory.parameters, "a smaller --batch")
                             : status;
}

/* Checks that all ranks have the same data and the same weights. */
static sdlf_status compare_ranks(session *s)
{
    const int64_t mine[] = {s->data->samples.shape.dim[0], s->data->class_count, sdlf_model_hash(s->model)};
    int other;
    sdlf_status status = sdlf_communicator_compare(s->ranks, mine, sizeof mine, &other);
    if (status != SDLF_OK || other < 0) return status;
    s->ranks->agreed = true;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "rank %d differs from rank 0 in its number of samples or weights: they must be the same on all",
                     other);
}

static void print_text(const session *s, const terminal *out)
{
    const sdlf_evaluation *e = &s->evaluation;
    labels names = {.path = NULL};
    labels_of_model(&names, s->model);
    evaluation_print(out, e, &names, s->set.confusion);
    labels_release(&names);
    report_label(out, s->set.train_half ? "train" : "test");
    evaluation_print_line(e);
    report_label(out, "time");
    bool tokens = s->data->labels.dtype == SDLF_INT32 && s->data->labels.shape.rank > 1; /* the unit counted */
    int64_t all = tokens ? sdlf_tensor_count(&s->data->labels) : s->data->samples.shape.dim[0];
    const char *unit = e->of_pixels ? "pixels" : tokens ? "tokens" : "samples";
    printf("%s  %s %s/s\n", number_duration(e->seconds).text, number_fixed((double)e->samples / e->seconds, 0).text,
           unit);
    interrupt_say(true, " after %s of %s %s; the figures above cover only these", number_count(e->samples).text,
                  number_count(all).text, unit);
}

static sdlf_status print_json(const session *s)
{
    json_t *result = json_pack("{ss so so so ss}", "version", SDLF_VERSION, "weights", json_text(s->set.weights),
                               "network", json_text(sdlf_model_name(s->model)), "data", json_text(s->data->name),
                               "calculator", s->calculator->type->name);
    labels names = {.path = NULL};
    labels_of_model(&names, s->model);
    if (result) json_object_update_new(result, evaluation_json(&s->evaluation, &names));
    labels_release(&names);
    return json_print_measured(result);
}

/* Everything up to the data. */
static sdlf_status prepare(session *s, const terminal *out)
{
    machine_choice choice = s->set.choice;
    ranks_take_place(&s->set.ranks, s->ranks, &s->given, s->set.calculator, &choice);
    sdlf_status status = machine_open_one(&s->machine, &choice, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) /* ranks compare values, which are then in memory */
        status = (s->ranks != NULL ? network_open_weights : network_open_to_take)(&s->model, s->set.weights, s->set.net,
                                                                                  &s->set.dimensions);
    if (status == SDLF_OK) status = set_loss(s);
    if (status == SDLF_OK) status = find_data(s, false);
    if (status == SDLF_OK && s->set.batch > 0) status = check_memory(s);
    if (status == SDLF_OK && !s->set.json && !s->silent) report_header(out, s->machine.calculator, s->machine.count);
    return status == SDLF_OK ? find_data(s, true) : status;
}

static sdlf_status evaluate(session *s)
{
    terminal out = terminal_of(stdout);
    sdlf_status status = prepare(s, &out);
    if (s->ranks != NULL) status = sdlf_communicator_agree(s->ranks, status);
    if (status == SDLF_OK && s->ranks != NULL) status = compare_ranks(s);
    if (status != SDLF_OK) return status;
    if (!s->set.json && !s->silent) {
        char *note = memory_print("  from %s", s->set.weights);
        sdlf_dataset_normalize_for(s->data, s->model);
        report_data(&out, s->set.train_half ? s->data : NULL, s->set.train_half ? NULL : s->data);
        report_network(&out, &(report_subject){.model = s->model, .note = note});
        fflush(stdout);
        free(note);
    }
    if (!ranks_is_second(&s->set.ranks)) interrupt_waits();
    if (!s->silent) status_line_show("testing %s samples", number_count(s->data->samples.shape.dim[0]).text);
    const sdlf_evaluation_options options = {
        .batch = s->set.batch, .views = (sdlf_views)s->set.tta, .go_on = interrupt_goes_on, .communicator = s->ranks};
    status = sdlf_evaluate_with(&s->evaluation, s->model, s->data, s->calculator, &options);
    if (!s->silent) status_line_clear();
    if (status == SDLF_OK && isnan(s->evaluation.loss))
        status =
            sdlf_fail(SDLF_ERROR_NUMERIC, "the loss is NaN: network '%s' with %s gives outputs that are not numbers",
                      sdlf_model_name(s->model), s->set.weights);
    if (status != SDLF_OK || s->silent) return status;
    if (s->set.json) return print_json(s);
    print_text(s, &out);
    return SDLF_OK;
}

/* With a communicator, rank 0 reports errors common to all; an error of one rank is reported there and ends all. */
static int evaluate_and_print(session *s)
{
    sdlf_status status = ranks_open(&s->set.ranks, &s->ranks, s->set.calculator);
    s->silent = s->ranks != NULL && s->ranks->rank > 0;
    if (status == SDLF_OK) status = evaluate(s);
    if (status == SDLF_OK || s->ranks == NULL) return command_conclude("eval", status);
    if (!s->ranks->agreed) sdlf_fail_context(status, "rank %d on %s", s->ranks->rank, s->ranks->host);
    if (s->ranks->agreed && s->silent) return COMMAND_FAILED;
    int code = command_conclude("eval", status);
    fflush(stdout);
    if (!s->ranks->agreed) sdlf_communicator_abort(s->ranks);
    return code;
}

static int evaluate_and_release(void *user)
{
    session *s = user;
    int code = evaluate_and_print(s);
    sdlf_evaluation_release(&s->evaluation);
    sdlf_dataset_free(s->data);
    sdlf_model_free(s->model);
    machine_close(&s->machine);
    sdlf_communicator_close(s->ranks);
    return code;
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    static const argument_part parts[] = {{table_of_arguments, 0},
                                          {dimension_arguments, offsetof(settings, dimensions)},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {rank_arguments, offsetof(settings, ranks)},
                                          {output_arguments, 0},
                                          {0}};
    static const command_usage usage = {
        .command = "eval",
        .synopsis = "--weights FILE [options]",
        .text = "Classify a data set, and report how much of it was right: overall, and class by class.",
        .parts = parts,
        .examples = "  sdlf eval --weights simple_cnn.safetensors\n"
                    "  sdlf eval --weights simple_cnn.safetensors --data mnist:/data\n"
                    "  sdlf eval --weights resnet50.safetensors --calculator cuda --devices 0,1\n",
    };
    switch (arguments_read(&s.given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    sdlf_status status = ranks_check(&s.set.ranks, &s.given, s.set.calculator, &s.set.choice);
    if (status != SDLF_OK) return command_conclude("eval", status);
    return ranks_run(&s, sizeof s, offsetof(session, set.ranks), evaluate_and_release);
}

const command eval_command = {.name = "eval", .summary = "evaluate weights on a data set", .run = run};
