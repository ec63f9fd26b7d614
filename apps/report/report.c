/* SPDX-License-Identifier: MIT */
/* sdlf report: writes one HTML page about training runs and a model. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/file_type.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/classes.h"
#include "apps/output/evaluation.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/status_line.h"
#include "apps/output/stream.h"
#include "apps/output/terminal.h"
#include "apps/pictures/sheet.h"
#include "apps/report/page.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

enum { RUNS_MOST = 32, REPEATS = 10, COPY_BYTES = 64000000 };

typedef struct settings {
    argument_list dimensions;
    const char *out, *data, *calculator, *picture, *cam_layer;
    int64_t mistakes, batch, sample, class;
    preprocess_settings preprocess;
    machine_choice choice;
    bool no_time;
} settings;

static const argument report_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE.html", .letter = 'o', .standard = ARGUMENT_STANDARD_OUTPUT,
     .fallback = "report.html", .help = "where the page goes"},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET",
     .help = "what a model is evaluated on: the test half (default: what the weights were trained on)"},
    {"mistakes", ARGUMENT_INT, offsetof(settings, mistakes), "N", .minimum = 0, .maximum = 1000, .fallback = "24",
     .help = "mistakes to show, the most confident first"},
    {"sample", ARGUMENT_INT, offsetof(settings, sample), "N", .minimum = 0, .maximum = 1e12, .fallback = "0",
     .help =
         "show what the network makes of this sample of the data, counted from 0: its layers' outputs, and Grad-CAM "
         "for the likeliest class and the true one"},
    {"picture", ARGUMENT_TEXT, offsetof(settings, picture), "FILE",
     .help = "the same for a picture instead of a sample"},
    {"class", ARGUMENT_INT, offsetof(settings, class), "N", .minimum = 0, .maximum = 1e8,
     .help = "Grad-CAM for this class"},
    {"cam-layer", ARGUMENT_TEXT, offsetof(settings, cam_layer), "NAME",
     .help = "Grad-CAM by the output of this layer (default: the last convolution with an output larger than 1x1, with "
             "its normalisation and activation)"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 65536, .fallback = "16",
     .help = "samples of the pass whose layers are timed, and of the steps whose memory is shown"},
    {"no-time", ARGUMENT_FLAG, offsetof(settings, no_time), .help = "time no layer"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

typedef struct session {
    settings set;
    run_log runs[RUNS_MOST];
    int run_count;
    char *weights; /* owned */
    machine machine;
    sdlf_calculator *calculator;
    sdlf_model *model;
    sdlf_dataset *data;
    labels names;
    report_evaluation report_evaluation;
    json_t *test;
    char *test_of;
    sdlf_plan *plan, *outline, *training;
    single_picture picture_shown;
    arguments given;
    ceilings ceilings;
    network_graph *graph;
} session;

static sdlf_status take_file(session *s, const char *path)
{
    file_type form = file_type_of(path);
    if (form == FILE_TYPE_ONNX || form == FILE_TYPE_SAFETENSORS) {
        if (s->weights)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s and %s: a report covers one model and any number of runs",
                             s->weights, path);
        s->weights = memory_copy_text(path);
        return SDLF_OK;
    }
    if (s->run_count == RUNS_MOST)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: a report covers at most %d runs", path, RUNS_MOST);
    return run_log_read(&s->runs[s->run_count++], path);
}

static bool ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (ends_in(entry->d_name, ".jsonl") || ends_in(entry->d_name, ".onnx") ||
                                       ends_in(entry->d_name, ".safetensors"));
}

/* Finds the logs in a folder, sorted by name, and its model. */
static sdlf_status take_folder(session *s, const char *folder)
{
    struct dirent **list = NULL;
    int count = scandir(folder, &list, is_shown, alphasort);
    if (count < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    sdlf_status status = count > 0
                             ? SDLF_OK
                             : sdlf_fail(SDLF_ERROR_ARGUMENT,
                                         "%s: expected logs (.jsonl) or a model (.safetensors, .onnx) in it", folder);
    for (int i = 0; i < count; i++) {
        char *path = memory_print("%s/%s", folder, list[i]->d_name);
        if (status == SDLF_OK) status = take_file(s, path);
        free(path);
        free(list[i]);
    }
    free(list);
    return status;
}

static sdlf_status read_operands(session *s, const arguments *given)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < given->operand_count && status == SDLF_OK; i++) {
        struct stat about;
        bool folder = stat(given->operand[i], &about) == 0 && S_ISDIR(about.st_mode);
        status = folder ? take_folder(s, given->operand[i]) : take_file(s, given->operand[i]);
    }
    return status;
}

