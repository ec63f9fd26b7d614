/* sdlf predict: say what is in pictures. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/input/network.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/scores.h"
#include "apps/pictures/draw.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

typedef struct settings {
    const char *weights, *net, *label_file, *calculator;
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
     .help = "the network, for weights that do not bring theirs: a built-in name, FILE.json or FILE.onnx"},
    {"top", ARGUMENT_INT, offsetof(settings, top), "N", .minimum = 1, .maximum = 1000, .fallback = "1",
     .help = "classes to print, likeliest first"},
    {"labels", ARGUMENT_TEXT, offsetof(settings, label_file), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "names of the classes, one a line (default: those that the file carries)"},
    {"draw", ARGUMENT_FLAG, offsetof(settings, draw), .help = "draw each picture as the network sees it"},
    {"index", ARGUMENT_INT, offsetof(settings, index), "N", .minimum = 0, .maximum = 2e9, .fallback = "0",
     .help = "which picture of an IDX file, from 0"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "what computes"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: as many as pay)"},
    {0},
};

static const argument output_arguments[] = {
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON, with the probability of every class"},
    {0},
};

static const double worth_threads = 1e9; /* FLOPs */

typedef struct session {
    settings set;
    terminal out;
    machine machine;
    sdlf_model *model;
    sdlf_plan *plan;
    const char *input, *output;
    preprocess_frame frame; /* of a sample */
    int class_count;
    float *pixels, *sample, *score;
    int64_t sample_bytes;
    double *probability;
    int *order; /* the likeliest classes, as many as are shown */
    int shown;
    labels labels;
    json_t *results;
    bool index_given;
} session;

static sdlf_status open_calculator(session *s, int threads, sdlf_calculator **calculator)
{
    machine_close(&s->machine);
    s->machine.choice = s->set.choice;
    s->machine.choice.threads = threads;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, calculator);
    return status == SDLF_OK ? machine_check_choice(&s->machine) : status;
}

/* A plan for one picture at a time: it takes the least memory and begins the soonest. On one thread, unless it was said how many, or
 * there is so much to compute that starting others pays. */
static sdlf_status make_plan(session *s, int pictures)
{
    int threads = (int)s->set.choice.threads;
    sdlf_plan_options options = {.batch = 1, .take_parameters = true};
    sdlf_status status = open_calculator(s, threads > 0 ? threads : 1, &options.forward);
    if (status == SDLF_OK && threads == 0 && sdlf_calculator_is_on_host(options.forward)) {
        sdlf_plan *outline = NULL;
        status = sdlf_plan_outline(&outline, s->model, &options);
        double flops = status == SDLF_OK ? (double)report_plan_cost(outline).flops * pictures : 0;
        sdlf_plan_free(outline);
        if (flops > worth_threads) status = open_calculator(s, 0, &options.forward);
    }
    return status == SDLF_OK ? sdlf_plan_create(&s->plan, s->model, &options) : status;
}

/* One picture goes in and a list of scores comes out? Files from elsewhere may have anything. */
static sdlf_status check_network(session *s)
{
    sdlf_binding input, output;
    if (sdlf_model_input_count(s->model) != 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its network has %d inputs, and one for a picture was expected",
                         s->set.weights, sdlf_model_input_count(s->model));
    s->input = sdlf_model_layer(s->model, sdlf_model_input(s->model, 0).layer)->name;
    s->output = sdlf_model_output_name(s->model, 0);
    sdlf_shape shape = network_sample_shape(s->model);
    sdlf_status status = sdlf_plan_input(s->plan, s->input, &input);
    if (status == SDLF_OK) status = sdlf_plan_output(s->plan, s->output, &output);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", s->set.weights);
    if (input.tensor.dtype != SDLF_FLOAT32 || sdlf_tensor_count(&input.tensor) != sdlf_shape_count(shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its input '%s' takes %s %s, and one picture of float32 was expected",
                         s->set.weights, s->input, sdlf_dtype_name(input.tensor.dtype),
                         sdlf_shape_print(input.tensor.shape).text);
    int64_t classes = sdlf_tensor_count(&output.tensor);
    if (output.tensor.dtype != SDLF_FLOAT32 || output.tensor.shape.rank < 2 || classes < 1 || classes > 1 << 24)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its network gives %s %s, and classes were expected", s->set.weights,
                         sdlf_dtype_name(output.tensor.dtype), sdlf_shape_print(output.tensor.shape).text);
    s->class_count = (int)classes;
    s->shown = classes < s->set.top ? (int)classes : (int)s->set.top;
    return sdlf_fail_context(preprocess_frame_of(&s->frame, shape, &s->set.preprocess), "%s", s->set.weights);
}

