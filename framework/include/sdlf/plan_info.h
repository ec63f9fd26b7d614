/* SPDX-License-Identifier: MIT */
/* What a plan consists of: its steps, its layers, the memory that it needs, and the time of each step.
 *
 * Threads: as for the plan (plan.h): one thread at a time.
 * Ownership: strings belong to the plan, structs to the caller.
 * Errors: a status with a message (status.h); for an index out of range a struct is zero, with an offset of -1. */
#ifndef SDLF_PLAN_INFO_H
#define SDLF_PLAN_INFO_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_plan sdlf_plan;                 /* plan.h */
typedef struct sdlf_plan_options sdlf_plan_options; /* plan.h */

typedef enum sdlf_phase {
    SDLF_PHASE_FORWARD = 0,
    SDLF_PHASE_BACKWARD,
    SDLF_PHASE_UPDATE,
    SDLF_PHASE_COPY,
    SDLF_PHASE_COMMUNICATE, /* a bucket of gradients is summed over all ranks: the start, or the wait */
} sdlf_phase;

/* One step of the plan: one operation, or one copy between memory spaces. Strings belong to the plan. */
typedef struct sdlf_step_info {
    const char *layer;      /* name of the layer, or of the fused group: "conv2d+relu+max_pool2d" */
    const char *operation;  /* "conv2d_forward", "copy host to cuda:0" */
    const char *calculator; /* "cpu" */
    const char *algorithm;  /* "implicit-gemm"; NULL if the calculator has only one */
    sdlf_phase phase;
    sdlf_phase serves;   /* of a copy: the phase that needs it; else `phase` */
    const char *content; /* of a copy: what is copied, "output of relu", "conv2d.weight"; else NULL */
    sdlf_shape shape;    /* of the first output */
    sdlf_dtype dtype;
    sdlf_cost cost;
    int64_t offset;    /* of the first output in its arena; -1: not in the arena (a parameter) */
    int64_t workspace; /* bytes */
    int64_t live;      /* bytes in use in all arenas while the step runs, without parameters and states */
    double seconds;    /* mean time, after sdlf_plan_time */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_step_info;
int sdlf_plan_step_count(const sdlf_plan *plan);
sdlf_step_info sdlf_plan_step_info(const sdlf_plan *plan, int index);

/* One layer (or fused group) of the plan, with the sums of its steps. */
typedef struct sdlf_layer_info {
    const char *layer, *type;
    const char *forward, *backward; /* calculators; backward is NULL if there is no backward pass */
    sdlf_shape shape;               /* of output 0 */
    sdlf_dtype dtype;
    int64_t parameters;
    sdlf_cost forward_cost, backward_cost; /* backward includes the update */
    int64_t offset;                        /* of output 0 in its arena; -1: none of its own (fused away, or a view) */
    double forward_seconds, backward_seconds;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_layer_info;
int sdlf_plan_layer_count(const sdlf_plan *plan);
sdlf_layer_info sdlf_plan_layer_info(const sdlf_plan *plan, int index);

/* The index of the entry with the layer of that name (for instance a step's); -1: none (an input, or not needed). */
int sdlf_plan_layer_of(const sdlf_plan *plan, const char *layer);

/* All sizes are exact, in bytes. */
typedef struct sdlf_memory_info {
    int64_t arena;           /* what the plan allocates: activations, gradients, workspaces, weights in other forms */
    int64_t unshared;        /* what `arena` would be without reuse of memory */
    int64_t parameters;      /* the model's values, and the plan's copies of them */
    int64_t states;          /* optimizer states, and copies of them */
    int64_t output;          /* the model's largest output; whoever reads it needs as much again */
    const char *output_name; /* the name of that output, owned by the model; NULL: there is none */
    void *reserved[4];       /* zero; reserved for new members */
} sdlf_memory_info;
sdlf_memory_info sdlf_plan_memory(const sdlf_plan *plan);

/* Creates a plan that can be inspected but not run: everything is decided and checked, but nothing that grows with the
 * network is allocated, neither the arena nor the parameters of a model that is not built. Free with sdlf_plan_free. */
sdlf_status sdlf_plan_outline(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options);

/* What the plan would need, without allocating it: the result of sdlf_plan_create followed by sdlf_plan_memory.
 * Everything except available memory is checked. */
sdlf_status sdlf_plan_measure(sdlf_memory_info *memory, sdlf_model *model, const sdlf_plan_options *options);

/* Runs `repeats` training steps with learning rate 0 (or forward passes), timing every plan step, and sets the
 * `seconds` above to the medians. An epoch of a feed that is in progress is ended.
 * Parameters do not change; optimizer states are saved before and restored after, also those shared with another plan.
 * Afterwards the outputs of inference are those of the last run. */
sdlf_status sdlf_plan_time(sdlf_plan *plan, int repeats);

/* The same for an inference plan, without the cost of synchronisation: every step runs `together` times in a row
 * (recorded, if its calculator can do that), and the row is timed as a whole; `seconds` is the median of that time
 * divided by `together`. Afterwards the outputs are those of the last run. */
sdlf_status sdlf_plan_time_together(sdlf_plan *plan, int repeats, int together);

/* Either of the two, with a way to stop. SDLF_ERROR_INTERRUPTED: it was stopped before each step had been timed. */
typedef struct sdlf_timing {
    int repeats;
    int together;      /* 0: as sdlf_plan_time; else as sdlf_plan_time_together */
    sdlf_go_on *go_on; /* called before each run of a step; false stops, with the medians so far. NULL: never */
    void *user;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_timing;
sdlf_status sdlf_plan_time_with(sdlf_plan *plan, const sdlf_timing *timing);

#ifdef __cplusplus
}
#endif
#endif
