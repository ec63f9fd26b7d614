/* sdlf report: training runs and a model as one page to look at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/input/file_form.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/classes.h"
#include "apps/output/file.h"
#include "apps/output/live.h"
#include "apps/output/number.h"
#include "apps/output/stream.h"
#include "apps/output/terminal.h"
#include "apps/report/page.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

enum { RUNS_MOST = 32, REPEATS = 10, COPY_BYTES = 64000000 };

typedef struct settings {
    const char *out, *data, *calculator;
    int64_t mistakes, batch;
    machine_choice choice;
    bool no_time;
} settings;

static const argument report_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE.html", .letter = 'o', .standard = ARGUMENT_STANDARD_OUTPUT,
     .fallback = "report.html", .help = "where the page goes"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET",
     .help = "what a model is judged on: the test half (default: what the weights were trained on)"},
    {"mistakes", ARGUMENT_INT, offsetof(settings, mistakes), "N", .minimum = 0, .maximum = 1000, .fallback = "24",
     .help = "mistakes to show, the surest first"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 65536, .fallback = "16",
     .help = "samples of the pass whose layers are timed"},
    {"no-time", ARGUMENT_FLAG, offsetof(settings, no_time), .help = "time no layer"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "what computes"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

typedef struct session {
    settings set;
    run_log runs[RUNS_MOST];
    int run_count;
    const char *weights;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_model *model;
    sdlf_dataset *data;
    labels names;
    judgement judgement;
    json_t *test;
    char *test_of;
    sdlf_plan *plan;
    ceilings ceilings;
    network_graph *graph;
} session;

static sdlf_status read_operands(session *s, const arguments *given)
{
    for (int i = 0; i < given->operand_count; i++) {
        const char *path = given->operand[i];
        file_form form = file_form_of(path);
        if (form == FILE_FORM_ONNX || form == FILE_FORM_SAFETENSORS) {
            if (s->weights)
                return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s and %s: a report is of one model, and of any number of runs",
                                 s->weights, path);
            s->weights = path;
            continue;
        }
        sdlf_status status = run_log_read(&s->runs[s->run_count++], path);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* The data that the model is judged on; there need not be any. */
static sdlf_status open_data(session *s)
{
    const char *known = sdlf_model_training_state(s->model)->data;
    const char *set = s->set.data ? s->set.data : *known ? known : NULL;
    if (!set) return SDLF_OK;
    sdlf_status status = samples_open(
        &s->data, &(samples_request){
                      .set = set, .split = SDLF_SPLIT_TEST, .sample = samples_shape(s->model), .command = "report"});
    return s->set.data ? status : sdlf_fail_context(status, "the data of %s (--data names another)", s->weights);
}

static sdlf_status judge_model(session *s)
{
    if (sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY) return SDLF_OK; /* there are no classes to tell apart */
    sdlf_status status = open_data(s);
    if (status != SDLF_OK || !s->data) return status;
    live_say("testing %s samples", number_count(s->data->samples.shape.dim[0]).text);
    status = judge(&s->judgement, s->model, s->data, s->calculator, (int)s->set.mistakes);
    live_clear();
    if (status != SDLF_OK || s->judgement.evaluation.samples == 0) return status;
    s->test = classes_json(&s->judgement.evaluation, &s->names);
    s->test_of = memory_copy_text(s->weights);
    return SDLF_OK;
}

static sdlf_status time_layers(session *s)
{
    const sdlf_timing timing = {.repeats = REPEATS, .go_on = interrupt_goes_on};
    live_say("every layer, batch %s", number_count(s->set.batch).text);
    sdlf_plan_options options = {.batch = s->set.batch, .forward = s->calculator};
    sdlf_memory_info memory;
    sdlf_status status = sdlf_plan_measure(&memory, s->model, &options);
    if (status == SDLF_OK)
        status = machine_check_memory(&s->machine, memory.arena + memory.parameters + 2 * (int64_t)COPY_BYTES,
                                      "a smaller --batch");
    if (status == SDLF_OK) status = ceilings_measure(&s->ceilings, s->calculator, SDLF_FLOAT32, COPY_BYTES);
    if (status == SDLF_OK) status = sdlf_plan_create(&s->plan, s->model, &options);
    if (status == SDLF_OK) status = samples_write_random(s->plan, s->model, SDLF_INFER, 1);
    if (status == SDLF_OK) status = sdlf_plan_time_with(s->plan, &timing);
    live_clear();
    if (status != SDLF_ERROR_INTERRUPTED) return status;
    sdlf_plan_free(s->plan);
    s->plan = NULL;
    return SDLF_OK;
}