/* Opens the data that the model is evaluated on; they are optional. */
static sdlf_status open_data(session *s)
{
    const char *known = sdlf_model_training_state(s->model)->data;
    const char *set = s->set.data ? s->set.data : *known ? known : NULL;
    if (!set) return SDLF_OK;
    sdlf_status status =
        samples_open(&s->data, &(samples_request){.set = set,
                                                  .split = SDLF_SPLIT_TEST,
                                                  .sample = samples_shape(s->model),
                                                  .model = s->model,
                                                  .targets = sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY,
                                                  .command = "report"});
    return s->set.data ? status : sdlf_fail_context(status, "the data of %s (--data names another)", s->weights);
}

/* For targets, pixels and sequences there are only figures, not individual mistakes. */
static sdlf_status judge_figures(session *s)
{
    sdlf_evaluation e;
    const sdlf_evaluation_options options = {.go_on = interrupt_goes_on};
    sdlf_status status = sdlf_evaluate_with(&e, s->model, s->data, s->calculator, &options);
    if (status != SDLF_OK) return status;
    if (e.samples > 0) s->test = evaluation_json(&e, &s->names);
    sdlf_evaluation_release(&e);
    return SDLF_OK;
}

static sdlf_status judge_classes(session *s)
{
    sdlf_status status = evaluate_report(&s->report_evaluation, s->model, s->data, s->calculator, (int)s->set.mistakes);
    const sdlf_evaluation *e = &s->report_evaluation.evaluation;
    if (status == SDLF_OK && e->samples > 0) s->test = classes_json(e, &s->names);
    return status;
}

static sdlf_status judge_model(session *s)
{
    sdlf_status status = open_data(s);
    if (status != SDLF_OK && status != SDLF_ERROR_MEMORY && !s->set.data &&
        sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY) {
        terminal_warning("report", "%s; the page omits the targets", sdlf_error_message());
        return SDLF_OK;
    }
    if (status != SDLF_OK || !s->data) return status;
    const bool one_label = sdlf_model_loss(s->model) == SDLF_LOSS_CROSS_ENTROPY && s->data->labels.shape.rank == 1;
    status_line_show("testing %s samples", number_count(s->data->samples.shape.dim[0]).text);
    status = one_label ? judge_classes(s) : judge_figures(s);
    status_line_clear();
    if (s->test) s->test_of = memory_copy_text(s->weights);
    return status;
}

static sdlf_status time_layers(session *s)
{
    const sdlf_timing timing = {.repeats = REPEATS, .go_on = interrupt_goes_on};
    status_line_show("every layer, batch %s", number_count(s->set.batch).text);
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
    status_line_clear();
    if (status != SDLF_ERROR_INTERRUPTED) return status;
    sdlf_plan_free(s->plan);
    s->plan = NULL;
    return SDLF_OK;
}

/* Runs the network on one image. Without options that request it, only if possible. */
static sdlf_status explain_picture(session *s)
{
    bool asked = s->set.picture || arguments_given(&s->given, "sample") || arguments_given(&s->given, "class") ||
                 s->set.cam_layer;
    if (s->set.picture && arguments_given(&s->given, "sample"))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--picture and --sample contradict each other: one picture is shown");
    if (!s->set.picture && !s->data)
        return asked ? sdlf_fail(SDLF_ERROR_ARGUMENT, "there are no data with classes to show a sample of: give --data "
                                                      "SET or --picture FILE")
                     : SDLF_OK;
    if (!asked && !sheet_shows(sdlf_shape_without(s->data->samples.shape, 0))) return SDLF_OK;
    sdlf_status status = s->set.picture
                             ? single_picture_from_file(&s->picture_shown, s->model, s->set.picture, &s->set.preprocess)
                             : single_picture_from_sample(&s->picture_shown, s->model, s->data, s->set.sample);
    if (status == SDLF_OK) status = single_picture_run(&s->picture_shown, s->model, s->calculator);
    if (status != SDLF_OK) return status;
    sdlf_calculator *host = s->calculator;
    sdlf_model *copy = NULL;
    if (!sdlf_calculator_is_on_host(host)) status = machine_open(&s->machine, "cpu", &host);
    if (status == SDLF_OK) status = network_open_weights(&copy, s->weights, NULL, &s->set.dimensions);
    if (status == SDLF_OK)
        status = single_picture_explain(&s->picture_shown, copy, host, s->set.cam_layer,
                                        arguments_given(&s->given, "class") ? (int)s->set.class : -1);
    sdlf_model_free(copy);
    return status;
}

