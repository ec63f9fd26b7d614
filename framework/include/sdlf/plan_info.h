/* SPDX-License-Identifier: MIT */
/* What a plan consists of: its steps, its layers, the memory that it takes, and how long each step runs.
 *
 * Threads: as the plan (plan.h): one thread at a time.
 * Ownership: strings are the plan's; structs are the caller's.
 * Errors: a status with a message (status.h); of an index out of range a struct is zero, its offset -1. */
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
    SDLF_PHASE_COMMUNICATE, /* a bucket of gradients is added over all ranks: begun, or waited for */
} sdlf_phase;

/* One step of the plan: one operation, or one copy between memory spaces. Strings belong to the plan. */
typedef struct sdlf_step_info {
    const char *layer;      /* name of the layer, or of the fused group: "conv2d+relu+max_pool2d" */
    const char *operation;  /* "conv2d_forward", "copy host to cuda:0" */
    const char *calculator; /* "cpu" */
    const char *algorithm;  /* "implicit-gemm"; NULL where the calculator has only one way */
    sdlf_phase phase;
    sdlf_phase serves;   /* of a copy: the phase that waits for it; else `phase` */
    const char *content; /* of a copy: what is moved, "output of relu", "conv2d.weight"; else NULL */
    sdlf_shape shape;    /* of the first output */
    sdlf_dtype dtype;
    sdlf_cost cost;
    int64_t offset;    /* of the first output in its arena; -1: not in the arena (a parameter) */
    int64_t workspace; /* bytes */
    int64_t live;      /* bytes of all arenas that hold something while the step runs; parameters and states left out */
    double seconds;    /* mean time, after sdlf_plan_time */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_step_info;
int sdlf_plan_step_count(const sdlf_plan *plan);
sdlf_step_info sdlf_plan_step_info(const sdlf_plan *plan, int index);

/* One layer (or fused group) of the plan, its steps summed. */
typedef struct sdlf_layer_info {
    const char *layer, *type;
    const char *forward, *backward; /* calculators; backward NULL when it has none */
    sdlf_shape shape;               /* of output 0 */
    sdlf_dtype dtype;
    int64_t parameters;
    sdlf_cost forward_cost, backward_cost; /* backward counts the update too */
    int64_t offset;                        /* of output 0 in its arena; -1: none of its own (fused away, or a view) */
    double forward_seconds, backward_seconds;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_layer_info;
int sdlf_plan_layer_count(const sdlf_plan *plan);
sdlf_layer_info sdlf_plan_layer_info(const sdlf_plan *plan, int index);

/* Which of these the layer of that name (a step's, say) belongs to; -1: none (an input, or not needed). */
int sdlf_plan_layer_of(const sdlf_plan *plan, const char *layer);

/* Exact bytes. */
typedef struct sdlf_memory_info {
    int64_t arena;           /* what the plan allocates: activations, gradients, workspaces, weights in other forms */
    int64_t unshared;        /* what `arena` would be if nothing were reused */
    int64_t parameters;      /* the model's values, and the plan's copies of them */
    int64_t states;          /* optimizer states, and copies */
    int64_t output;          /* the model's largest output, which its reader has memory for, too */
    const char *output_name; /* that one's; the model's. NULL: there is none */
    void *reserved[4];       /* zero: room for members to come */
} sdlf_memory_info;
sdlf_memory_info sdlf_plan_memory(const sdlf_plan *plan);

/* A plan to look at, not to run: everything is decided and checked, and nothing that grows with the network is
 * allocated, neither the arena nor the parameters of a model that is not built. Free with sdlf_plan_free. */
sdlf_status sdlf_plan_outline(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options);

/* What the plan would need, without allocating: as sdlf_plan_create followed by sdlf_plan_memory. Everything but memory
 * is checked. */
sdlf_status sdlf_plan_measure(sdlf_memory_info *memory, sdlf_model *model, const sdlf_plan_options *options);

/* Run `repeats` training steps with learning rate 0 (or forward passes) with a clock around every step, filling the
 * `seconds` above with medians. A feed's epoch under way is over afterwards.
 * Parameters are unchanged; optimizer states are saved before and restored after, those of a plan shared with too.
 * Outputs of inference are those of the last run after it. */
sdlf_status sdlf_plan_time(sdlf_plan *plan, int repeats);

/* The same for a plan of inference, without what waiting costs: every step `together` times in a row, recorded where
 * its calculator can do that, with a clock around them all; `seconds` are medians of a together-th. Outputs are those
 * of the last run after it. */
sdlf_status sdlf_plan_time_together(sdlf_plan *plan, int repeats, int together);

/* Either of the two, for as long as wanted. SDLF_ERROR_INTERRUPTED: it ended before each step had its time. */
typedef struct sdlf_timing {
    int repeats;
    int together;      /* 0: as sdlf_plan_time; else as sdlf_plan_time_together */
    sdlf_go_on *go_on; /* asked before each run of a step; once it says false, medians are of what was run. NULL: yes */
    void *user;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_timing;
sdlf_status sdlf_plan_time_with(sdlf_plan *plan, const sdlf_timing *timing);

#ifdef __cplusplus
}
#endif
#endif
