/* sdlf gcn train: a network of two graph convolutions that classifies the nodes of a citation graph.
 *
 * The recipe is that of T. Kipf and M. Welling (Semi-supervised classification with graph convolutional networks, ICLR 2017):
 * features of a node scaled to the sum 1; dropout, convolution, ReLU, dropout, convolution; Adam at 0.01; decay of the first
 * layer's weight alone; the loss over the training nodes. Training ends after so many epochs, or once the loss over the
 * validation nodes is above the mean of the last `patience` ones; the weights of then are tested. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "apps/arguments.h"
#include "apps/clock.h"
#include "apps/command.h"
#include "apps/gcn.h"
#include "apps/json.h"
#include "apps/machine.h"
#include "apps/number.h"
#include "apps/report.h"

typedef struct settings {
    const char *graph, *calculator, *out;
    int64_t hidden, epochs, patience, seed, seeds;
    double rate, dropout, decay;
    machine_choice choice;
    bool no_fusion, json;
} settings;

static const argument what_arguments[] = {
    {.name = "Network and training", .type = ARGUMENT_HEADING},
    {"graph", ARGUMENT_TEXT, offsetof(settings, graph), "GRAPH", .required = true,
     .help = "a graph with features, classes and parts: planetoid:DIR"},
    {"hidden", ARGUMENT_INT, offsetof(settings, hidden), "N", .minimum = 1, .maximum = 65536, .fallback = "16",
     .help = "outputs of the first convolution"},
    {"epochs", ARGUMENT_INT, offsetof(settings, epochs), "N", .minimum = 1, .maximum = 1000000, .fallback = "200",
     .help = "steps over the whole graph, at most"},
    {"patience", ARGUMENT_INT, offsetof(settings, patience), "N", .maximum = 1000000, .fallback = "10",
     .help = "stop when the validation loss is above the mean of so many before; 0: never"},
    {"learning-rate", ARGUMENT_FLOAT, offsetof(settings, rate), "R", .maximum = 10, .above = true, .fallback = "0.01",
     .help = "of Adam"},
    {"dropout", ARGUMENT_FLOAT, offsetof(settings, dropout), "P", .maximum = 0.99, .fallback = "0.5",
     .help = "before each convolution"},
    {"weight-decay", ARGUMENT_FLOAT, offsetof(settings, decay), "R", .maximum = 1, .fallback = "0.0005",
     .help = "of the first convolution's weight"},
    {"seed", ARGUMENT_INT, offsetof(settings, seed), "N", .maximum = 9e15, .fallback = "1",
     .help = "of the first training"},
    {"seeds", ARGUMENT_INT, offsetof(settings, seeds), "N", .minimum = 1, .maximum = 10000, .fallback = "1",
     .help = "trainings, with this seed, the next, and so on; their mean is told"},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE", .help = "keep the last training's weights here"},
    {.name = "How", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "what computes"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(settings, no_fusion), .help = "run each operation by itself"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

/* What one training came to. */
typedef struct outcome {
    double loss[4], accuracy[4]; /* by part of the nodes */
    int64_t epochs;
    double seconds;
} outcome;

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_graph *graph;
    sdlf_tensor matrix, weights;
    float *log_p;
    sdlf_model *model;
    sdlf_plan *training, *inference;
    outcome *outcomes;
    double reading;
} session;

/* ---- data ---- */

