/* SPDX-License-Identifier: MIT */
/* The internals of a plan: nodes, buffers, steps, and the passes that produce them.
 *
 *   graph    nodes with shapes and calculators; dead and idle layers removed       plan_build_graph
 *   lower    layers emit their operations into a flat list of steps                plan_lower
 *   norms    batch normalisation statistics over all ranks, if requested           plan_sync_norms
 *   fuse     neighbouring steps become one where a calculator supports it          plan_fuse
 *   choose   algorithms by measurement, if requested                               plan_choose
 *   layouts  channels-last activations, for inference where that is faster         plan_choose_layouts
 *   storage  row-major activations in 16 bits, likewise                            plan_store_rows
 *   sums     gradients in buckets, all-reduced over the ranks                      plan_bucket_gradients
 *   place    copies between memory spaces                                          plan_place
 *   arena    one offset for every buffer, by lifetime                              plan_assign_offsets
 *   bind     memory is allocated, operands get addresses, parameters are loaded    plan_bind
 *
 * A buffer is written in program order and read after it: every gradient and activation is computed once, so aliases
 * are safe and the passes reason only about buffers. */
#ifndef SDLF_FRAMEWORK_PLAN_INTERNAL_H
#define SDLF_FRAMEWORK_PLAN_INTERNAL_H

#include <sdlf/plan.h>

#include "framework/model_internal.h"
#include "framework/plan/feed/feeding.h"
#include "framework/plan/integer_weights.h"
#include "framework/plan/running.h"
#include "framework/plan/uses.h"

enum { PLAN_MAX_SPACES = 8, PLAN_FIRST_CONSTANT = 2, PLAN_SEVERAL = 2, PLAN_MAX_FUSED = 8, PLAN_MAX_FUSED_ALIKE = 64 };

typedef enum buffer_kind {
    BUFFER_ARENA,     /* live from the first write to the last read */
    BUFFER_PINNED,    /* keeps its offset for the whole plan: inputs, outputs, loss, metrics */
    BUFFER_CONTROL,   /* a scalar that the host sets before a run; valid in every space */
    BUFFER_PARAMETER, /* a parameter's value */
    BUFFER_STATE,     /* an optimizer state */
    BUFFER_SCALE,     /* the loss scale and its counters; shared by plans that share parameters */
    BUFFER_DATA,      /* a feed's samples or labels, or a constant input: as constant as parameters in inference */
    BUFFER_DERIVED,   /* computed from parameters when these are loaded (folded weights) */
    BUFFER_PREPARED,  /* weights in the prepacked form of a calculator, packed at load time */
} buffer_kind;

typedef struct plan_buffer {
    buffer_kind kind;
    sdlf_dtype dtype; /* of a parameter, state or control */
    int64_t bytes;
    int space;               /* index into plan->spaces; -1 until placed */
    int source;              /* the buffer of which this is a copy in another space; its own index if it is no copy */
    int parameter, state;    /* which, for BUFFER_PARAMETER and BUFFER_STATE */
    int control;             /* which, for BUFFER_CONTROL */
    int data;                /* which, for BUFFER_DATA: 0 samples, 1 labels, 2 .. the constants */
    int fold;                /* which, for BUFFER_DERIVED */
    int integers;            /* or index into plan->integers, counted from 1; 0: a fold */
    int weight_only;         /* likewise into plan->weight_only */
    bool raw;                /* weights needed only until they are prepacked; with no offset: read from a file */
    int operand;             /* if raw and derived: its operand index in the steps that use it */
    bool constant;           /* no step writes it: valid in every space from the start */
    int first_use, last_use; /* steps; first_use -1: unused */
    int alias;               /* shares the memory of this buffer (in place); -1: has its own */
    int64_t offset;          /* in its space's arena; -1: memory elsewhere */
    void *memory;
} plan_buffer;

typedef struct plan_value {
    sdlf_tensor tensor;
    sdlf_tensor gradient;
    bool needs_gradient;
    int node; /* the producer */
} plan_value;

typedef struct plan_node {
    const sdlf_layer *layer;
    int position; /* in the model; -1: added by the plan */
    bool live;    /* something requested depends on it */
    bool idle;    /* an identity in this mode: its output is its input */
    int inputs[SDLF_MAX_LAYER_INPUTS];
    int input_count;
    int first_value, output_count;        /* its outputs are values first_value, first_value + 1, ... */
    int first_parameter, parameter_count; /* in the model */
    int64_t parameter_elements;
    int first_saved, saved_count; /* what forward saves for backward, in plan->saved */
    sdlf_calculator *forward, *backward;
    int group; /* the node whose listing line also stands for this one; its own index if it is not fused */
    char *group_name, *group_type; /* "c1+relu+pool", "conv2d+relu+max_pool2d"; NULL: a group of one */
} plan_node;

