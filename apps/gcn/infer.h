/* SPDX-License-Identifier: MIT */
/* Declarations shared by the files of `sdlf gcn infer`: infer.c parses the options and drives the run, infer_run.c
 * computes and times, infer_report.c prints. */
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
    bool features_given;       /* --features was given: draw that many */
    double reading, preparing; /* seconds: of the graph, and of its matrix, normalised */
    double whole, queued;      /* of a synchronous run, and of one of many queued one after another */
    bool steps;                /* are timed, too */
    double largest;            /* sum of a vertex's outputs */
    int64_t largest_at;
    uint32_t checksum;
} gcn_inference;

/* Once the graph and its matrix are loaded: read or draw the features, then create log_softmax(A (X W)). */
sdlf_status gcn_infer_prepare(gcn_inference *s);

/* Creates the plan, times whole runs and each operation (many in a row), and checks the output. SDLF_ERROR_NUMERIC if
 * the outputs of every vertex are NaN. */
sdlf_status gcn_infer_compute(gcn_inference *s);

/* Print times and the check as text; or everything as JSON, with the algorithms of a ladder that has any. */
void gcn_infer_print(const gcn_inference *s, const terminal *out);
sdlf_status gcn_infer_print_json(const gcn_inference *s, const gcn_ladder *ladder);

#endif
