/* SPDX-License-Identifier: MIT */
/* sdlf predict: classifies images, and rows of numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/input/rows.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/pictures/ascii_art.h"
#include "apps/pictures/classifier.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

typedef struct settings {
    argument_list dimensions;
    const char *weights, *net, *label_file, *label, *calculator;
    int64_t top, index;
    machine_choice choice;
    preprocess_settings preprocess;
    bool draw, json;
} settings;

static const argument predict_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .required = true, .help = "a safetensors file, as train writes it, or an ONNX file"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the network, for weights files that hold none: a built-in name, FILE.json or FILE.onnx"},
    {"top", ARGUMENT_INT, offsetof(settings, top), "N", .minimum = 1, .maximum = 1000, .fallback = "1",
     .help = "classes to print, likeliest first; of multi-label networks, at least N"},
    {"labels", ARGUMENT_TEXT, offsetof(settings, label_file), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "names of the classes, one a line (default: those that the file carries)"},
    {"label", ARGUMENT_TEXT, offsetof(settings, label), "COLUMN",
     .help = "a table's label column, or COLUMN..COLUMN, not used as input, by name or by number from 1 (default: "
             "detected and reported)"},
    {"draw", ARGUMENT_FLAG, offsetof(settings, draw), .help = "draw each picture as the network sees it"},
    {"index", ARGUMENT_INT, offsetof(settings, index), "N", .minimum = 0, .maximum = 2e9,
     .help = "which picture of an IDX file, from 0 (default: 0); which row of an array or a table (default: all)"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: chosen automatically)"},
    {0},
};

static const argument output_arguments[] = {
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON, with the probability of every class"},
    {0},
};

typedef struct session {
    settings set;
    terminal out;
    classifier classifier;
    int *order;       /* the most probable classes, as many as are shown */
    int shown, width; /* of the files' names */
    labels labels;
    json_t *results;
    bool index_given;
} session;

/* A file of rows counts as this many samples. */
enum { ROWS_IN_A_FILE = 1000 };