static sdlf_status prepare(session *s, int pictures)
{
    sdlf_status status = preprocess_check(&s->set.preprocess);
    if (status == SDLF_OK) status = labels_read(&s->labels, s->set.label_file);
    if (status == SDLF_OK) status = network_open_to_take(&s->model, s->set.weights, s->set.net);
    if (status == SDLF_OK) status = make_plan(s, pictures);
    if (status == SDLF_OK) status = check_network(s);
    if (status == SDLF_OK)
        status = preprocess_complete(&s->set.preprocess, sdlf_model_normalization(s->model), s->set.weights);
    if (status != SDLF_OK) return status;
    if (s->set.label_file == NULL) labels_of_model(&s->labels, s->model);
    labels_warn(&s->labels, s->class_count, "predict");
    size_t values = (size_t)s->frame.channels * (size_t)s->frame.rows * (size_t)s->frame.columns;
    s->pixels = memory_allocate(values * sizeof *s->pixels);
    s->sample = memory_allocate(values * sizeof *s->sample);
    s->sample_bytes = (int64_t)(values * sizeof *s->sample);
    s->score = memory_allocate((size_t)s->class_count * sizeof *s->score);
    s->probability = memory_allocate((size_t)s->class_count * sizeof *s->probability);
    s->order = memory_allocate((size_t)s->shown * sizeof *s->order);
    return SDLF_OK;
}

/* By insertion, likeliest first, the lower of equals first: few are shown. */
static void find_likeliest(session *s)
{
    int found = 0;
    for (int i = 0; i < s->class_count; i++) {
        int at = found;
        while (at > 0 && s->probability[s->order[at - 1]] < s->probability[i]) at--;
        if (at == s->shown) continue;
        if (found < s->shown) found++;
        memmove(s->order + at + 1, s->order + at, (size_t)(found - 1 - at) * sizeof *s->order);
        s->order[at] = i;
    }
}

static sdlf_status classify(session *s, const char *path)
{
    sdlf_status status = preprocess_read(s->sample, s->pixels, s->frame, path, s->set.index, &s->set.preprocess);
    if (status == SDLF_OK) status = sdlf_plan_write(s->plan, s->input, s->sample, SDLF_FLOAT32, s->sample_bytes);
    if (status == SDLF_OK) status = sdlf_plan_forward(s->plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(s->plan);
    if (status == SDLF_OK)
        status = sdlf_plan_read(s->plan, s->output, s->score, SDLF_FLOAT32, s->class_count * (int64_t)sizeof *s->score);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < s->class_count; i++) s->probability[i] = (double)s->score[i];
    status = scores_check(s->probability, s->class_count);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", path);
    scores_to_probabilities(s->probability, s->class_count);
    find_likeliest(s);
    return SDLF_OK;
}

/* "seven.png   7   99.8%   1   0.1%" */
static void print_text(const session *s, const char *path, int width)
{
    char *shown = memory_copy_text(path);
    terminal_clean(shown);
    printf("%-*s", width + (int)strlen(shown) - terminal_columns(shown), shown);
    free(shown);
    if (s->index_given) printf("  %" PRId64, s->set.index);
    for (int i = 0; i < s->shown; i++) {
        const char *label = labels_name(&s->labels, s->order[i]);
        printf("   %s%d%s  %6s", i == 0 ? terminal_escape(&s->out, TERMINAL_BOLD) : "", s->order[i],
               i == 0 ? terminal_escape(&s->out, TERMINAL_PLAIN) : "",
               number_percent(s->probability[s->order[i]], 1).text);
        if (label) printf("  %s", label);
    }
    putchar('\n');
    if (s->set.draw) draw_picture(&s->out, s->pixels, s->frame.rows, s->frame.columns, 2);
}

