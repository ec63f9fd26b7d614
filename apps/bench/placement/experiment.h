/* SPDX-License-Identifier: MIT */
/* The experiment of sdlf bench placement: one network, trained with its layers in different places.
 *
 *   all on the host, with one thread ("serial") and with all of them;
 *   convolution, pooling, fully connected layers and softmax on the device, one kind at a time: their forward pass,
 *     with that of the activations directly after them;
 *     all the rest, and every backward pass and update, on the host;
 *   every forward pass on the device, by the device's own choice of algorithms, then with two-step, one-step and
 *     shared-memory convolution;
 *   everything on the device.
 *
 * If a convolution's algorithm is named nothing is fused, on either side: a fused convolution has no choice. */
#ifndef SDLF_APPS_BENCH_PLACEMENT_EXPERIMENT_H
#define SDLF_APPS_BENCH_PLACEMENT_EXPERIMENT_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

enum { PLACEMENT_ROWS_MAX = 16, PLACEMENT_RUNS_MAX = 15 };

/* The calculators, all borrowed. `serial` is the host's with one thread; NULL: `host` itself has one thread. */
typedef struct placement_machine {
    sdlf_calculator *serial, *host, *device;
} placement_machine;

/* One way to place the network. */
typedef struct placement_row {
    char name[80];             /* "convolution on cuda" */
    sdlf_calculator *forward;  /* of the layers that are not placed below */
    sdlf_calculator *backward; /* of all layers */
    sdlf_calculator *placed;   /* of these layers' forward pass; NULL: of none */
    const char *const *types;  /* layer classes, NULL-terminated */
    char algorithm[80];        /* for sdlf_plan_options; "": the calculators' own choice, fused */
    char missing[120];         /* why this machine has no such row; "": it has */
    /* measured: */
    double seconds;      /* a step: the median over the runs */
    int runs;            /* of all iterations */
    int copies;          /* between memories, in a step */
    int64_t up, down;    /* their bytes, to the device and back */
    double copy_seconds; /* with nothing else going on: a step may hide some of it */
    double loss;         /* mean over the first run: the same everywhere, except for rounding */
    double
        backward_share; /* of a step, by its layers' times: what no place of the forward pass can make quicker. 0: not
                              taken (only where all is on the host) */
} placement_row;

/* Fill `rows` (PLACEMENT_ROWS_MAX) for this model; returns their number. The first is the single-threaded one, if there
 * is a calculator for it, and the next is everything on the host. */
int placement_rows(placement_row *rows, const sdlf_model *model, const placement_machine *machine);

/* Train `model`, which is changed, as the row specifies: after a few warm-up steps, `iterations` steps of `batch`
 * samples, drawn from `data` by the plan itself. Runs that take less than half a second are repeated. If a signal comes
 * first (system/interrupt.h), row->seconds stays 0. */
sdlf_status placement_measure(placement_row *row, sdlf_model *model, const sdlf_dataset *data, int64_t batch,
                              int64_t iterations);

#endif