/* Features of each node to the sum 1, and 1 / (training nodes) at each training node. */
static sdlf_status prepare(session *s)
{
    const sdlf_graph *graph = s->graph;
    if (!sdlf_tensor_present(&graph->features) || !sdlf_tensor_present(&graph->labels) ||
        !sdlf_tensor_present(&graph->parts))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: expected a graph with features, classes and parts, such as planetoid:DIR", graph->name);
    int64_t nodes = graph->node_count, columns = graph->features.shape.dim[1], count[4] = {0};
    const uint8_t *parts = graph->parts.data;
    for (int64_t n = 0; n < nodes; n++) {
        float *row = (float *)graph->features.data + n * columns;
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) sum += (double)row[j];
        for (int64_t j = 0; j < columns && sum != 0; j++) row[j] = (float)((double)row[j] / sum);
        count[parts[n]]++;
    }
    if (count[SDLF_NODE_TRAIN] == 0 || count[SDLF_NODE_VALIDATE] == 0 || count[SDLF_NODE_TEST] == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: expected nodes to train, to validate and to test, found %lld, %lld, %lld", graph->name,
                         (long long)count[SDLF_NODE_TRAIN], (long long)count[SDLF_NODE_VALIDATE],
                         (long long)count[SDLF_NODE_TEST]);
    sdlf_status status = sdlf_tensor_create(&s->weights, NULL, SDLF_FLOAT32, sdlf_shape(nodes));
    if (status != SDLF_OK) return status;
    for (int64_t n = 0; n < nodes; n++)
        ((float *)s->weights.data)[n] = parts[n] == SDLF_NODE_TRAIN ? 1.0f / (float)count[SDLF_NODE_TRAIN] : 0;
    s->log_p = malloc((size_t)(nodes * graph->class_count) * sizeof *s->log_p);
    s->outcomes = calloc((size_t)s->set.seeds, sizeof *s->outcomes);
    if (s->log_p == NULL || s->outcomes == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for the results");
    return SDLF_OK;
}

static sdlf_status open_graph(session *s)
{
    double start = clock_now();
    sdlf_status status = sdlf_graph_open(&s->graph, s->set.graph);
    s->reading = clock_now() - start;
    if (status != SDLF_OK) return status;
    if (!s->graph->undirected)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected an undirected graph", s->graph->name);
    status =
        sdlf_graph_matrix(&s->matrix, s->graph,
                          &(sdlf_graph_matrix_options){.normalization = SDLF_NORMALIZE_SYMMETRIC, .self_loops = true});
    return status == SDLF_OK ? prepare(s) : status;
}

/* ---- one training ---- */

static sdlf_status make_model(session *s, uint64_t seed)
{
    sdlf_model *m = s->model = sdlf_model_create("gcn");
    const sdlf_dropout_options dropout = {.probability = (float)s->set.dropout};
    sdlf_node x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(s->graph->features.shape.dim[1]));
    sdlf_node matrix = sdlf_sparse_input(m, "matrix");
    sdlf_node labels = sdlf_input(m, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node weights = sdlf_input(m, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_graph_conv(m, sdlf_dropout(m, x, &dropout), matrix,
                        &(sdlf_graph_conv_options){.units = (int)s->set.hidden, .no_bias = true});
    x = sdlf_graph_conv(m, sdlf_dropout(m, sdlf_relu(m, x), &dropout), matrix,
                        &(sdlf_graph_conv_options){.units = s->graph->class_count, .no_bias = true, .no_decay = true});
    sdlf_softmax_cross_entropy_weighted(m, x, labels, weights, NULL);
    sdlf_output(m, "class", sdlf_log_softmax(m, x));
    return sdlf_model_build(m, seed);
}

static sdlf_status make_plans(session *s, uint64_t seed)
{
    const sdlf_constant constants[] = {
        {"x", s->graph->features}, {"matrix", s->matrix}, {"labels", s->graph->labels}, {"weights", s->weights}};
    sdlf_plan_options options = {.batch = s->graph->node_count,
                                 .mode = SDLF_TRAIN,
                                 .forward = s->calculator,
                                 .no_fusion = s->set.no_fusion,
                                 .optimizer = sdlf_adam(.weight_decay = (float)s->set.decay),
                                 .seed = seed,
                                 .constants = constants,
                                 .constant_count = 4};
    sdlf_status status = sdlf_plan_create(&s->training, s->model, &options);
    options.mode = SDLF_INFER;
    options.share = s->training;
    return status == SDLF_OK ? sdlf_plan_create(&s->inference, s->model, &options) : status;
}

static void free_training(session *s)
{
    sdlf_plan_free(s->inference);
    sdlf_plan_free(s->training);
    sdlf_model_free(s->model);
    s->inference = s->training = NULL;
    s->model = NULL;
}

/* Losses and accuracies of all parts, with the weights as they are. */
static sdlf_status evaluate(session *s, outcome *result)
{
    sdlf_status status = sdlf_plan_synchronize(s->training);
    if (status == SDLF_OK) status = sdlf_plan_forward(s->inference);
    if (status == SDLF_OK) status = sdlf_plan_read(s->inference, "class", s->log_p);
    if (status != SDLF_OK) return status;
    const int32_t *labels = s->graph->labels.data;
    const uint8_t *parts = s->graph->parts.data;
    int classes = s->graph->class_count;
    double loss[4] = {0}, right[4] = {0}, count[4] = {0};
    for (int64_t n = 0; n < s->graph->node_count; n++) {
        const float *row = s->log_p + n * classes;
        int best = 0;
        for (int j = 1; j < classes; j++) best = row[j] > row[best] ? j : best;
        loss[parts[n]] -= (double)row[labels[n]];
        right[parts[n]] += best == labels[n];
        count[parts[n]]++;
    }
    for (int p = 0; p < 4; p++) {
        result->loss[p] = loss[p] / count[p];
        result->accuracy[p] = right[p] / count[p];
    }
    return isfinite(result->loss[SDLF_NODE_VALIDATE])
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_NUMERIC, "the loss became %g", result->loss[SDLF_NODE_VALIDATE]);
}

