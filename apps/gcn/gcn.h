/* SPDX-License-Identifier: MIT */
/* sdlf gcn: graph convolutions on a whole graph. Each subcommand is a file, NAME.c, with one line in gcn.c. */
#ifndef SDLF_APPS_GCN_GCN_H
#define SDLF_APPS_GCN_GCN_H

#include <sdlf/calculator.h>
#include <sdlf/graph.h>

#include "apps/output/terminal.h"

typedef struct gcn_way {
    const char *name;
    const char *summary;
    int (*run)(int count, char **words); /* the words after the name; returns an exit code */
} gcn_way;

extern const gcn_way gcn_infer_way;
extern const gcn_way gcn_train_way;

/* Prints the sources of graphs, for help. */
void gcn_print_sources(void);

/* "graph  rmat (...)  281,903 nodes  2,594,211 elements  longest row 4,211  read in 0.41 s, matrix made in 9 ms" */
void gcn_report_graph(const terminal *out, const sdlf_graph *graph, const sdlf_tensor *matrix, double reading,
                      double preparing);

/* The dense matrix product by each algorithm of a calculator. */
typedef struct gcn_rung {
    const char *algorithm; /* the calculator's */
    double seconds;
    sdlf_cost cost;
} gcn_rung;

typedef struct gcn_ladder {
    gcn_rung rung[32];
    int count;
} gcn_ladder;

/* Time the product m x k by k x n, `size` being (m, k, n), by each algorithm that supports it: the best of several
 * runs. */
sdlf_status gcn_ladder_time(gcn_ladder *ladder, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape size,
                            int repeats);
void gcn_ladder_print(const gcn_ladder *ladder, const terminal *out);

#endif