static void add_json(const session *s, const char *path)
{
    json_t *probabilities = json_array();
    const char *label = labels_name(&s->labels, s->order[0]);
    for (int i = 0; i < s->class_count; i++) json_array_append_new(probabilities, json_number(s->probability[i]));
    json_array_append_new(
        s->results, json_pack("{so sI si so so so}", "file", json_text(path), "index", (json_int_t)s->set.index,
                              "class", s->order[0], "label", label ? json_text(label) : json_null(), "probability",
                              json_number(s->probability[s->order[0]]), "probabilities", probabilities));
}

/* A picture that cannot be read does not keep the others from being looked at. */
static int predict(session *s, const arguments *given)
{
    sdlf_status status =
        s->set.json && s->set.draw
            ? sdlf_fail(SDLF_ERROR_ARGUMENT, "--draw and --json contradict each other: JSON has no pictures")
            : prepare(s, given->operand_count);
    if (status != SDLF_OK) return command_conclude("predict", status);
    int width = 0, code = COMMAND_OK;
    for (int i = 0; i < given->operand_count; i++) {
        int columns = terminal_columns(given->operand[i]);
        if (columns > width) width = columns;
    }
    if (s->set.json) s->results = json_array();
    s->index_given = arguments_given(given, "index");
    int looked_at = 0;
    interrupt_waits();
    for (; looked_at < given->operand_count && interrupt_signal() == 0; looked_at++) {
        int i = looked_at;
        status = classify(s, given->operand[i]);
        if (status == SDLF_ERROR_INTERRUPTED) break;
        if (status != SDLF_OK) {
            command_conclude("predict", status);
            code = COMMAND_FAILED;
        } else if (s->set.json) {
            add_json(s, given->operand[i]);
        } else {
            print_text(s, given->operand[i], width);
        }
    }
    if (s->set.json && !json_print(s->results, stdout)) code = COMMAND_FAILED;
    interrupt_say(!s->set.json, " after %d of %d pictures", looked_at, given->operand_count);
    return interrupt_signal() == 0 ? code : command_conclude("predict", SDLF_OK);
}

static void epilogue(void)
{
    printf("\nPictures are files of %s.\n", sdlf_image_formats());
}

static int run(int count, char **words)
{
    session s = {.out = terminal_of(stdout)};
    arguments given;
    static const argument_part parts[] = {{predict_arguments, 0},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {output_arguments, 0},
                                          {preprocess_arguments, offsetof(settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "predict",
        .synopsis = "--weights FILE [options] PICTURE...",
        .text = "Say what is in pictures: their likeliest class and its probability. Pictures are preprocessed as in "
                "training, where the model's file says how that was, or as --preprocess says. For networks that take "
                "grey a photograph of dark ink on light paper will do: a digit is cut out, turned into light ink on "
                "black, scaled and centred.",
        .epilogue = epilogue,
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = 1 << 20,
        .operand_name = "a picture",
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf predict --weights simple_cnn.safetensors seven.png\n"
                    "  sdlf predict --weights lenet5.safetensors --draw --top 3 *.png\n"
                    "  sdlf predict --weights lenet5.safetensors --index 7 images-idx3-ubyte\n"
                    "  sdlf predict --weights mobilenetv2.onnx --preprocess tf --top 5 cat.jpg\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = predict(&s, &given);
    labels_release(&s.labels);
    free(s.pixels);
    free(s.sample);
    free(s.score);
    free(s.probability);
    free(s.order);
    sdlf_plan_free(s.plan);
    sdlf_model_free(s.model);
    machine_close(&s.machine);
    return code;
}

const command predict_command = {.name = "predict", .summary = "say what is in pictures", .run = run};
