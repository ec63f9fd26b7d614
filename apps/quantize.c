/* SPDX-License-Identifier: MIT */
/* sdlf quantize: writes a network with integer weights, and with data also integer activations, as an ONNX file; and
 * measures the effect on its outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/agreement.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

typedef struct settings {
    argument_list dimensions;
    const char *weights, *net, *out, *data, *skip, *calculator;
    int calibration, only; /* sdlf_calibration; an index into only_names */
    double percentile;
    int64_t samples, compared, block, opset, workers;
    machine_choice choice;
    bool per_tensor, is_signed, strict, json;
} settings;

static const char *const only_names[] = {"none", "int8", "int4", NULL};

static const argument table_of_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE", .required = true, .letter = 'o',
     .help = "the ONNX file to write"},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the weights, as an option: a safetensors file, as train writes it, or an ONNX file"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the network, for weights files that hold none: a built-in name or FILE.json"},
    {"weights-only", ARGUMENT_CHOICE, offsetof(settings, only), "TYPE", .choices = only_names, .fallback = "none",
     .help = "quantise only the weights, which needs no data: int8, or int4 in blocks"},
    {"block", ARGUMENT_INT, offsetof(settings, block), "N", .minimum = 16, .maximum = 1 << 20,
     .help = "int4: weights along the summed axis that share a scale, a power of 2 (default: 32)"},
    {"per-tensor", ARGUMENT_FLAG, offsetof(settings, per_tensor),
     .help = "one scale for each weight tensor, not one for each of its filters"},
    {"skip", ARGUMENT_TEXT, offsetof(settings, skip), "LAYERS",
     .help = "layers not to quantise, separated by commas; NAME* matches all that begin so"},
    {"opset", ARGUMENT_INT, offsetof(settings, opset), "N", .minimum = 17, .maximum = 22,
     .help = "version of the ONNX operators (default: 17, 21 for int4, or the lowest that suffices)"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {.name = "Activations", .type = ARGUMENT_HEADING},
    {"data", ARGUMENT_TEXT, offsetof(settings, data), "SET",
     .help = "the data set: its training half gives the ranges of activations, and both networks run on its test half "
             "(default: what the weights were trained on)"},
    {"samples", ARGUMENT_INT, offsetof(settings, samples), "N", .minimum = 1, .maximum = 1e9, .fallback = "128",
     .help = "samples for calibration"},
    {"calibration", ARGUMENT_CHOICE, offsetof(settings, calibration), "METHOD", .choices = sdlf_calibration_names,
     .fallback = "minmax", .help = "how a range is derived from the values seen"},
    {"percentile", ARGUMENT_FLOAT, offsetof(settings, percentile), "P", .minimum = 50, .maximum = 100, .above = true,
     .help = "percent of the magnitudes that are within the range (default: 99.99)"},
    {"signed", ARGUMENT_FLAG, offsetof(settings, is_signed), .help = "int8 activations, not uint8"},
    {"strict", ARGUMENT_FLAG, offsetof(settings, strict), .help = "refuse pictures that cannot be read"},
    {"workers", ARGUMENT_INT, offsetof(settings, workers), "N", .minimum = 1, .maximum = 64,
     .help = "threads that decode pictures of a folder (default: one for each processor)"},
    {"compare", ARGUMENT_INT, offsetof(settings, compared), "N", .minimum = 1, .maximum = 1e9, .fallback = "1000",
     .help = "samples of the test half, at most, to run both networks on"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_model *model, *after;
    const char *data; /* the set's name; NULL: none, and none is needed */
    sdlf_dataset *train, *test;
    sdlf_quantized written;
    agreement agreement;
    char *words; /* of --skip */
    const char *skip[ARGUMENT_LIST_MAX];
    int skip_count;
} session;

/* ---- options ---- */

static sdlf_status take_operand(session *s, const char *word)
{
    if (s->set.weights)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s' and --weights %s are weights twice", word, s->set.weights);
    s->set.weights = word;
    return SDLF_OK;
}

/* Rejects options that have no effect without data. */
static sdlf_status check_unused(const arguments *given)
{
    static const char *const of_data[] = {"strict", "workers", "compare", "calculator", "threads"};
    for (size_t i = 0; i < sizeof of_data / sizeof of_data[0]; i++)
        if (arguments_given(given, of_data[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is for data, but --weights-only reads none without --data SET",
                             of_data[i]);
    return SDLF_OK;
}

static sdlf_status check_options(session *s, const arguments *given)
{
    static const char *const of_activations[] = {"samples", "calibration", "percentile", "signed"};
    size_t length = strlen(s->set.out);
    if (length < 6 || strcmp(s->set.out + length - 5, ".onnx") != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s': expected the name of a file that ends in .onnx", s->set.out);
    if (!s->set.weights)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "weights are missing: a safetensors file, as train writes it, or ONNX");
    for (size_t i = 0; s->set.only != 0 && i < sizeof of_activations / sizeof of_activations[0]; i++)
        if (arguments_given(given, of_activations[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is for activations, which --weights-only does not quantise",
                             of_activations[i]);
    if (s->set.only != 0 && !s->set.data) {
        sdlf_status status = check_unused(given);
        if (status != SDLF_OK) return status;
    }
    if (s->set.only != 2 && s->set.block > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--block is for --weights-only int4");
    if (s->set.only == 2 && s->set.per_tensor)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--per-tensor is for int8: int4 has a scale for each block");
    if (s->set.percentile > 0 && s->set.calibration != SDLF_CALIBRATION_PERCENTILE)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--percentile is for --calibration percentile");
    return SDLF_OK;
}

static sdlf_status read_skip(session *s)
{
    if (!s->set.skip) return SDLF_OK;
    char *rest = NULL;
    s->words = memory_copy_text(s->set.skip);
    for (char *word = strtok_r(s->words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (s->skip_count == ARGUMENT_LIST_MAX)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--skip: %d layers at most", ARGUMENT_LIST_MAX);
        s->skip[s->skip_count++] = word;
    }
    return SDLF_OK;
}

/* ---- work ---- */

static sdlf_status open_half(session *s, sdlf_dataset **half, sdlf_split split)
{
    return samples_open(half, &(samples_request){.set = s->data,
                                                 .split = split,
                                                 .sample = samples_shape(s->model),
                                                 .model = s->model,
                                                 .unlabelled = true,
                                                 .strict = s->set.strict,
                                                 .targets = sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY,
                                                 .workers = s->set.workers,
                                                 .command = "quantize"});
}

static sdlf_status find_data(session *s)
{
    const char *known = sdlf_model_training_state(s->model)->data;
    s->data = s->set.data ? s->set.data : *known && s->set.only == 0 ? known : NULL;
    if (!s->data && s->set.only == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--data SET is missing: ranges of activations come from samples "
                                              "(--weights-only needs none)");
    if (!s->data) return SDLF_OK;
    sdlf_status status = s->set.only == 0 ? open_half(s, &s->train, SDLF_SPLIT_TRAIN) : SDLF_OK;
    if (status == SDLF_OK) status = open_half(s, &s->test, SDLF_SPLIT_TEST);
    return s->set.data ? status : sdlf_fail_context(status, "the data of %s (--data names another)", s->set.weights);
}

static void show_progress(void *user, int64_t done, int64_t samples)
{
    (void)user;
    status_line_show("finding ranges: sample %s of %s", number_count(done).text, number_count(samples).text);
}

static sdlf_status quantize(session *s)
{
    static const int bits[] = {0, 8, 4};
    const sdlf_quantization_options options = {.weights_only = bits[s->set.only],
                                               .block = s->set.block,
                                               .per_tensor = s->set.per_tensor,
                                               .data = s->train,
                                               .calculator = s->calculator,
                                               .samples = s->set.samples,
                                               .calibration = (sdlf_calibration)s->set.calibration,
                                               .percentile = s->set.percentile,
                                               .signed_activations = s->set.is_signed,
                                               .skip = s->skip,
                                               .skip_count = s->skip_count,
                                               .opset = (int)s->set.opset,
                                               .progress = show_progress,
                                               .go_on = interrupt_goes_on};
    sdlf_status status = sdlf_quantize(s->model, s->set.out, &options, &s->written);
    status_line_clear();
    return status;
}

static sdlf_status compare(session *s)
{
    sdlf_status status = sdlf_model_from_onnx(&s->after, s->set.out, NULL);
    if (status == SDLF_OK)
        status = agreement_measure(&s->agreement, s->model, s->after, s->test, s->calculator, s->set.compared);
    status_line_clear();
    return sdlf_fail_context(status, "comparing %s with %s", s->set.out, s->set.weights);
}

/* ---- output ---- */

static void print_text(const session *s, const terminal *out)
{
    const sdlf_quantized *w = &s->written;
    report_label(out, "int");
    printf("%s of %s convolutions and products", number_count(w->layers).text, number_count(w->layers + w->left).text);
    if (w->values > 0)
        printf(", %s activations from %s samples by %s", number_count(w->values).text, number_count(w->samples).text,
               sdlf_calibration_names[s->set.calibration]);
    printf("\n");
    if (s->test) agreement_print(out, &s->agreement);
    report_label(out, "saved");
    printf("%s (%s, %s with float32): opset %d, %s nodes%s\n", s->set.out, number_bytes(w->bytes).text,
           number_bytes(w->bytes_before).text, w->opset, number_count(w->node_count).text,
           w->fixed_batch ? ", only for a batch of 1" : "");
    interrupt_say(true, " early: ranges and figures are those of fewer samples");
}

static sdlf_status print_json(const session *s)
{
    const sdlf_quantized *w = &s->written;
    json_t *result = json_pack("{ss so so so ss si si si sI sI sI si si sb}", "version", SDLF_VERSION, "weights",
                               json_text(s->set.weights), "network", json_text(sdlf_model_name(s->model)), "file",
                               json_text(s->set.out), "weights_only", only_names[s->set.only], "layers", w->layers,
                               "skipped", w->left, "activations", w->values, "samples", (json_int_t)w->samples, "bytes",
                               (json_int_t)w->bytes, "bytes_before", (json_int_t)w->bytes_before, "opset", w->opset,
                               "nodes", w->node_count, "fixed_batch", w->fixed_batch);
    if (result) json_object_set_new(result, "comparison", s->test ? agreement_json(&s->agreement) : json_null());
    return json_print_result(result);
}

static sdlf_status work(session *s)
{
    terminal out = terminal_of(stdout);
    sdlf_status status = machine_open_one(&s->machine, &s->set.choice, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = network_open_weights(&s->model, s->set.weights, s->set.net, &s->set.dimensions);
    if (status == SDLF_OK && !s->set.json) report_header(&out, s->machine.calculator, s->machine.count);
    if (status == SDLF_OK) status = find_data(s);
    if (status != SDLF_OK) return status;
    if (!s->set.json) {
        char *note = memory_print("  from %s", s->set.weights);
        if (s->data) report_data(&out, s->train, s->test);
        report_network(&out, &(report_subject){.model = s->model, .note = note});
        fflush(stdout);
        free(note);
    }
    interrupt_waits();
    status = quantize(s);
    if (status == SDLF_OK && s->test) status = compare(s);
    if (status != SDLF_OK) return status;
    if (s->set.json) return print_json(s);
    print_text(s, &out);
    return SDLF_OK;
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {{table_of_arguments, 0},
                                          {dimension_arguments, offsetof(settings, dimensions)},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {0}};
    static const command_usage usage = {
        .command = "quantize",
        .synopsis = "WEIGHTS -o FILE.onnx [options]",
        .text =
            "Write a network with integer weights as an ONNX file that this and other programs run, and report how "
            "much smaller it is and how much its outputs change. With data, activations become integers too, in ranges "
            "found on samples, and convolutions and matrix products are computed in integers.",
        .parts = parts,
        .operands_maximum = 1,
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf quantize simple_cnn.safetensors -o int8.onnx\n"
                    "  sdlf quantize resnet18.onnx --data folder:pictures --calibration entropy -o int8.onnx\n"
                    "  sdlf quantize vit.onnx --weights-only int4 --block 64 -o int4.onnx\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    sdlf_status status = given.operand_count > 0 ? take_operand(&s, given.operand[0]) : SDLF_OK;
    if (status == SDLF_OK) status = check_options(&s, &given);
    if (status == SDLF_OK) status = read_skip(&s);
    if (status == SDLF_OK) status = work(&s);
    int code = command_conclude("quantize", status);
    free(s.words);
    sdlf_dataset_free(s.train);
    sdlf_dataset_free(s.test);
    sdlf_model_free(s.model);
    sdlf_model_free(s.after);
    machine_close(&s.machine);
    return code;
}

const command quantize_command = {
    .name = "quantize", .summary = "write a network with integer weights, as ONNX", .run = run};
