/* SPDX-License-Identifier: MIT */
/* sdlf bench model: the time of a run of a model, such as an ONNX file, and of each of its layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/execution.h"
#include "apps/arguments/onnx.h"
#include "apps/bench/bench.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/output/table.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"
#include "framework/clock.h"
#include "framework/sort.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

typedef struct settings {
    int64_t repeats, together;
    int dtype;
    bool json;
    execution execution;
    onnx_settings onnx;
} settings;

static const argument bench_arguments[] = {
    {.name = "What is timed", .type = ARGUMENT_HEADING},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 3, .maximum = 100000, .fallback = "20",
     .help = "runs, whose median is taken, after three to warm up"},
    {"together", ARGUMENT_INT, offsetof(settings, together), "N", .minimum = 1, .maximum = 10000, .fallback = "1",
     .help = "runs that are queued before waiting for a GPU"},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "the floating-point type"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    const char *path;
    machine machine;
    sdlf_model *model;
    sdlf_plan *plan;
    double load_seconds, seconds; /* until ready to run; of a run */
    int64_t runs;                 /* of which `seconds` is the median */
    bool layers;                  /* are timed */
    int64_t batch;
} session;

/* Random values of deviation 1 for floats; zeros for integers, which every model accepts. */
static void draw(const sdlf_tensor *input, char *values)
{
    int64_t count = sdlf_tensor_count(input);
    size_t size = sdlf_dtype_size(input->dtype);
    uint32_t state = 12345;
    memset(values, 0, (size_t)count * size);
    for (int64_t e = 0; e < count && sdlf_dtype_is_float(input->dtype); e++) {
        state = state * 1664525u + 1013904223u;
        double number = ((double)state / 4294967296.0 - 0.5) * 3.4641;
        sdlf_convert(input->dtype, values + (size_t)e * size, SDLF_FLOAT64, &number, 1);
    }
}

static sdlf_status fill_inputs(const session *s)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_input_count(s->model) && status == SDLF_OK; i++) {
        const char *name = sdlf_model_layer(s->model, sdlf_model_input(s->model, i).layer)->name;
        sdlf_binding binding;
        if (sdlf_plan_input(s->plan, name, &binding) != SDLF_OK) continue; /* unused */
        if (binding.calculator != NULL && sdlf_calculator_is_on_host(binding.calculator)) {
            draw(&binding.tensor, binding.tensor.data);
            continue;
        }
        char *values = memory_allocate((size_t)sdlf_tensor_bytes(&binding.tensor));
        draw(&binding.tensor, values);
        status = sdlf_plan_write(s->plan, name, values, binding.tensor.dtype, sdlf_tensor_bytes(&binding.tensor));
        free(values);
    }
    return status;
}

/* The median time of a whole run; if several are queued before the host waits, of their mean. */
static sdlf_status time_runs(session *s)
{
    double *taken = memory_allocate((size_t)s->set.repeats * sizeof *taken);
    sdlf_status status = SDLF_OK;
    for (int64_t i = -3; i < s->set.repeats && status == SDLF_OK && interrupt_signal() == 0; i++) {
        double start = sdlf_clock();
        for (int64_t j = 0; j < s->set.together && status == SDLF_OK; j++) status = sdlf_plan_forward(s->plan);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(s->plan);
        if (i >= 0) taken[s->runs++] = (sdlf_clock() - start) / (double)s->set.together;
    }
    sdlf_sort_doubles(taken, (size_t)s->runs);
    if (s->runs > 0) s->seconds = taken[s->runs / 2];
    free(taken);
    if (status == SDLF_OK && s->runs == 0) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "no run was timed");
    return status;
}

/* Reads the file's structure; weights follow when the plan is created. */
static sdlf_status load(session *s)
{
    sdlf_onnx_options options;
    double start = sdlf_clock();
    sdlf_status status = onnx_settings_complete(&s->set.onnx, &options);
    if (status == SDLF_OK && !network_is_onnx(s->path)) status = onnx_settings_fit_other(&s->set.onnx, s->path);
    options.leave_weights = true; /* for the only plan */
    if (status == SDLF_OK)
        status = network_is_onnx(s->path) ? sdlf_model_from_onnx(&s->model, s->path, &options)
                                          : network_open_to_take(&s->model, s->path, NULL, NULL);
    s->batch = network_is_onnx(s->path) || s->set.onnx.batch == 0 ? 1 : s->set.onnx.batch;
    s->load_seconds = sdlf_clock() - start;
    return status;
}

