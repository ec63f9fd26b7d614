/* sdlf gcn infer: log_softmax(A (X W)) over a graph, timed operation by operation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include <sdlf/sdlf.h>

#include "apps/arguments.h"
#include "apps/clock.h"
#include "apps/command.h"
#include "apps/gcn.h"
#include "apps/json.h"
#include "apps/machine.h"
#include "apps/number.h"
#include "apps/report.h"
#include "apps/table.h"
#include <sdlf/formats.h>

typedef struct settings {
    const char *graph, *features_file, *calculator;
    int64_t features, hidden, repeats, seed;
    int dtype, normalization;
    machine_choice choice;
    bool no_self_loops, no_fusion, ladder, json;
} settings;

static const char *const dtype_names[] = {"f64", "f32", NULL};
static const char *const normalization_names[] = {"symmetric", "none", "row", NULL};

static const argument what_arguments[] = {
    {.name = "What is computed", .type = ARGUMENT_HEADING},
    {"graph", ARGUMENT_TEXT, offsetof(settings, graph), "GRAPH", .fallback = "rmat",
     .help = "a graph from the list below"},
    {"features", ARGUMENT_INT, offsetof(settings, features), "N", .minimum = 1, .maximum = 16777216, .fallback = "128",
     .help = "features of a node, drawn at random"},
    {"features-file", ARGUMENT_TEXT, offsetof(settings, features_file), "FILE.npy",
     .help = "features from a file instead: (nodes, N) float32 or float64"},
    {"hidden", ARGUMENT_INT, offsetof(settings, hidden), "N", .minimum = 1, .maximum = 65536, .fallback = "16",
     .help = "outputs of a node"},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "f64",
     .help = "type of all numbers"},
    {"normalize", ARGUMENT_CHOICE, offsetof(settings, normalization), "HOW", .choices = normalization_names,
     .fallback = "symmetric", .help = "symmetric: D^-1/2 (A + I) D^-1/2; row: D^-1 (A + I)"},
    {"no-self-loops", ARGUMENT_FLAG, offsetof(settings, no_self_loops), .help = "A instead of A + I"},
    {"seed", ARGUMENT_INT, offsetof(settings, seed), "N", .maximum = 9e15, .fallback = "1",
     .help = "of features and weights"},
    {.name = "How", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "what computes"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(settings, no_fusion), .help = "run each operation by itself"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "10",
     .help = "runs, whose median is taken"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"ladder", ARGUMENT_FLAG, offsetof(settings, ladder),
     .help = "time the dense product by every algorithm of the calculator too"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_graph *graph;
    sdlf_tensor matrix, features, output;
    sdlf_model *model;
    sdlf_plan *plan;
    sdlf_dtype dtype;
    double reading, whole; /* seconds */
    double largest;        /* sum of a vertex's outputs */
    int64_t largest_at;
    uint32_t checksum;
} session;

/* ---- input ---- */

static sdlf_status open_graph(session *s)
{
    static const sdlf_normalization_kind kinds[] = {SDLF_NORMALIZE_SYMMETRIC, SDLF_NORMALIZE_NONE, SDLF_NORMALIZE_ROW};
    double start = clock_now();
    sdlf_status status = sdlf_graph_open(&s->graph, s->set.graph);
    s->reading = clock_now() - start;
    if (status != SDLF_OK) return status;
    return sdlf_graph_matrix(&s->matrix, s->graph,
                             &(sdlf_graph_matrix_options){.dtype = s->dtype,
                                                          .normalization = kinds[s->set.normalization],
                                                          .self_loops = !s->set.no_self_loops});
}

static sdlf_status convert_features(session *s, const sdlf_tensor *from, const char *name)
{
    if (from->shape.rank != 2 || from->shape.dim[0] != s->graph->node_count || !sdlf_dtype_is_float(from->dtype) ||
        from->shape.dim[1] < 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected floating-point features of shape %lldxN, found %s %s", name,
                         (long long)s->graph->node_count, sdlf_dtype_name(from->dtype),
                         sdlf_shape_print(from->shape).text);
    sdlf_status status = sdlf_tensor_create(&s->features, NULL, s->dtype, from->shape);
    if (status != SDLF_OK) return status;
    sdlf_convert(s->dtype, s->features.data, from->dtype, from->data, sdlf_tensor_count(from));
    return SDLF_OK;
}