typedef struct plan_step {
    sdlf_operation operation;
    sdlf_calculator *calculator; /* a copy between spaces: the one that is not the host's */
    sdlf_phase phase;            /* SDLF_PHASE_COPY: operation.in[0] to operation.out[0] across spaces */
    sdlf_phase serves;           /* of a copy: the phase that waits for it; otherwise `phase` */
    int node;
    bool dead; /* fused away; compacted at the end of the pass */
    sdlf_cost cost;
    double seconds;
    int64_t live;          /* see sdlf_step_info */
    int bucket;            /* for SDLF_PHASE_COMMUNICATE: its bucket, operation.out[0] */
    bool awaits;           /* waits for the bucket's sum; otherwise starts it */
    bool gathers;          /* all-gather: ranks exchange their parts, nothing is added */
    bool queued;           /* of a copy: asynchronous, from pinned memory; the host does not wait */
    char *label, *content; /* of a copy: "copy host to cuda:0", and its content: "output of relu" */
} plan_step;

typedef struct plan_space {
    const char *name;
    sdlf_calculator *calculator; /* allocates here; NULL: host memory without a host calculator */
    int64_t bytes;               /* of the arena */
    int64_t unshared;
    void *arena;
    bool uploading; /* queued copies to it may still read host memory */
} plan_space;

/* An affine function folded into the preceding weights: w' = w s, b' = (b - mean) s + shift, s = factor scale /
 * sqrt(variance + epsilon), per output channel. With `next`, the weights and biases of several parallel branches are
 * added (fuse/merge_branches.c). */
typedef struct plan_fold {
    int weight, bias, scale, shift, mean, variance; /* model parameter indices; -1: 0 (1 for scale and variance) */
    double factor, epsilon;
    int64_t channels;
    int folded_weight, folded_bias; /* buffers */
    int next;                       /* 1 + the fold of the next branch; 0: none */
    int64_t group_channels;         /* of a branch: input channels of a group, */
    int kernel[2];                  /* size of its kernel (without `weight`, it is the identity), */
    int first[2];                   /* position of its kernel in that of all branches, */
    int whole[2];                   /* and the size of that one */
} plan_fold;

/* Per-node data for listings. */
typedef struct plan_entry {
    int line;        /* of the listing; -1: the node has none */
    int next_member; /* the next node of its group; -1: this is the last */
    int last_member; /* valid for a group's first node */
    int first_step;  /* of the line's steps; -1: none */
} plan_entry;

typedef struct plan_listing {
    int *line; /* the first node of each line */
    int count;
    plan_entry *entry; /* of each node */
    int *next_step;    /* for each step, the next one of its line; -1: this is the last */
} plan_listing;

/* The buffers of the plan to reuse: one linked list per parameter and one for data. 0 ends a list. */
typedef struct plan_reused {
    int *first; /* head of each list */
    int *next;  /* successor of each buffer */
} plan_reused;

/* A state declared in the options. */
typedef struct plan_state {
    int input, output; /* values */
    int axis;          /* the axis along which it grows; -1: it does not */
    int64_t capacity;
    int buffer; /* if it grows, the buffer of both values; 0: not created yet */
} plan_state;

/* An input whose values a gather uses as indices along an axis of that length; negative indices count from its end. */
typedef struct plan_index_bound {
    int input, reader; /* nodes */
    int64_t length;
} plan_index_bound;

