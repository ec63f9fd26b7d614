/* SPDX-License-Identifier: MIT */
/* sdlf gcn train: a network of two graph convolutions that classifies the nodes of a citation graph.
 *
 * The recipe is that of T. Kipf and M. Welling (Semi-supervised classification with graph convolutional networks, ICLR
 * 2017): features of a node scaled to the sum 1; dropout, convolution, ReLU, dropout, convolution; Adam at 0.01; decay
 * of the first layer's weight only; the loss over the training nodes. Training ends after a number of epochs, or once
 * the loss over the validation nodes is above the mean of the last `patience` ones; those weights are tested. */
#include "apps/gcn/train.h"

#include <stdio.h>
#include <stdlib.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"
#include "framework/clock.h"

static const argument what_arguments[] = {
    {.name = "Network and training", .type = ARGUMENT_HEADING},
    {"graph", ARGUMENT_TEXT, offsetof(gcn_train_settings, graph), "GRAPH", .required = true,
     .help = "a graph with features, classes and parts: planetoid:DIR"},
    {"hidden", ARGUMENT_INT, offsetof(gcn_train_settings, hidden), "N", .minimum = 1, .maximum = 65536,
     .fallback = "16", .help = "outputs of the first convolution"},
    {"epochs", ARGUMENT_INT, offsetof(gcn_train_settings, epochs), "N", .minimum = 1, .maximum = 1000000,
     .fallback = "200", .help = "steps over the whole graph, at most"},
    {"patience", ARGUMENT_INT, offsetof(gcn_train_settings, patience), "N", .maximum = 1000000, .fallback = "10",
     .help = "stop when the validation loss is above the mean of the last N; 0: never"},
    {"learning-rate", ARGUMENT_FLOAT, offsetof(gcn_train_settings, rate), "R", .maximum = 10, .above = true,
     .fallback = "0.01", .help = "learning rate of Adam"},
    {"dropout", ARGUMENT_FLOAT, offsetof(gcn_train_settings, dropout), "P", .maximum = 0.99, .fallback = "0.5",
     .help = "dropout before each convolution"},
    {"weight-decay", ARGUMENT_FLOAT, offsetof(gcn_train_settings, decay), "R", .maximum = 1, .fallback = "0.0005",
     .help = "decay of the first convolution's weight"},
    {"seed", ARGUMENT_INT, offsetof(gcn_train_settings, seed), "N", .maximum = 9e15, .fallback = "1",
     .help = "seed of the first training"},
    {"seeds", ARGUMENT_INT, offsetof(gcn_train_settings, seeds), "N", .minimum = 1, .maximum = 10000, .fallback = "1",
     .help = "number of trainings, with consecutive seeds; their mean is printed"},
    {"out", ARGUMENT_TEXT, offsetof(gcn_train_settings, out), "FILE", .help = "keep the last training's weights here"},
    {.name = "How", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(gcn_train_settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(gcn_train_settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(gcn_train_settings, no_fusion), .help = "run each operation by itself"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_FLAG, offsetof(gcn_train_settings, json), .help = "print JSON"},
    {0},
};

/* ---- data ---- */

/* Checks that a graph has everything needed, before it is used. */
static sdlf_status check_graph(const sdlf_graph *graph)
{
    bool features = sdlf_tensor_present(&graph->features), classes = sdlf_tensor_present(&graph->labels),
         parts = sdlf_tensor_present(&graph->parts);
    if (!features || !classes || !parts)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "%s: expected a graph with features, classes and parts, such as planetoid:DIR; this one has no%s%s%s",
            graph->name, features ? "" : " features",
            classes    ? ""
            : features ? " classes"
                       : ", classes",
            parts                 ? ""
            : features && classes ? " parts"
                                  : ", parts");
    if (graph->undirected) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected an undirected graph", graph->name);
}

/* Scales each node's features to the sum 1, and sets the loss weight of each training node to 1 / (training nodes). */
static sdlf_status prepare(gcn_training *s)
{
    const sdlf_graph *graph = s->graph;
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

static sdlf_status open_graph(gcn_training *s)
{
    double start = sdlf_clock();
    status_line_show("graph %s", s->set.graph);
    sdlf_status status = sdlf_graph_open(&s->graph, s->set.graph);
    status_line_clear();
    s->reading = sdlf_clock() - start;
    if (status == SDLF_OK) status = check_graph(s->graph);
    if (status != SDLF_OK) return status;
    status_line_show("matrix of graph %s", s->set.graph);
    start = sdlf_clock();
    status =
        sdlf_graph_matrix(&s->matrix, s->graph,
                          &(sdlf_graph_matrix_options){.normalization = SDLF_NORMALIZE_SYMMETRIC, .self_loops = true});
    s->preparing = sdlf_clock() - start;
    status_line_clear();
    return status == SDLF_OK ? prepare(s) : status;
}

/* ---- all trainings ---- */

static sdlf_status train_all(gcn_training *s, const terminal *out)
{
    sdlf_status status = SDLF_OK;
    interrupt_waits();
    while (s->done < s->set.seeds && status == SDLF_OK && interrupt_signal() == 0) {
        gcn_train_free_run(s);
        gcn_outcome *outcome = &s->outcomes[s->done];
        status = gcn_train_once(s, (uint64_t)(s->set.seed + s->done), outcome);
        status_line_clear();
        if (status == SDLF_OK && outcome->epochs == 0) status = sdlf_fail(SDLF_ERROR_INTERRUPTED, "nothing was learnt");
        if (status == SDLF_OK && !s->set.json) gcn_train_print_outcome(s, out, s->done);
        if (interrupt_signal() == 0) s->done++; /* otherwise it may have been stopped early */
    }
    if (status != SDLF_OK || s->set.out == NULL) return status;
    status = sdlf_plan_store_parameters(s->training);
    return status == SDLF_OK ? sdlf_model_save(s->model, s->set.out) : status;
}

static sdlf_status train(gcn_training *s)
{
    terminal out = terminal_of(stdout);
    s->machine.choice = s->set.choice;
    sdlf_status status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK) status = open_graph(s);
    if (status == SDLF_OK && s->set.out != NULL) status = output_file_check_weights(s->set.out);
    if (status != SDLF_OK) return status;
    if (!s->set.json) report_header(&out, s->machine.calculator, s->machine.count);
    if (!s->set.json) {
        gcn_report_graph(&out, s->graph, &s->matrix, s->reading, s->preparing);
        report_label(&out, "net");
        printf("graph_conv %lld, relu, graph_conv %d  %s features a node\n", (long long)s->set.hidden,
               s->graph->class_count, number_count(s->graph->features.shape.dim[1]).text);
        fflush(stdout);
    }
    status = train_all(s, &out);
    if (status != SDLF_OK) return status;
    bool text = !s->set.json;
    double deviation, mean = gcn_train_mean_test(s, &deviation);
    if (text && s->done > 1) {
        report_label(&out, "mean");
        printf("test %.2f%% of %lld seeds, deviation %.2f\n", 100 * mean, (long long)s->done, 100 * deviation);
    }
    if (s->done < s->set.seeds)
        interrupt_say(text, " after epoch %lld of the training with seed %lld", (long long)s->outcomes[s->done].epochs,
                      (long long)(s->set.seed + s->done));
    if (!text) return gcn_train_print_json(s);
    if (s->set.out != NULL) {
        report_label(&out, "saved");
        printf("%s\n", s->set.out);
    }
    return SDLF_OK;
}

static int run(int count, char **words)
{
    gcn_training s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(gcn_train_settings, choice)}, {output_arguments, 0}, {0}};
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
    gcn_train_free_run(&s);
    free(s.outcomes);
    free(s.log_p);
    sdlf_tensor_release(&s.matrix, NULL);
    sdlf_tensor_release(&s.weights, NULL);
    sdlf_graph_free(s.graph);
    machine_close(&s.machine);
    return code;
}

const gcn_way gcn_train_way = {"train", "classify the nodes of a citation graph", run};