static sdlf_status look_at_model(session *s)
{
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK) status = network_open_weights(&s->model, s->weights, NULL);
    if (status != SDLF_OK) return status;
    labels_of_model(&s->names, s->model);
    status = network_graph_make(&s->graph, s->model);
    if (status == SDLF_OK) status = judge_model(s);
    if (status == SDLF_OK && !s->set.no_time && interrupt_signal() == 0) status = time_layers(s);
    return status;
}

/* Without a model: the last test that a log tells of. */
static void take_test_of_run(session *s)
{
    for (int i = s->run_count - 1; i >= 0 && !s->test; i--) {
        json_t *test = json_object_get(s->runs[i].end, "test");
        if (!json_is_object(test)) continue;
        s->test = json_incref(test);
        s->test_of = memory_copy_text(s->runs[i].name);
    }
}

static sdlf_status report(session *s, const arguments *given)
{
    sdlf_status status = output_stream_check(s->set.out);
    if (status == SDLF_OK) status = read_operands(s, given);
    if (status == SDLF_OK && s->set.data && !s->weights)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--data %s is for judging a model, and none is given", s->set.data);
    if (status != SDLF_OK) return status;
    interrupt_waits();
    if (s->weights) status = look_at_model(s);
    if (status != SDLF_OK) return status;
    if (!s->test) take_test_of_run(s);
    const page shown = {.runs = s->runs,
                        .run_count = s->run_count,
                        .model = s->model,
                        .weights = s->weights,
                        .data = s->data,
                        .names = &s->names,
                        .judgement = s->data ? &s->judgement : NULL,
                        .test = s->test,
                        .test_of = s->test_of,
                        .plan = s->plan,
                        .batch = s->set.batch,
                        .ceilings = &s->ceilings,
                        .graph = s->graph};
    status = output_file_write(s->set.out, page_print, &shown);
    if (status == SDLF_OK && !output_is_stream(s->set.out))
        printf("%s (%s)\n", s->set.out, number_bytes(output_file_size(s->set.out)).text);
    interrupt_say(false, "; the page shows what there was");
    return status;
}

static void release(session *s)
{
    for (int i = 0; i < s->run_count; i++) run_log_release(&s->runs[i]);
    json_decref(s->test);
    free(s->test_of);
    judgement_release(&s->judgement);
    network_graph_free(s->graph);
    sdlf_plan_free(s->plan);
    labels_release(&s->names);
    sdlf_dataset_free(s->data);
    sdlf_model_free(s->model);
    machine_close(&s->machine);
}

static int run(int count, char **words)
{
    session s = {.run_count = 0};
    arguments given;
    static const argument_part parts[] = {{report_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {0}};
    static const command_usage usage = {
        .command = "report",
        .synopsis = "[options] RUN.jsonl... [MODEL]",
        .text = "Make one page of training runs and of a model, to be opened in a browser, sent and printed: curves, "
                "the options in which the "
                "runs differ, confusion and mistakes, the network's graph, and each layer's time beside its floor. It "
                "is one file, and asks "
                "nothing of a network.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = RUNS_MOST,
        .operand_name = "the log of a run, or a model",
        .examples = "  sdlf train --log run.jsonl\n"
                    "  sdlf report run.jsonl simple_cnn.safetensors -o report.html\n"
                    "  sdlf report sweep/*.jsonl\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("report", report(&s, &given));
    release(&s);
    return code;
}

const command report_command = {.name = "report", .summary = "make a page of training runs and a model", .run = run};
