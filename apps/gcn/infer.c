/* SPDX-License-Identifier: MIT */
/* sdlf gcn infer: log_softmax(A (X W)) over a graph, timed operation by operation. */
#include "apps/gcn/infer.h"

#include <stdio.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "framework/clock.h"

static const char *const dtype_names[] = {"f64", "f32", NULL};
static const char *const normalization_names[] = {"symmetric", "none", "row", NULL};

static const argument what_arguments[] = {
    {.name = "What is computed", .type = ARGUMENT_HEADING},
    {"graph", ARGUMENT_TEXT, offsetof(gcn_infer_settings, graph), "GRAPH", .fallback = "rmat",
     .help = "a graph from the list below"},
    {"features", ARGUMENT_INT, offsetof(gcn_infer_settings, features), "N", .minimum = 1, .maximum = 16777216,
     .fallback = "128", .help = "features of a node, drawn at random; planetoid: has its own"},
    {"features-file", ARGUMENT_TEXT, offsetof(gcn_infer_settings, features_file), "FILE.npy",
     .standard = ARGUMENT_STANDARD_INPUT, .help = "features from a file instead: (nodes, N) float32 or float64"},
    {"hidden", ARGUMENT_INT, offsetof(gcn_infer_settings, hidden), "N", .minimum = 1, .maximum = 65536,
     .fallback = "16", .help = "outputs of a node"},
    {"dtype", ARGUMENT_CHOICE, offsetof(gcn_infer_settings, dtype), "TYPE", .choices = dtype_names, .fallback = "f64",
     .help = "element type"},
    {"normalize", ARGUMENT_CHOICE, offsetof(gcn_infer_settings, normalization), "HOW", .choices = normalization_names,
     .fallback = "symmetric", .help = "symmetric: D^-1/2 (A + I) D^-1/2; row: D^-1 (A + I)"},
    {"no-self-loops", ARGUMENT_FLAG, offsetof(gcn_infer_settings, no_self_loops), .help = "A instead of A + I"},
    {"seed", ARGUMENT_INT, offsetof(gcn_infer_settings, seed), "N", .maximum = 9e15, .fallback = "1",
     .help = "seed of features and weights"},
    {.name = "How", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(gcn_infer_settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(gcn_infer_settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"dense-algorithm", ARGUMENT_TEXT, offsetof(gcn_infer_settings, dense_algorithm), "NAME",
     .help = "how X W is computed: one of those that --ladder lists (default: the calculator's own choice)"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(gcn_infer_settings, no_fusion), .help = "run each operation by itself"},
    {"repeats", ARGUMENT_INT, offsetof(gcn_infer_settings, repeats), "N", .minimum = 1, .maximum = 100000,
     .fallback = "10", .help = "runs, whose median is taken"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"ladder", ARGUMENT_FLAG, offsetof(gcn_infer_settings, ladder),
     .help = "also time the dense product by every algorithm of the calculator"},
    {"json", ARGUMENT_FLAG, offsetof(gcn_infer_settings, json), .help = "print JSON"},
    {0},
};

static sdlf_status open_graph(gcn_inference *s)
{
    static const sdlf_normalization_kind kinds[] = {SDLF_NORMALIZE_SYMMETRIC, SDLF_NORMALIZE_NONE, SDLF_NORMALIZE_ROW};
    double start = sdlf_clock();
    status_line_show("graph %s", s->set.graph);
    sdlf_status status = sdlf_graph_open(&s->graph, s->set.graph);
    status_line_clear();
    s->reading = sdlf_clock() - start;
    if (status != SDLF_OK) return status;
    status_line_show("matrix of graph %s", s->set.graph);
    start = sdlf_clock();
    status = sdlf_graph_matrix(&s->matrix, s->graph,
                               &(sdlf_graph_matrix_options){.dtype = s->dtype,
                                                            .normalization = kinds[s->set.normalization],
                                                            .self_loops = !s->set.no_self_loops});
    s->preparing = sdlf_clock() - start;
    status_line_clear();
    return status;
}

static sdlf_status infer(gcn_inference *s)
{
    terminal out = terminal_of(stdout);
    bool text = !s->set.json;
    s->dtype = s->set.dtype == 0 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK) status = open_graph(s);
    if (status == SDLF_OK && text) report_header(&out, s->machine.calculator, s->machine.count);
    if (status == SDLF_OK && text) gcn_report_graph(&out, s->graph, &s->matrix, s->reading, s->preparing);
    fflush(stdout);
    if (status == SDLF_OK) status_line_show("features of %s nodes", number_count(s->graph->node_count).text);
    if (status == SDLF_OK) status = gcn_infer_prepare(s);
    status_line_clear();
    if (status == SDLF_OK && text) {
        report_label(&out, "net");
        printf("log_softmax(A (X W))  X %s  W %lldx%lld  %s\n", sdlf_shape_print(s->features.shape).text,
               (long long)s->features.shape.dim[1], (long long)s->set.hidden, sdlf_dtype_name(s->dtype));
        fflush(stdout);
    }
    if (status == SDLF_OK) status_line_show("timing %s runs", number_count(s->set.repeats).text);
    if (status == SDLF_OK) status = gcn_infer_compute(s);
    status_line_clear();
    if (status != SDLF_OK) return status;
    if (text) gcn_infer_print(s, &out);
    gcn_ladder ladder = {.count = 0};
    if (s->set.ladder && interrupt_signal() == 0)
        status = gcn_ladder_time(&ladder, s->calculator, s->dtype,
                                 sdlf_shape(s->graph->node_count, s->features.shape.dim[1], s->set.hidden),
                                 (int)s->set.repeats);
    if (status == SDLF_OK && text && ladder.count > 0) gcn_ladder_print(&ladder, &out);
    if (status == SDLF_OK)
        interrupt_say(text, "; %s",
                      !s->steps ? "only whole runs were timed" : "times are of fewer runs, or of fewer operations");
    if (status == SDLF_OK && !text) status = gcn_infer_print_json(s, &ladder);
    return status;
}

static int run(int count, char **words)
{
    gcn_inference s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(gcn_infer_settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "gcn infer",
        .synopsis = "[options]",
        .text = "Compute log_softmax(A (X W)) over a graph and say how long each operation takes.",
        .parts = parts,
        .epilogue = gcn_print_sources,
        .examples = "  sdlf gcn infer\n"
                    "  sdlf gcn infer --graph snap:web-Stanford.txt.gz --dtype f64 --calculator cuda --ladder\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.features_given = arguments_given(&given, "features");
    if (s.features_given && s.set.features_file != NULL) {
        arguments_wrong("gcn infer",
                        "--features N is of features drawn at random, and --features-file has its own number: "
                        "they exclude each other");
        return COMMAND_USAGE;
    }
    int code = command_conclude("gcn infer", infer(&s));
    sdlf_plan_free(s.plan);
    sdlf_model_free(s.model);
    sdlf_tensor_release(&s.matrix, NULL);
    sdlf_tensor_release(&s.features, NULL);
    sdlf_tensor_release(&s.output, NULL);
    sdlf_graph_free(s.graph);
    machine_close(&s.machine);
    return code;
}

const gcn_way gcn_infer_way = {"infer", "time one graph convolution, operation by operation", run};