static sdlf_status make_features(session *s)
{
    sdlf_tensor read;
    if (s->set.features_file != NULL) {
        sdlf_status status = sdlf_tensor_read_file(&read, s->set.features_file);
        if (status == SDLF_OK) status = convert_features(s, &read, s->set.features_file);
        sdlf_tensor_release(&read, NULL);
        return status;
    }
    if (sdlf_tensor_present(&s->graph->features)) return convert_features(s, &s->graph->features, s->graph->name);
    sdlf_shape shape = sdlf_shape(s->graph->node_count, s->set.features);
    const sdlf_tensor wanted = sdlf_tensor_view(s->dtype, shape, NULL);
    int64_t bytes = sdlf_tensor_bytes(&wanted);
    sdlf_status status = machine_check_memory(&s->machine, bytes < 0 ? INT64_MAX : bytes);
    if (status == SDLF_OK) status = sdlf_tensor_create(&s->features, NULL, s->dtype, shape);
    sdlf_calculator *host = NULL; /* draws the same everywhere */
    if (status == SDLF_OK) status = sdlf_calculator_open(&host, "cpu", NULL);
    if (status != SDLF_OK) return status;
    const sdlf_operation draw = {
        .kind = SDLF_RANDOM_UNIFORM,
        .out = {s->features},
        .random = {.seed = (uint64_t)s->set.seed, .stream = SDLF_STREAM_DATASET, .a = -1, .b = 1}};
    status = sdlf_calculator_run(host, &draw);
    sdlf_calculator_close(host);
    return status;
}

static sdlf_status make_model(session *s)
{
    s->model = sdlf_model_create("gcn");
    sdlf_node x = sdlf_input(s->model, "x", SDLF_FLOAT32, sdlf_shape(s->features.shape.dim[1]));
    sdlf_node matrix = sdlf_sparse_input(s->model, "matrix");
    x = sdlf_graph_conv(s->model, x, matrix, &(sdlf_graph_conv_options){.units = (int)s->set.hidden, .no_bias = true});
    sdlf_output(s->model, "y", sdlf_log_softmax(s->model, x));
    return sdlf_model_build(s->model, (uint64_t)s->set.seed);
}

/* ---- running ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of whole runs. On a device each is what the host waits for, launch and all. */
static sdlf_status time_whole(session *s)
{
    double *seconds = malloc((size_t)s->set.repeats * sizeof *seconds);
    if (seconds == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %lld times", (long long)s->set.repeats);
    sdlf_status status = SDLF_OK;
    for (int64_t i = -3; i < s->set.repeats && status == SDLF_OK; i++) { /* three to warm up, and to record */
        double start = clock_now();
        status = sdlf_plan_forward(s->plan);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(s->plan);
        if (i >= 0) seconds[i] = clock_now() - start;
    }
    qsort(seconds, (size_t)s->set.repeats, sizeof *seconds, compare_doubles);
    s->whole = seconds[s->set.repeats / 2];
    free(seconds);
    return status;
}

static double output_at(const session *s, int64_t i)
{
    return s->dtype == SDLF_FLOAT64 ? ((const double *)s->output.data)[i] : (double)((const float *)s->output.data)[i];
}

/* The check of the study: the largest sum of a vertex's outputs, the first of equals. */
static sdlf_status check_output(session *s)
{
    int64_t rows = s->graph->node_count, width = s->set.hidden;
    sdlf_status status = sdlf_tensor_create(&s->output, NULL, s->dtype, sdlf_shape(rows, width));
    if (status == SDLF_OK) status = sdlf_plan_read(s->plan, "y", s->output.data);
    if (status != SDLF_OK) return status;
    s->checksum = (uint32_t)crc32_z(crc32_z(0, NULL, 0), s->output.data, (z_size_t)sdlf_tensor_bytes(&s->output));
    s->largest = -(double)INFINITY;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += output_at(s, r * width + j);
        if (!(sum > s->largest)) continue;
        s->largest = sum;
        s->largest_at = r;
    }
    return SDLF_OK;
}

static sdlf_status compute(session *s)
{
    const sdlf_constant constants[] = {{"x", s->features}, {"matrix", s->matrix}};
    sdlf_plan_options options = {.batch = s->graph->node_count,
                                 .dtype = s->dtype,
                                 .forward = s->calculator,
                                 .no_fusion = s->set.no_fusion,
                                 .constants = constants,
                                 .constant_count = 2};
    sdlf_memory_info memory;
    sdlf_status status = sdlf_plan_measure(&memory, s->model, &options);
    if (status == SDLF_OK) status = machine_check_memory(&s->machine, memory.arena + memory.parameters);
    if (status == SDLF_OK) status = sdlf_plan_create(&s->plan, s->model, &options);
    if (status == SDLF_OK) status = time_whole(s);
    if (status == SDLF_OK) status = check_output(s);
    return status == SDLF_OK ? sdlf_plan_time(s->plan, (int)s->set.repeats) : status;
}

