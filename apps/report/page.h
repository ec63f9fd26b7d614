/* SPDX-License-Identifier: MIT */
/* The page of sdlf report: self-contained HTML with inline style and images, without scripts or network
 * requests. */
#ifndef SDLF_APPS_REPORT_PAGE_H
#define SDLF_APPS_REPORT_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/graph/network_graph.h"
#include "apps/input/labels.h"
#include "apps/report/evaluate.h"
#include "apps/report/single_picture.h"
#include "apps/runs/run_log.h"
#include "apps/timing/ceilings.h"

/* The contents of a page; a member that is NULL or 0 has no section. All borrowed. */
typedef struct page {
    const run_log *runs;
    int run_count;
    sdlf_model *model;
    const char *weights; /* the file that the model is of */
    const sdlf_dataset *data;
    const labels *names;
    const report_evaluation *report_evaluation;
    const json_t *test;    /* as evaluation_json makes it; of the model, or of the last run that has one */
    const char *test_of;   /* whose it is */
    const sdlf_plan *plan; /* timed */
    int64_t batch;         /* the plans' */
    const sdlf_plan *outline, *training; /* of inference, and of a training step: for their memory */
    const single_picture *single_picture;
    const ceilings *ceilings;
    const network_graph *graph;
    bool within_epochs; /* curves have a point for each line of event "step", too */
} page;

/* Returns false if writing failed. `subject` is a page. */
bool page_print(FILE *file, const void *subject);

/* Print from the doctype to the end of the head, with the style. The title is "TITLE: KIND". */
void page_print_head(FILE *file, const char *title, const char *kind);

/* The sections, in this order. */
void page_print_runs(FILE *file, const page *page); /* figures, curves, options with commands, which are: */
void page_print_figures(FILE *file, const page *page);
void page_print_curves(FILE *file, const page *page);
void page_print_options(FILE *file, const page *page);
void page_print_classes(FILE *file, const page *page); /* confusion, classes, mistakes */
void page_print_targets(FILE *file, const page *page); /* of float targets, in their place */
void page_print_picture(FILE *file, const page *page); /* probabilities, Grad-CAM, outputs of layers */
void page_print_memory(FILE *file, const page *page);  /* live bytes at each step */
void page_print_network(FILE *file, const page *page); /* graph, layers with their times, first filters */

/* Print a table cell: text, or one of a numeric column. */
void page_cell(FILE *file, const char *text);
void page_number(FILE *file, const char *text);

/* Pixels as an <img>, a small one magnified by an integer to at least `side` pixels. Prints nothing if not an image. */
void page_picture(FILE *file, const unsigned char *samples, sdlf_shape sample, int count, int side, const char *alt);

#endif
