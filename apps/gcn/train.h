/* SPDX-License-Identifier: MIT */
/* Declarations shared by the files of `sdlf gcn train`: train.c parses the options and prepares the data, train_run.c
 * trains once, train_report.c prints. */
#ifndef SDLF_APPS_GCN_TRAIN_H
#define SDLF_APPS_GCN_TRAIN_H

#include <sdlf/sdlf.h>

#include "apps/gcn/gcn.h"
#include "apps/system/machine.h"

typedef struct gcn_train_settings {
    const char *graph, *calculator, *out;
    int64_t hidden, epochs, patience, seed, seeds;
    double rate, dropout, decay;
    machine_choice choice;
    bool no_fusion, json;
} gcn_train_settings;

/* The result of one training. */
typedef struct gcn_outcome {
    double loss[4], accuracy[4]; /* by split of the nodes */
    int64_t epochs;
    double seconds;
} gcn_outcome;

typedef struct gcn_training {
    gcn_train_settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_graph *graph;
    sdlf_tensor matrix, weights;
    float *log_p;
    sdlf_model *model;
    sdlf_plan *training, *inference;
    gcn_outcome *outcomes;
    int64_t done; /* completed trainings; after a signal there is a partial one as well, if it has epochs */
    double reading, preparing; /* seconds: of the graph, and of its matrix, normalised */
    double shown;              /* when the epoch was last shown, clock time */
} gcn_training;

/* Train once with this seed, to the end; the model and its plans stay in s until gcn_train_free_run. */
sdlf_status gcn_train_once(gcn_training *s, uint64_t seed, gcn_outcome *result);
void gcn_train_free_run(gcn_training *s);

/* Show the epoch ten times a second on a terminal (status_line.h). */
void gcn_train_show_epoch(gcn_training *s, uint64_t seed, const gcn_outcome *now);

/* Print the line of one training; compute the mean of all and their deviation; print everything as JSON. */
void gcn_train_print_outcome(const gcn_training *s, const terminal *out, int64_t index);
double gcn_train_mean_test(const gcn_training *s, double *deviation);
sdlf_status gcn_train_print_json(const gcn_training *s);

#endif