struct sdlf_plan {
    sdlf_model *model;
    sdlf_plan_options options;
    plan_node *nodes;
    int node_count;
    plan_value *values;
    int value_count;
    sdlf_tensor *saved; /* of all nodes */
    int saved_count, saved_capacity;
    sdlf_tensor *gradients; /* of the model's parameters; NULL in inference */
    plan_buffer *buffers;
    int buffer_count, buffer_capacity;
    plan_step *steps;
    int step_count, step_capacity;
    int forward_steps; /* steps[0 .. forward_steps - 1] are the forward pass */
    plan_space spaces[PLAN_MAX_SPACES];
    int space_count;
    plan_fold *folds;
    int fold_count;
    plan_integers *integers;
    int integers_count;
    plan_weight_only *weight_only;
    int weight_only_count;
    int64_t *tickets; /* of the buckets whose all-reduce is in flight */
    int bucket_count;
    int control[CONTROL_COUNT];                           /* buffers; 0: unused (buffer 0 is never a real one) */
    int control_buffers[CONTROL_COUNT * PLAN_MAX_SPACES]; /* the controls and their copies in other spaces */
    int control_buffer_count;
    plan_feed feed;
    plan_state *states;
    int state_count;
    plan_index_bound *index_bounds;
    int index_bound_count;
    sdlf_plan_constant *constants; /* own list of borrowed names and tensors; names valid only while the plan is made */
    int parameter_buffer_base;     /* the buffers of the model's parameters are consecutive from here */
    sdlf_tensor metrics;           /* absent when there is no softmax_cross_entropy */
    sdlf_tensor loss_gradient;     /* (1): the initial gradient of the loss */
    sdlf_tensor loss_scale;        /* (3): see loss_scale_update; absent without loss scaling */
    sdlf_tensor factor;            /* (1): 1 / scale, 0 in a skipped step; absent without loss scaling */
    sdlf_tensor steps_taken;       /* (1) int64: earlier steps that were not skipped; absent without loss scaling */
    sdlf_tensor taken_step;        /* (1) bool: this step is not skipped; absent likewise, or if updates read factor */
    sdlf_tensor squares, clip;     /* gradient clipping; updates multiply gradients by clip */
    sdlf_tensor due;               /* (1) bool: Lookahead's step is due; absent without Lookahead */
    sdlf_tensor *rates;            /* of parameters with a scaled rate, during lowering; NULL: none has one */
    int64_t accumulated;           /* batches since the last update */
    int loss_value;                /* value of the first loss; -1: none */
    sdlf_layer *loss_layers;       /* the labels input and the loss layer that the plan added, or NULL */
    int64_t step_number;
    plan_recording forward_recording, step_recording;
    plan_recording several[PLAN_SEVERAL]; /* several steps of a plan with a feed, fewer in each */
    plan_marks marks;
    bool bound;
    plan_pin *pins; /* pinned host memory that copies use */
    int pin_count;
    bool draws;         /* the model's parameters have no values yet: making the plan draws their initial ones */
    bool keeps_weights; /* in derived forms that do not follow the model's: see sdlf_plan_load_parameters */
    uint64_t loaded;    /* model->changes when the parameters were loaded */
    bool taken; /* options.consume_parameters, and values of the model have been freed: they cannot be reloaded */
    bool changes_forward, changes_parameters; /* steps of the forward pass, or any steps, write parameters */
    plan_uses uses;                           /* during the fusion rules */
    plan_listing listing;
    plan_reused reused;
    int64_t looks; /* table entries that passes have examined; grows no faster than the number of steps */
};

/* True if the plan updates parameters, and with them optimizer states. */
bool plan_uses_states(const sdlf_plan *plan);
/* The number of states per parameter: the optimizer's, the average, and Lookahead's slow weights. */
int plan_state_count(const sdlf_plan_options *options);

/* plan_note_weights records what the bound plan keeps and changes; plan_note_changes, that a pass which changes
 * parameters has run. plan_check_weights returns an error if a pass must not run with the weights that are kept. */
void plan_note_weights(sdlf_plan *plan);
void plan_note_changes(sdlf_plan *plan, bool forward_alone);
sdlf_status plan_check_weights(const sdlf_plan *plan);

/* Plans of different ranks with equal fingerprints all-reduce the same values in the same order. It depends on fusion,
 * and so on calculators. */
uint32_t plan_sums_fingerprint(const sdlf_plan *plan);

/* Sets the plan's own loss scale, if it has one, to that of the options. */
sdlf_status plan_begin_loss_scale(sdlf_plan *plan);

/* Zeroes the gradient sums of a plan that accumulates. */
sdlf_status plan_clear_sums(sdlf_plan *plan);

/* ---- buffers and tensors ---- */

/* Adds a buffer and returns its index, or 0 when out of memory. */
int plan_new_buffer(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, int64_t bytes);
/* Creates a row-major tensor over a new buffer. */
sdlf_status plan_new_tensor(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor);
sdlf_tensor plan_control_tensor(sdlf_plan *plan, plan_control control); /* absent when out of memory */
/* Index of the calculator's memory space, added if new; -1: too many spaces. */
int plan_space_of(sdlf_plan *plan, sdlf_calculator *calculator);
int plan_named_space(sdlf_plan *plan, const char *name, sdlf_calculator *calculator);
bool plan_is_host_space(const sdlf_plan *plan, int space);