static sdlf_status measure(session *s, const terminal *out)
{
    sdlf_plan_options options = {.dtype = s->set.dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32, .consume_parameters = true};
    sdlf_status status = load(s);
    options.batch = s->batch;
    if (status == SDLF_OK) status = execution_complete(&s->set.execution, s->model);
    if (status == SDLF_OK) status = execution_to_plan(&s->set.execution, &s->machine, &options);
    double start = sdlf_clock();
    if (status == SDLF_OK) status = sdlf_plan_create(&s->plan, s->model, &options);
    s->load_seconds += sdlf_clock() - start;
    if (status == SDLF_OK) status = execution_keep_choices(&s->set.execution);
    if (status == SDLF_OK) execution_warn(&s->set.execution, s->plan, "bench model");
    if (status == SDLF_OK) status = fill_inputs(s);
    if (status == SDLF_OK && !s->set.json) report_header(out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    interrupt_waits();
    status_line_show("%s runs of %s", number_count(s->set.repeats).text, s->path);
    if (status == SDLF_OK) status = time_runs(s);
    s->layers = status == SDLF_OK && interrupt_signal() == 0;
    const sdlf_timing timing = {.repeats = (int)s->set.repeats, .go_on = interrupt_goes_on};
    if (s->layers) status_line_show("every layer of %s", s->path);
    if (s->layers) status = sdlf_plan_time_with(s->plan, &timing);
    status_line_clear();
    if (status != SDLF_ERROR_INTERRUPTED || s->runs == 0) return status;
    s->layers = false;
    return SDLF_OK;
}

static double rate(int64_t amount, double seconds)
{
    return seconds > 0 ? (double)amount / seconds / 1e9 : 0;
}

static void print_text(const session *s, const terminal *out)
{
    sdlf_memory_info memory = sdlf_plan_memory(s->plan);
    sdlf_cost cost = report_plan_cost(s->plan);
    char *text =
        memory_print("%s  %s of parameters, ready in %s; %s to run", s->path, number_bytes(memory.parameters).text,
                     number_duration(s->load_seconds).text, number_bytes(memory.arena).text);
    report_label(out, "model");
    report_wrapped(out, text, (int)strlen("model  "));
    free(text);
    report_label(out, "run");
    printf("%s, %s, %.1f GFLOP/s\n", number_duration(s->seconds).text, number_scaled((double)cost.flops, "FLOP").text,
           rate(cost.flops, s->seconds));
    if (!s->layers) return;
    putchar('\n');
    table *t = table_create("layer|output|on|>ms|>share|>GFLOP/s|->GB/s");
    double total = 0;
    for (int i = 0; i < sdlf_plan_layer_count(s->plan); i++) total += sdlf_plan_layer_info(s->plan, i).forward_seconds;
    for (int i = 0; i < sdlf_plan_layer_count(s->plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(s->plan, i);
        if (info.forward_seconds <= 0) continue; /* a view */
        table_cell(t, "%s", info.layer);
        table_cell(t, "%s", sdlf_shape_print(info.shape).text);
        table_cell(t, "%s", info.forward);
        table_cell(t, "%s", number_fixed(info.forward_seconds * 1e3, 3).text);
        table_cell(t, "%s", number_percent(info.forward_seconds / total, 1).text);
        table_cell(t, "%s", number_fixed(rate(info.forward_cost.flops, info.forward_seconds), 1).text);
        table_cell(t, "%s", number_fixed(rate(info.forward_cost.bytes, info.forward_seconds), 1).text);
    }
    table_rule(t);
    table_cell(t, "total");
    table_cell(t, "%s", "");
    table_cell(t, "%s", "");
    table_cell(t, "%s", number_fixed(total * 1e3, 3).text);
    for (int i = 0; i < 3; i++) table_cell(t, "%s", "");
    table_print(t, out, 2);
    table_free(t);
}

static sdlf_status print_json(const session *s)
{
    json_t *layers = json_array();
    for (int i = 0; i < sdlf_plan_layer_count(s->plan) && s->layers; i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(s->plan, i);
        json_array_append_new(layers,
                              json_pack("{so so so so sI sI}", "layer", json_text(info.layer), "shape",
                                        json_shape(info.shape), "calculator", json_text(info.forward), "seconds",
                                        json_number(info.forward_seconds), "flops", (json_int_t)info.forward_cost.flops,
                                        "bytes", (json_int_t)info.forward_cost.bytes));
    }
    sdlf_memory_info memory = sdlf_plan_memory(s->plan);
    json_t *all = json_pack("{so so so sI sI sI so}", "model", json_text(s->path), "load_seconds",
                            json_number(s->load_seconds), "seconds", json_number(s->seconds), "flops",
                            (json_int_t)report_plan_cost(s->plan).flops, "bytes_to_run", (json_int_t)memory.arena,
                            "parameter_bytes", (json_int_t)memory.parameters, "layers", layers);
    return json_print_measured(all);
}

static int run(int count, char **words)
{
    session s = {.path = NULL};
    arguments given;
    static const argument_part parts[] = {{bench_arguments, 0},
                                          {onnx_arguments, offsetof(settings, onnx)},
                                          {execution_arguments, offsetof(settings, execution)},
                                          {machine_arguments, offsetof(settings, execution.choice)},
                                          {0}};
    static const command_usage usage = {
        .command = "bench model",
        .synopsis = "[options] MODEL",
        .text = "Time a model from an ONNX or a safetensors file on random input: a whole run, and every layer. 'sdlf "
                "bench FILE' is the same.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = 1,
        .operand_name = "a model",
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf bench mobilenetv2.onnx\n"
                    "  sdlf bench model --dtype float64 --threads 1 mobilenetv2.onnx\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    terminal out = terminal_of(stdout);
    s.path = given.operand[0];
    sdlf_status status = measure(&s, &out);
    if (status == SDLF_OK && s.set.json)
        status = print_json(&s);
    else if (status == SDLF_OK)
        print_text(&s, &out);
    if (status == SDLF_OK)
        interrupt_say(!s.set.json, " after %lld of %lld runs; %s", (long long)s.runs, (long long)s.set.repeats,
                      s.layers ? "layers' times are of fewer" : "no layer was timed");
    int code = command_conclude("bench model", status);
    sdlf_plan_free(s.plan);
    sdlf_model_free(s.model);
    machine_close(&s.machine);
    execution_release(&s.set.execution);
    onnx_settings_release(&s.set.onnx);
    return code;
}

const bench model_bench = {"model", "a run of a model from an ONNX or a safetensors file, and every layer of it", run};
