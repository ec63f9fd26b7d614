/* sdlf gcn: graph convolutions on a whole graph. Each way is a file, NAME.c, with one line in gcn.c. */
#ifndef SDLF_APPS_GCN_GCN_H
#define SDLF_APPS_GCN_GCN_H

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

/* Times of the calculator's algorithms for the dense product (nodes, features) x (features, hidden), as a table. */
sdlf_status gcn_print_ladder(const terminal *out, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t nodes,
                             int64_t features, int64_t hidden, int repeats);

#endif