/* ---- output ---- */

static int64_t own_id(const session *s, int64_t node)
{
    return sdlf_tensor_present(&s->graph->ids) ? ((const int64_t *)s->graph->ids.data)[node] : node;
}

static void print_text(const session *s, const terminal *out)
{
    table *lines = table_create("operation|>ms|>GFLOP/s|>GB/s, each byte once");
    for (int i = 0; i < sdlf_plan_step_count(s->plan); i++) {
        sdlf_step_info info = sdlf_plan_step_info(s->plan, i);
        table_cell(lines, "%s (%s)", info.operation, info.layer);
        table_cell(lines, "%s", number_fixed(info.seconds * 1e3, 4).text);
        table_cell(lines, "%s", number_fixed((double)info.cost.flops / info.seconds * 1e-9, 1).text);
        table_cell(lines, "%s", number_fixed((double)info.cost.bytes / info.seconds * 1e-9, 1).text);
    }
    table_rule(lines);
    table_cell(lines, "all together");
    table_cell(lines, "%s", number_fixed(s->whole * 1e3, 4).text);
    table_cell(lines, "%s", "");
    table_cell(lines, "%s", "");
    putchar('\n');
    table_print(lines, out, 2);
    table_free(lines);
    putchar('\n');
    report_label(out, "check");
    printf("largest sum of a vertex's outputs %.12g, at vertex %lld  checksum %08x\n", s->largest,
           (long long)own_id(s, s->largest_at), (unsigned)s->checksum);
}

static sdlf_status print_json(const session *s)
{
    json_t *steps = json_array();
    for (int i = 0; i < sdlf_plan_step_count(s->plan); i++) {
        sdlf_step_info info = sdlf_plan_step_info(s->plan, i);
        json_array_append_new(steps, json_pack("{ss ss so sI sI}", "operation", info.operation, "layer", info.layer,
                                               "ms", json_number(info.seconds * 1e3), "flops",
                                               (json_int_t)info.cost.flops, "bytes", (json_int_t)info.cost.bytes));
    }
    json_t *result = json_pack("{ss so sI sI sI sI ss ss so so so so sI sI}", "version", SDLF_VERSION, "graph",
                               json_text(s->graph->name), "nodes", (json_int_t)s->graph->node_count, "elements",
                               (json_int_t)s->matrix.stored, "features", (json_int_t)s->features.shape.dim[1], "hidden",
                               (json_int_t)s->set.hidden, "dtype", sdlf_dtype_name(s->dtype), "calculator",
                               s->calculator->type->name, "read_s", json_number(s->reading), "ms",
                               json_number(s->whole * 1e3), "steps", steps, "largest_sum", json_number(s->largest),
                               "largest_at", (json_int_t)own_id(s, s->largest_at), "checksum", (json_int_t)s->checksum);
    return json_print(result, stdout) ? SDLF_OK : sdlf_fail(SDLF_ERROR_IO, "the output could not be written");
}

static sdlf_status infer(session *s)
{
    terminal out = terminal_of(stdout);
    bool text = !s->set.json;
    s->dtype = s->set.dtype == 0 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK && text) report_header(&out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    if (status == SDLF_OK) status = open_graph(s);
    if (status == SDLF_OK && text) gcn_report_graph(&out, s->graph, &s->matrix, s->reading);
    fflush(stdout);
    if (status == SDLF_OK) status = make_features(s);
    if (status == SDLF_OK) status = make_model(s);
    if (status == SDLF_OK && text) {
        report_label(&out, "net");
        printf("log_softmax(A (X W))  X %s  W %lldx%lld  %s\n", sdlf_shape_print(s->features.shape).text,
               (long long)s->features.shape.dim[1], (long long)s->set.hidden, sdlf_dtype_name(s->dtype));
    }
    if (status == SDLF_OK) status = compute(s);
    if (status != SDLF_OK) return status;
    if (!text) return print_json(s);
    print_text(s, &out);
    if (!s->set.ladder) return SDLF_OK;
    return gcn_print_ladder(&out, s->calculator, s->dtype, s->graph->node_count, s->features.shape.dim[1],
                            s->set.hidden, (int)s->set.repeats);
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
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