static sdlf_status check(session *s, const arguments *given, classifier_request *request)
{
    const char *file = NULL, *other = NULL; /* of rows; without columns */
    int files = 0;
    for (int i = 0; i < given->operand_count; i++)
        if (rows_are_in(given->operand[i])) file = given->operand[i], files++;
    for (int i = 0; i < given->operand_count; i++)
        if (!rows_are_in(given->operand[i]) || !rows_have_columns(given->operand[i])) other = given->operand[i];
    request->samples = given->operand_count + (files < 1000 ? files : 1000) * ROWS_IN_A_FILE;
    request->no_pictures = files == given->operand_count;
    if (s->set.json && s->set.draw)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--draw and --json contradict each other: JSON has no pictures");
    if (other != NULL && s->set.label != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--label is for tables, but %s is not one", other);
    if (file != NULL && s->set.draw)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--draw is for pictures, but %s is not one", file);
    return request->no_pictures ? preprocess_refuse(given, file) : preprocess_check(&s->set.preprocess);
}

static sdlf_status prepare(session *s, const arguments *given)
{
    classifier_request request = {.dimensions = &s->set.dimensions,
                                  .weights = s->set.weights,
                                  .net = s->set.net,
                                  .calculator = s->set.calculator,
                                  .choice = s->set.choice};
    sdlf_status status = check(s, given, &request);
    if (status == SDLF_OK) status = labels_read(&s->labels, s->set.label_file);
    if (status == SDLF_OK) status = classifier_open(&s->classifier, &request, &s->set.preprocess);
    if (status != SDLF_OK) return status;
    if (s->set.label_file == NULL) labels_of_model(&s->labels, s->classifier.model);
    labels_warn(&s->labels, s->classifier.class_count, "predict");
    int count = s->classifier.class_count;
    s->shown = s->classifier.loss != SDLF_LOSS_CROSS_ENTROPY || count < s->set.top ? count : (int)s->set.top;
    s->order = memory_allocate((size_t)s->shown * sizeof *s->order);
    return SDLF_OK;
}

static void order_classes(session *s)
{
    if (!classifier_gives_values(&s->classifier)) classifier_order(&s->classifier, s->order, s->shown);
    for (int i = 0; classifier_gives_values(&s->classifier) && i < s->shown; i++) s->order[i] = i;
}

/* "seven.png   7   99.8%   1   0.1%" */
static void print_text(const session *s, const char *path, int64_t index)
{
    int width = s->width;
    char *shown = memory_copy_text(path);
    terminal_clean(shown);
    printf("%-*s", width + (int)strlen(shown) - terminal_columns(shown), shown);
    free(shown);
    if (index >= 0) printf("  %" PRId64, index);
    const double *found = s->classifier.probability;
    int count = s->shown; /* multi-label: those that hold, or else the most probable */
    for (; s->classifier.loss == SDLF_LOSS_BCE && count > s->set.top && found[s->order[count - 1]] < 0.5;) count--;
    for (int i = 0; i < count; i++) {
        const char *label = labels_name(&s->labels, s->order[i]);
        if (classifier_gives_values(&s->classifier)) {
            printf("   %s%s%.6g", label ? label : "", label ? " " : "", found[i]);
            continue;
        }
        printf("   %s%d%s  %6s", i == 0 ? terminal_escape(&s->out, TERMINAL_BOLD) : "", s->order[i],
               i == 0 ? terminal_escape(&s->out, TERMINAL_PLAIN) : "",
               number_percent(s->classifier.probability[s->order[i]], 1).text);
        if (label) printf("  %s", label);
    }
    putchar('\n');
    if (s->set.draw)
        ascii_art_print(&s->out, s->classifier.pixels, s->classifier.frame.rows, s->classifier.frame.columns, 2);
}

static void add_json(const session *s, const char *path, int64_t index)
{
    json_t *probabilities = json_array();
    const char *label = labels_name(&s->labels, s->order[0]);
    if (classifier_gives_values(&s->classifier)) {
        json_t *values = json_array();
        for (int i = 0; i < s->classifier.class_count; i++)
            json_array_append_new(values, json_number(s->classifier.probability[i]));
        json_array_append_new(s->results, json_pack("{so sI so}", "file", json_text(path), "index",
                                                    (json_int_t)(index >= 0 ? index : 0), "values", values));
        json_decref(probabilities);
        return;
    }
    for (int i = 0; i < s->classifier.class_count; i++)
        json_array_append_new(probabilities, json_number(s->classifier.probability[i]));
    json_array_append_new(s->results, json_pack("{so sI si so so so}", "file", json_text(path), "index",
                                                (json_int_t)(index >= 0 ? index : 0), "class", s->order[0], "label",
                                                label ? json_text(label) : json_null(), "probability",
                                                json_number(s->classifier.probability[s->order[0]]), "probabilities",
                                                probabilities));
}

/* Prints the classifier's result; `index`: which sample of the file, -1: the only one. */
static void print_prediction(session *s, const char *path, int64_t index)
{
    order_classes(s);
    if (s->set.json)
        add_json(s, path, index);
    else
        print_text(s, path, index);
}

static sdlf_status predict_picture(session *s, const char *path)
{
    sdlf_status status = classifier_read(&s->classifier, path, s->set.index);
    if (status == SDLF_OK) print_prediction(s, path, s->index_given ? s->set.index : -1);
    return status;
}

static sdlf_status predict_rows(session *s, const char *path)
{
    rows r;
    sdlf_status status = rows_open(&r, path, s->classifier.model, s->classifier.class_count, s->set.label);
    int64_t first = s->index_given ? s->set.index : 0, end = s->index_given ? first + 1 : r.count;
    for (int64_t i = first; status == SDLF_OK && i < end; i++) {
        const float *sample;
        status = interrupt_signal() == 0 ? rows_read(&r, i, &sample) : SDLF_ERROR_INTERRUPTED;
        if (status == SDLF_OK) status = classifier_take(&s->classifier, sample, path);
        if (status == SDLF_OK) print_prediction(s, path, i);
    }
    rows_close(&r);
    return status;
}

/* A file that cannot be read does not stop the others from being processed. */
static int predict(session *s, const arguments *given)
{
    sdlf_status status = prepare(s, given);
    if (status != SDLF_OK) return command_conclude("predict", status);
    int code = COMMAND_OK;
    for (int i = 0; i < given->operand_count; i++) {
        int columns = terminal_columns(given->operand[i]);
        if (columns > s->width) s->width = columns;
    }
    if (s->set.json) s->results = json_array();
    s->index_given = arguments_given(given, "index");
    int looked_at = 0;
    interrupt_waits();
    for (; looked_at < given->operand_count && interrupt_signal() == 0; looked_at++) {
        const char *path = given->operand[looked_at];
        status = rows_are_in(path) ? predict_rows(s, path) : predict_picture(s, path);
        if (status == SDLF_ERROR_INTERRUPTED) break;
        if (status == SDLF_OK) continue;
        command_conclude("predict", status);
        code = COMMAND_FAILED;
    }
    if (s->set.json && !json_print(s->results, stdout)) code = COMMAND_FAILED;
    interrupt_say(!s->set.json, " after %d of %d files", looked_at, given->operand_count);
    return interrupt_signal() == 0 ? code : command_conclude("predict", SDLF_OK);
}

static void epilogue(void)
{
    printf("\nPictures are files of %s.\nRows of numbers are in files that end in .npy, .csv or .tsv.\n",
           sdlf_image_formats());
}

static int run(int count, char **words)
{
    session s = {.out = terminal_of(stdout)};
    arguments given;
    static const argument_part parts[] = {{predict_arguments, 0},
                                          {dimension_arguments, offsetof(settings, dimensions)},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {output_arguments, 0},
                                          {preprocess_arguments, offsetof(settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "predict",
        .synopsis = "--weights FILE [options] FILE...",
        .text = "Classify pictures, and the rows of arrays and tables: the likeliest class and its probability, or all "
                "labels that apply, or the numbers that a network was trained to predict, as its file says. Arrays "
                "(.npy) and tables of numbers (.csv, .tsv) are normalised as in training if the model's file says how, "
                "else used unchanged; a table's label columns are ignored. Pictures are preprocessed as in training, "
                "if the model's file says how, or as --preprocess says. For networks with grey input a photograph of "
                "dark ink on light paper will do: a digit is cut out, inverted to light ink on black, scaled and "
                "centred.",
        .epilogue = epilogue,
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = 1 << 20,
        .operand_name = "a picture, an array or a table",
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf predict --weights simple_cnn.safetensors seven.png\n"
                    "  sdlf predict --weights lenet5.safetensors --draw --top 3 *.png\n"
                    "  sdlf predict --weights lenet5.safetensors --index 7 images-idx3-ubyte\n"
                    "  sdlf predict --weights mobilenetv2.onnx --preprocess tf --top 5 cat.jpg\n"
                    "  sdlf predict --weights iris.safetensors --json flowers.csv\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = predict(&s, &given);
    labels_release(&s.labels);
    free(s.order);
    classifier_release(&s.classifier);
    return code;
}

const command predict_command = {.name = "predict", .summary = "classify pictures, or rows of numbers", .run = run};
