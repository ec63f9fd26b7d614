/* SPDX-License-Identifier: MIT */
/* One network on two calculators, tensor by tensor.
 *
 * Both sides run unfused, with every activation kept: the forward pass, then, for a training plan, the backward pass.
 * Side b's backward pass starts from side a's activations. Otherwise rounding could put a value next to a kink on
 * opposite sides of it, and so switch a ReLU or a max-pool's choice, and the gradient with it; the comparison is of
 * arithmetic only.
 *
 * Errors are those of compare.h. The scale of a parameter's gradient is at least the largest magnitude of the gradient
 * with respect to its layer's output, of which it is a sum: a gradient that cancels out (the bias of a convolution
 * before batch normalisation) is only rounding. The scale of a loss is at least 1, for the same reason. */
#ifndef SDLF_APPS_PARITY_RUN_H
#define SDLF_APPS_PARITY_RUN_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/parity/compare.h"

typedef enum parity_kind {
    PARITY_OUTPUT = 0, /* of a layer */
    PARITY_GRADIENT,   /* with respect to that output */
    PARITY_PARAMETER,  /* the gradient of a parameter */
    PARITY_STATISTIC,  /* a parameter that the forward pass of training keeps, such as a running mean */
    PARITY_KINDS
} parity_kind;

extern const char *const parity_kind_names[]; /* "output", "gradient", "parameter gradient", "statistic" */

typedef struct parity_entry {
    parity_kind kind;
    const char *layer, *type; /* the model's */
    const char *parameter;    /* full name; NULL: none */
    sdlf_shape shape;
    parity_error error;
    bool within; /* its largest error is no more than the tolerance */
} parity_entry;

typedef struct parity_options {
    sdlf_model *model[2]; /* the same network twice: training writes its statistics; borrowed for the result's life */
    sdlf_calculator *calculator[2];
    const sdlf_dataset *data; /* NULL: random numbers, from the seed */
    int64_t batch;
    sdlf_mode mode;
    sdlf_dtype dtype;
    double tolerance;
    uint64_t seed;        /* of dropout and of random samples */
    bool own_activations; /* side b's backward pass starts from its own */
} parity_options;

/* In the order in which they are computed; parity_release frees them. */
typedef struct parity_result {
    parity_entry *entry;
    int count;
    int first; /* the first that is not within the tolerance; -1: all are */
    bool all;  /* entries were compared: no signal came first (system/interrupt.h) */
} parity_result;

sdlf_status parity_run(parity_result *result, const parity_options *options);
void parity_release(parity_result *result);

/* The tolerance for rounding, relative to a tensor's largest magnitude, by the coarser of two math modes. Operands of
 * 24 bits (fp32): 2e-5; of 11 bits (tf32, fp16): 1e-2; of 8 bits (bf16): 8e-2. float64: 1e-10. Dot products of
 * thousands of terms and the accumulated errors of a few layers reach a few hundred units in the operands' last place;
 * the rest is margin. */
double parity_tolerance(sdlf_dtype dtype, sdlf_math a, sdlf_math b);

#endif