/* Is the newest of `count` losses above the mean of the `patience` ones before it? */
static bool has_risen(const double *losses, int64_t count, int64_t patience)
{
    if (patience == 0 || count <= patience) return false;
    double sum = 0;
    for (int64_t i = count - 1 - patience; i < count - 1; i++) sum += losses[i];
    return losses[count - 1] > sum / (double)patience;
}

static sdlf_status train_once(session *s, uint64_t seed, outcome *result)
{
    double *losses = malloc((size_t)s->set.epochs * sizeof *losses), start = clock_now();
    sdlf_status status = losses != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for the epochs' losses");
    if (status == SDLF_OK) status = make_model(s, seed);
    if (status == SDLF_OK) status = make_plans(s, seed);
    for (int64_t epoch = 0; epoch < s->set.epochs && status == SDLF_OK; epoch++) {
        status = sdlf_plan_step(s->training, (float)s->set.rate);
        if (status == SDLF_OK) status = evaluate(s, result);
        losses[epoch] = result->loss[SDLF_NODE_VALIDATE];
        result->epochs = epoch + 1;
        if (has_risen(losses, epoch + 1, s->set.patience)) break;
    }
    result->seconds = clock_now() - start;
    free(losses);
    return status;
}

/* ---- output ---- */

static void print_outcome(const session *s, const terminal *out, int64_t index)
{
    const outcome *o = &s->outcomes[index];
    report_label(out, "seed");
    printf("%lld  %lld epochs  loss %.3f  validation %s  test %s  %s\n", (long long)(s->set.seed + index),
           (long long)o->epochs, o->loss[SDLF_NODE_TRAIN], number_percent(o->accuracy[SDLF_NODE_VALIDATE], 1).text,
           number_percent(o->accuracy[SDLF_NODE_TEST], 1).text, number_duration(o->seconds).text);
    fflush(stdout);
}