/* Outlines plans for the memory of inference and, if the network can be trained, of a training step. */
static sdlf_status outline_plans(session *s)
{
    sdlf_plan_options options = {.batch = s->set.batch, .forward = s->calculator};
    sdlf_status status = sdlf_plan_outline(&s->outline, s->model, &options);
    if (status != SDLF_OK) return status;
    options.mode = SDLF_TRAIN;
    options.loss = sdlf_model_loss(s->model);
    if (sdlf_model_trainable_count(s->model) > 0) status = sdlf_plan_outline(&s->training, s->model, &options);
    return status == SDLF_ERROR_MEMORY ? status : SDLF_OK;
}

static sdlf_status inspect_model(session *s)
{
    sdlf_status status = machine_open_one(&s->machine, &s->set.choice, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = network_open_weights(&s->model, s->weights, NULL, &s->set.dimensions);
    if (status != SDLF_OK) return status;
    labels_of_model(&s->names, s->model);
    status = network_graph_make(&s->graph, s->model);
    if (status == SDLF_OK) status = judge_model(s);
    if (status == SDLF_OK) status = explain_picture(s);
    if (status == SDLF_OK) status = outline_plans(s);
    if (status == SDLF_OK && !s->set.no_time && interrupt_signal() == 0) status = time_layers(s);
    return status;
}

/* Without a model: uses the last test recorded in a log. */
static void take_test_of_run(session *s)
{
    for (int i = s->run_count - 1; i >= 0 && !s->test; i--) {
        json_t *test = json_object_get(s->runs[i].end, "test");
        if (!json_is_object(test)) continue;
        s->test = json_incref(test);
        s->test_of = memory_copy_text(s->runs[i].name);
    }
}

static sdlf_status report(session *s)
{
    const arguments *given = &s->given;
    sdlf_status status = output_stream_check(s->set.out);
    if (status == SDLF_OK) status = read_operands(s, given);
    if (status == SDLF_OK && s->set.data && !s->weights)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--data %s is for evaluating a model, but none is given", s->set.data);
    if (status == SDLF_OK && s->set.picture && !s->weights)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--picture %s is for a model, but none is given", s->set.picture);
    if (status != SDLF_OK) return status;
    interrupt_waits();
    if (s->weights) status = inspect_model(s);
    if (status != SDLF_OK) return status;
    if (!s->test) take_test_of_run(s);
    const page shown = {.runs = s->runs,
                        .run_count = s->run_count,
                        .model = s->model,
                        .weights = s->weights,
                        .data = s->data,
                        .names = &s->names,
                        .report_evaluation = s->data ? &s->report_evaluation : NULL,
                        .test = s->test,
                        .test_of = s->test_of,
                        .plan = s->plan,
                        .outline = s->outline,
                        .training = s->training,
                        .single_picture = s->picture_shown.name ? &s->picture_shown : NULL,
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
    report_evaluation_release(&s->report_evaluation);
    network_graph_free(s->graph);
    free(s->weights);
    single_picture_release(&s->picture_shown);
    sdlf_plan_free(s->plan);
    sdlf_plan_free(s->outline);
    sdlf_plan_free(s->training);
    labels_release(&s->names);
    sdlf_dataset_free(s->data);
    sdlf_model_free(s->model);
    machine_close(&s->machine);
}

static int run(int count, char **words)
{
    session s = {.run_count = 0};
    static const argument_part parts[] = {{report_arguments, 0},
                                          {dimension_arguments, offsetof(settings, dimensions)},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {preprocess_arguments, offsetof(settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "report",
        .synopsis = "[options] RUN.jsonl|FOLDER... [MODEL]",
        .text = "Make one page of training runs and of a model, to be opened in a browser, sent and printed: curves, "
                "the options in which the runs differ, confusion and mistakes, what layers make of a picture and where "
                "Grad-CAM finds its class, the network's graph, memory, and each layer's time beside its floor. It is "
                "one file that loads nothing else.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = RUNS_MOST,
        .operand_name = "the log of a run, a model, or a folder of them",
        .examples = "  sdlf train --log run.jsonl\n"
                    "  sdlf report run.jsonl simple_cnn.safetensors -o report.html\n"
                    "  sdlf report lenet5.safetensors --sample 12\n"
                    "  sdlf report mobilenetv2.onnx --picture cat.jpg --preprocess imagenet\n"
                    "  sdlf report sweep\n",
    };
    switch (arguments_read(&s.given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("report", report(&s));
    release(&s);
    return code;
}

const command report_command = {.name = "report", .summary = "make a page of training runs and a model", .run = run};
