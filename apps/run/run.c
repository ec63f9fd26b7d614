/* SPDX-License-Identifier: MIT */
/* sdlf run: runs a model on inputs from files. */
#include "apps/run/run.h"
#include "apps/output/status_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

static const argument run_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"input", ARGUMENT_LIST, offsetof(run_settings, inputs), "[NAME=]FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "a picture, a .npy array or a .pb tensor; may be repeated, for several inputs or for a batch of pictures"},
    {"output", ARGUMENT_LIST, offsetof(run_settings, outputs), "[NAME=]FILE", .standard = ARGUMENT_STANDARD_OUTPUT,
     .help = "write an output as a .npy array; may be repeated"},
    {"top", ARGUMENT_INT, offsetof(run_settings, top), "N", .minimum = 0, .maximum = 1000, .fallback = "0",
     .help = "print the N likeliest classes of each sample"},
    {"labels", ARGUMENT_TEXT, offsetof(run_settings, label_file), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "names of the classes, one a line; prints 5 of them unless --top says how many"},
    {"state", ARGUMENT_LIST, offsetof(run_settings, states), "INPUT=OUTPUT",
     .help = "run step by step: an output becomes the next step's input, such as a decoder's keys and values; \"*\" in "
             "both matches any part of a name, \",\" separates several; may be repeated"},
    {"steps", ARGUMENT_INT, offsetof(run_settings, steps), "N", .minimum = 1, .maximum = 1000000,
     .help = "with --state: the number of steps (default: 1); inputs with an open dimension are split along it into N "
             "parts, one per step"},
    {"growing", ARGUMENT_LIST, offsetof(run_settings, growing), "INPUT",
     .help = "with --state: an input with an element for every position so far, such as an attention_mask: a step "
             "reads the first of its file; may be repeated"},
    {"capacity", ARGUMENT_INT, offsetof(run_settings, capacity), "N", .minimum = 1, .maximum = 16777216,
     .help = "with --state: capacity of the states in positions (default: what the steps need)"},
    {"dtype", ARGUMENT_CHOICE, offsetof(run_settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "the floating-point type"},
    {"calculator", ARGUMENT_NAME, offsetof(run_settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(run_settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

static const argument output_arguments[] = {
    {"json", ARGUMENT_FLAG, offsetof(run_settings, json), .help = "print JSON, with every element of small outputs"},
    {0},
};

/* "NAME=FILE"; a file name may contain "=" if a "/" comes before it and the file exists, or if it begins with "./" or
 * "../". */
static void split_files(run_session *s, run_file *files, const argument_list *list)
{
    for (int i = 0; i < list->count; i++) {
        char *copy = s->text[s->text_count++] = memory_copy_text(list->item[i]);
        char *equals = strchr(copy, '='), *slash = strchr(copy, '/');
        files[i] = (run_file){.path = copy};
        bool path = strncmp(copy, "./", 2) == 0 || strncmp(copy, "../", 3) == 0;
        path = path || (slash != NULL && slash < equals && access(copy, F_OK) == 0);
        if (equals == NULL || equals == copy || path) continue;
        *equals = '\0';
        files[i] = (run_file){.name = copy, .path = equals + 1};
    }
}

/* The model input for this file, by its name, or the next input if unnamed; -1: none. */
static int listed_for(const run_session *s, const run_file *file, int *unnamed)
{
    if (file->name == NULL) return *unnamed < s->listed_count ? (*unnamed)++ : -1;
    for (int j = 0; j < s->listed_count; j++)
        if (strcmp(s->listed[j].name, file->name) == 0) return j;
    return -1;
}

/* Collects the shapes of the arrays, which determine the model file's open dimensions; returns their number. */
static int take_shapes(const run_session *s, sdlf_onnx_shape *shapes)
{
    int unnamed = 0, count = 0;
    for (int i = 0; i < s->set.inputs.count; i++) {
        int at = listed_for(s, &s->input[i], &unnamed);
        if (at >= 0 && s->input[i].array != NULL)
            shapes[count++] = (sdlf_onnx_shape){s->listed[at].name, s->input[i].tensor.shape};
    }
    return count;
}

/* Reads the arrays that the model is built from; only once, since they may come from a pipe. */
static sdlf_status read_known(run_session *s, sdlf_onnx_known *known, int *count)
{
    int unnamed = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++) {
        run_file *file = &s->input[i];
        int at = listed_for(s, file, &unnamed);
        if (at < 0 || !s->listed[at].must_be_known) continue;
        if (file->array == NULL) continue;
        status = run_read_array(file);
        known[(*count)++] = (sdlf_onnx_known){s->listed[at].name, file->tensor};
    }
    return status;
}

static sdlf_status open_onnx(run_session *s, int64_t batch, const sdlf_onnx_known *known, int known_count)
{
    sdlf_onnx_options options;
    sdlf_status status = onnx_settings_complete(&s->set.onnx, &options);
    if (status != SDLF_OK) return status;
    options.batch = batch;
    options.known = known;
    options.known_count = known_count;
    options.leave_weights = true; /* for the only plan */
    sdlf_onnx_shape shapes[ARGUMENT_LIST_MAX];
    options.shapes = shapes;
    options.shape_count = take_shapes(s, shapes);
    sdlf_model_free(s->model);
    s->model = NULL;
    return sdlf_model_from_onnx(&s->model, s->model_path, &options);
}

/* Counts the plan, and a copy of the largest output. */
static sdlf_status check_memory(run_session *s, const sdlf_memory_info *memory)
{
    const char *name = memory->output_name != NULL ? memory->output_name : "";
    sdlf_status status =
        machine_check_memory(&s->machine, memory->arena + memory->parameters + memory->output, "a smaller --batch");
    char shown[100];
    snprintf(shown, sizeof shown, "%s", name);
    terminal_clean(shown);
    if (status != SDLF_ERROR_MEMORY) return status;
    return sdlf_fail_context(status, "%s to run it, %s of parameters and %s for output '%s', its largest",
                             number_bytes(memory->arena).text, number_bytes(memory->parameters).text,
                             number_bytes(memory->output).text, shown);
}

static sdlf_status make_plan(run_session *s, sdlf_calculator *calculator, int64_t batch)
{
    sdlf_plan_options options = {.batch = batch,
                                 .forward = calculator,
                                 .dtype = s->set.dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32,
                                 .consume_parameters = true};
    sdlf_memory_info memory;
    sdlf_status status = sdlf_plan_measure(&memory, s->model, &options);
    if (status == SDLF_OK) status = check_memory(s, &memory);
    return status == SDLF_OK ? sdlf_plan_create(&s->plan, s->model, &options) : status;
}

/* True if the first dimension of an input in the file is open. */
static bool has_open_batch(const run_session *s)
{
    for (int i = 0; i < s->listed_count; i++) {
        const run_listed *input = &s->listed[i];
        if (!input->must_be_known && input->shape.rank > 0 && input->shape.dim[0] < 0) return true;
    }
    return false;
}

/* A file is read for exactly the batch that is run if it leaves the batch open, so that values computed from shapes are
 * right for it; likewise if it does not, and the model cannot be built for any batch. */
static sdlf_status make_model(run_session *s)
{
    sdlf_calculator *calculator = NULL;
    sdlf_status status = machine_open_one(&s->machine, &s->set.choice, s->set.calculator, &calculator);
    if (status != SDLF_OK) return status;
    if (!network_is_onnx(s->model_path)) {
        status = network_open_to_take(&s->model, s->model_path, NULL, NULL);
        return status == SDLF_OK ? make_plan(s, calculator, s->batch) : status;
    }
    sdlf_onnx_known known[ARGUMENT_LIST_MAX];
    int known_count = 0;
    status = read_known(s, known, &known_count);
    if (status != SDLF_OK) return status;
    bool exactly = s->batch > 1 && has_open_batch(s);
    for (int attempt = 0; attempt < 2; attempt++, exactly = !exactly) {
        status = open_onnx(s, exactly ? s->batch : 0, known, known_count);
        if (status == SDLF_OK) status = make_plan(s, calculator, exactly ? 1 : s->batch);
        if (status == SDLF_OK || status == SDLF_ERROR_MEMORY) break;
    }
    return status;
}

/* Only the inputs are kept from the file's description, which can be as large as the weights of a small model. */
static sdlf_status inspect(run_session *s)
{
    sdlf_onnx_options options;
    sdlf_onnx_report *report = NULL;
    if (!network_is_onnx(s->model_path)) return onnx_settings_fit_other(&s->set.onnx, s->model_path);
    sdlf_status status = onnx_settings_complete(&s->set.onnx, &options);
    if (status == SDLF_OK) status = sdlf_onnx_inspect(&report, s->model_path, &options);
    if (status != SDLF_OK) return status;
    s->listed_count = report->input_count;
    s->listed = memory_allocate((size_t)report->input_count * sizeof *s->listed);
    for (int i = 0; i < report->input_count; i++) {
        const sdlf_onnx_value *input = &report->input[i];
        s->listed[i] = (run_listed){memory_copy_text(input->name), input->shape, input->must_be_known};
    }
    sdlf_onnx_report_free(report);
    return SDLF_OK;
}

sdlf_status run_forward(run_session *s)
{
    sdlf_status status = make_model(s);
    if (status == SDLF_OK) status = run_write_inputs(s);
    if (status == SDLF_OK && !s->is_part) status_line_show("%s on %s", s->model_path, s->set.calculator);
    if (status == SDLF_OK) status = sdlf_plan_forward(s->plan);
    return status == SDLF_OK ? sdlf_plan_synchronize(s->plan) : status;
}

static sdlf_status take_devices(run_session *s, const arguments *given)
{
    rank_settings *ranks = &s->set.ranks;
    if (ranks->devices == NULL) return SDLF_OK;
    if (arguments_given(given, "device"))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--devices %s and --device contradict each other", ranks->devices);
    sdlf_status status = ranks_read_devices(ranks, s->set.calculator);
    if (ranks->device_count == 1) s->set.choice.device = ranks->device[0];
    return status;
}

static sdlf_status work(run_session *s, const arguments *given)
{
    split_files(s, s->input, &s->set.inputs);
    split_files(s, s->output, &s->set.outputs);
    sdlf_status status = preprocess_check(&s->set.preprocess); /* before any long work */
    if (status == SDLF_OK) status = take_devices(s, given);
    if (status == SDLF_OK) status = run_take_standard(s);
    if (status == SDLF_OK) status = run_check_pictures(s, given);
    if (status == SDLF_OK) status = inspect(s);
    if (status == SDLF_OK) status = run_open_inputs(s);
    if (status == SDLF_OK) status = labels_read(&s->labels, s->set.label_file);
    if (status == SDLF_OK) status = run_check_outputs(s);
    if (status == SDLF_OK)
        status = s->set.states.count > 0 || s->set.steps > 0 || s->set.growing.count > 0 ? run_steps(s, given)
                 : s->set.ranks.device_count > 1                                         ? run_in_parts(s)
                                                                                         : run_forward(s);
    status_line_clear();
    if (status == SDLF_OK && s->set.label_file == NULL) labels_of_model(&s->labels, s->model);
    if (status == SDLF_OK) interrupt_waits(); /* until the files are complete, as in export */
    return status == SDLF_OK ? run_show_outputs(s) : status;
}

static void release(run_session *s)
{
    run_close_inputs(s); /* after a failure */
    for (int i = 0; i < s->text_count; i++) free(s->text[i]);
    labels_release(&s->labels);
    run_release_parts(s);
    run_release_steps(s);
    free(s->not_finite);
    onnx_settings_release(&s->set.onnx);
    sdlf_plan_free(s->plan);
    sdlf_model_free(s->model);
    for (int i = 0; i < s->listed_count; i++) free(s->listed[i].name);
    free(s->listed);
    machine_close(&s->machine);
}

static int run(int count, char **words)
{
    run_session s = {.out = terminal_of(stdout)};
    arguments given;
    static const argument_part parts[] = {{run_arguments, 0},
                                          {machine_arguments, offsetof(run_settings, choice)},
                                          {device_list_arguments, offsetof(run_settings, ranks)},
                                          {onnx_arguments, offsetof(run_settings, onnx)},
                                          {output_arguments, 0},
                                          {preprocess_arguments, offsetof(run_settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "run",
        .synopsis = "[options] MODEL",
        .text =
            "Run a model, from an ONNX or a safetensors file, on inputs from files: summarise the outputs, or write "
            "them to files. Pictures are preprocessed as in training, where the model's file says how that was, or as "
            "--preprocess says.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = 1,
        .operand_name = "a model",
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf run mobilenetv2.onnx --input cat.jpg --preprocess tf --top 5\n"
                    "  sdlf run model.onnx --input x=x.npy --input mask=m.npy --output y=y.npy\n"
                    "  sdlf run model.onnx --input x.npy --calculator cuda --devices 0,1\n"
                    "  sdlf run decoder.onnx --input ids.npy --state 'past_key_values.*=present.*' --steps 100\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.model_path = given.operand[0];
    if (s.set.label_file && !arguments_given(&given, "top")) s.set.top = 5;
    sdlf_status status = work(&s, &given);
    int code = command_conclude("run", status);
    release(&s);
    return code;
}

const command run_command = {
    .name = "run", .summary = "run a model, such as an ONNX file, on pictures or arrays", .run = run};
