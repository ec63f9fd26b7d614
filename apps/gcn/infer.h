/* SPDX-License-Identifier: MIT */
/* What the files of `sdlf gcn infer` share: infer.c reads the words and keeps the order of things, infer_run.c computes
 * and times, infer_report.c tells. */
#ifndef SDLF_APPS_GCN_INFER_H
#define SDLF_APPS_GCN_INFER_H

#include <sdlf/sdlf.h>

#include "apps/gcn/gcn.h"
#include "apps/system/machine.h"

typedef struct gcn_infer_settings {
    const char *graph, *features_file, *calculator, *dense_algorithm;
    int64_t features, hidden, repeats, seed;
    int dtype, normalization; /* indices of their choices */
    machine_choice choice;
    bool no_self_loops, no_fusion, ladder, json;
} gcn_infer_settings;

typedef struct gcn_inference {
    gcn_infer_settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_graph *graph;
    sdlf_tensor matrix, features, output;
    sdlf_model *model;
    sdlf_plan *plan;
    sdlf_dtype dtype;
    bool features_given;       /* a number of features to be drawn was asked for */
    double reading, preparing; /* seconds: of the graph, and of its matrix, normalised */
    double whole, queued;      /* of a run that the host waits for, and of one of many queued behind each other */
    bool steps;                /* are timed, too */
    double largest;            /* sum of a vertex's outputs */
    int64_t largest_at;
    uint32_t checksum;
} gcn_inference;

/* With the graph and its matrix there: features from the file, the graph or drawn; then log_softmax(A (X W)). */
sdlf_status gcn_infer_prepare(gcn_inference *s);

/* Makes the plan, times whole runs and each operation (many in a row), and checks the output. SDLF_ERROR_NUMERIC where
 * no vertex has outputs that are numbers. */
sdlf_status gcn_infer_compute(gcn_inference *s);

/* Times and check as text; all of it as JSON, with the rungs of a ladder that has some. */
void gcn_infer_print(const gcn_inference *s, const terminal *out);
sdlf_status gcn_infer_print_json(const gcn_inference *s, const gcn_ladder *ladder);

#endif