/* ---- reuse ---- */

/* Checks that the plan to reuse, if any, is of the same model and on calculators of the same devices. */
sdlf_status plan_check_reuse(const sdlf_plan *plan);
/* Builds and releases the lists of its buffers. */
sdlf_status plan_list_reused(sdlf_plan *plan);
void plan_release_reused(sdlf_plan *plan);
/* Its buffer for the same parameter, state or data in the same space; NULL: none. */
const plan_buffer *plan_reused_buffer(const sdlf_plan *plan, const plan_buffer *wanted);
/* The host tensor behind a BUFFER_DATA. */
const sdlf_tensor *plan_data(const sdlf_plan *plan, int data);

/* True if the buffer is refilled from another space in every run, and so is stale between runs. */
bool plan_is_passing_copy(const sdlf_plan *plan, const plan_buffer *buffer);

/* Offset of a tensor in its arena; -1: the memory of a parameter or state, which is in no arena. */
int64_t plan_arena_offset(const sdlf_plan *plan, const sdlf_tensor *tensor);

/* ---- states ---- */

/* Finds the states in the graph. */
sdlf_status plan_find_states(sdlf_plan *plan);
/* If the value belongs to a state that grows: its tensor, over memory of the state's full capacity; otherwise
 * absent. */
sdlf_status plan_input_state_tensor(sdlf_plan *plan, int value, sdlf_tensor *tensor);
/* After a pass: outputs of states that do not grow become the next pass's inputs. */
void plan_pass_states(sdlf_plan *plan);
/* Zeroes all states. */
void plan_clear_states(sdlf_plan *plan);

/* Visits the sizes of a plan's operands (shapes, strides, offsets), always in the same order. */
typedef void plan_size_visitor(void *user, int64_t *size);
void plan_visit_sizes(sdlf_plan *plan, plan_size_visitor *visit, void *user);
/* True if the steps of both plans are the same except for sizes and, unless `options`, for options of operations. */
bool plan_is_alike(const sdlf_plan *a, const sdlf_plan *b, bool options);
/* Copies the options of operations from a plan that is alike to the steps of a bound plan. */
void plan_take_options(sdlf_plan *plan, const sdlf_plan *from);
/* Recomputes the addresses of operands after sizes of a bound plan have changed. Errors: SDLF_ERROR_UNSUPPORTED if a
 * step needs more scratch memory than it has. */
sdlf_status plan_settle_sizes(sdlf_plan *plan);
/* Overwrites `count` values of a parameter of which the bound plan keeps no derived form. */
sdlf_status plan_put_values(sdlf_plan *plan, int parameter, const float *values, int64_t count);

/* ---- indices ---- */

/* Checks that the values about to be set for an input, in the tensor's type and count, are valid indices for its
 * readers. Errors: SDLF_ERROR_ARGUMENT with reader, index and bounds. Costs nothing for inputs that are no indices. */
sdlf_status plan_check_indices(const sdlf_plan *plan, const char *input, const sdlf_tensor *tensor, const void *host);
bool plan_has_index_bounds(const sdlf_plan *plan, const char *input); /* true if it would check that input */

/* ---- nodes and steps ---- */

/* The first node at or after `from` whose layer has that name; -1: none. */
int plan_find_node(const sdlf_plan *plan, const char *name, int from);
sdlf_status plan_emit(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator,
                      const sdlf_operation *operation);
sdlf_status plan_append_step(sdlf_plan *plan, const plan_step *step);
void plan_remove_dead_steps(sdlf_plan *plan);
/* Shrinks the lists of steps and buffers to their final size. */
void plan_fit_lists(sdlf_plan *plan);

/* True if the step only moves data between memory spaces or ranks. */
bool plan_step_moves(const plan_step *step);
bool plan_step_reads(const plan_step *step, int buffer);
bool plan_step_writes(const plan_step *step, int buffer);
/* True if the operation also reads its output i. */
bool plan_output_is_updated(const sdlf_operation *operation, int i);
/* True if the tensor covers all of its buffer. */
bool plan_covers_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor);
/* True if it covers all of its buffer, each element once, in any order of axes. */
bool plan_permutes_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor);

#endif