/* Mean and deviation of the test accuracy. */
static double mean_test(const session *s, double *deviation)
{
    double sum = 0, squares = 0, count = (double)s->set.seeds;
    for (int64_t i = 0; i < s->set.seeds; i++) sum += s->outcomes[i].accuracy[SDLF_NODE_TEST];
    for (int64_t i = 0; i < s->set.seeds; i++) squares += pow(s->outcomes[i].accuracy[SDLF_NODE_TEST] - sum / count, 2);
    *deviation = s->set.seeds > 1 ? sqrt(squares / (count - 1)) : 0;
    return sum / count;
}

static sdlf_status print_json(const session *s)
{
    json_t *runs = json_array();
    double deviation, mean = mean_test(s, &deviation);
    for (int64_t i = 0; i < s->set.seeds; i++) {
        const outcome *o = &s->outcomes[i];
        json_array_append_new(runs,
                              json_pack("{sI sI so so so so}", "seed", (json_int_t)(s->set.seed + i), "epochs",
                                        (json_int_t)o->epochs, "train_loss", json_number(o->loss[SDLF_NODE_TRAIN]),
                                        "validation", json_number(o->accuracy[SDLF_NODE_VALIDATE]), "test",
                                        json_number(o->accuracy[SDLF_NODE_TEST]), "seconds", json_number(o->seconds)));
    }
    json_t *result = json_pack("{ss so ss so so so}", "version", SDLF_VERSION, "graph", json_text(s->graph->name),
                               "calculator", s->calculator->type->name, "runs", runs, "mean_test", json_number(mean),
                               "deviation", json_number(deviation));
    return json_print(result, stdout) ? SDLF_OK : sdlf_fail(SDLF_ERROR_IO, "the output could not be written");
}

static sdlf_status train_all(session *s, const terminal *out)
{
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < s->set.seeds && status == SDLF_OK; i++) {
        free_training(s);
        status = train_once(s, (uint64_t)(s->set.seed + i), &s->outcomes[i]);
        if (status == SDLF_OK && !s->set.json) print_outcome(s, out, i);
    }
    if (status != SDLF_OK || s->set.out == NULL) return status;
    status = sdlf_plan_store_parameters(s->training);
    return status == SDLF_OK ? sdlf_model_save(s->model, s->set.out) : status;
}

static sdlf_status train(session *s)
{
    terminal out = terminal_of(stdout);
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK && !s->set.json) report_header(&out, s->machine.calculator, s->machine.count);
    if (status == SDLF_OK) status = open_graph(s);
    if (status != SDLF_OK) return status;
    if (!s->set.json) {
        gcn_report_graph(&out, s->graph, &s->matrix, s->reading);
        report_label(&out, "net");
        printf("graph_conv %lld, relu, graph_conv %d  %s features a node\n", (long long)s->set.hidden,
               s->graph->class_count, number_count(s->graph->features.shape.dim[1]).text);
        fflush(stdout);
    }
    status = train_all(s, &out);
    if (status != SDLF_OK) return status;
    if (s->set.json) return print_json(s);
    double deviation, mean = mean_test(s, &deviation);
    if (s->set.seeds > 1) {
        report_label(&out, "mean");
        printf("test %.2f%% of %lld seeds, deviation %.2f\n", 100 * mean, (long long)s->set.seeds, 100 * deviation);
    }
    if (s->set.out != NULL) {
        report_label(&out, "saved");
        printf("%s\n", s->set.out);
    }
    return SDLF_OK;
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "gcn train",
        .synopsis = "--graph planetoid:DIR [options]",
        .text = "Train two graph convolutions to classify the nodes of a citation graph.",
        .parts = parts,
        .epilogue = gcn_print_sources,
        .examples = "  sdlf gcn train --graph planetoid:cora --seeds 20\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("gcn train", train(&s));
    free_training(&s);
    free(s.outcomes);
    free(s.log_p);
    sdlf_tensor_release(&s.matrix, NULL);
    sdlf_tensor_release(&s.weights, NULL);
    sdlf_graph_free(s.graph);
    machine_close(&s.machine);
    return code;
}

const gcn_way gcn_train_way = {"train", "classify the nodes of a citation graph", run};
