/* SPDX-License-Identifier: MIT */
/* A plan from the inside: nodes, buffers, steps, and the passes that make them.
 *
 *   graph    nodes with shapes, calculators; dead and idle layers gone             plan_build_graph
 *   lower    layers describe their operations: a straight list of steps            plan_lower
 *   norms    statistics of batch normalisation over all ranks, if asked for        plan_sync_norms
 *   fuse     neighbouring steps become one where a calculator can                  plan_fuse
 *   choose   algorithms by measurement, if asked for                               plan_choose
 *   layouts  activations channels last, for inference where that is faster         plan_choose_layouts
 *   storage  row-major activations in 16 bits, likewise                            plan_store_rows
 *   sums     gradients in buckets, added over all ranks                            plan_bucket_gradients
 *   place    copies between memory spaces                                          plan_place
 *   arena    one offset for every buffer, by lifetime                              plan_lay_out
 *   bind     memory is allocated, operands get addresses, parameters are loaded    plan_bind
 *
 * A buffer is written in program order and read after it: every gradient and activation is made once, so aliases are
 * safe and the passes reason only about buffers. */
#ifndef SDLF_FRAMEWORK_PLAN_INTERNAL_H
#define SDLF_FRAMEWORK_PLAN_INTERNAL_H

#include <sdlf/plan.h>

#include "framework/model_internal.h"
#include "framework/plan/feed/feeding.h"
#include "framework/plan/integer_weights.h"
#include "framework/plan/running.h"
#include "framework/plan/uses.h"

enum { PLAN_MAX_SPACES = 8, PLAN_FIRST_CONSTANT = 2, PLAN_SEVERAL = 2, PLAN_JOINED = 8, PLAN_ALIKE = 64 };

typedef enum buffer_kind {
    BUFFER_ARENA,     /* lives from its first write to its last read */
    BUFFER_PINNED,    /* keeps its place for the whole plan: inputs, outputs, loss, metrics */
    BUFFER_CONTROL,   /* a scalar that the host sets before a run; valid in every space */
    BUFFER_PARAMETER, /* a parameter's value */
    BUFFER_STATE,     /* an optimizer state */
    BUFFER_SCALE,     /* the loss scale and its counters, which plans that share parameters share, too */
    BUFFER_DATA,      /* a feed's samples or labels, or a constant input: as constant as parameters in inference */
    BUFFER_DERIVED,   /* computed from parameters when they are loaded (what is folded into weights) */
    BUFFER_PREPARED,  /* weights in the form that a calculator prepacked, when they are loaded */
} buffer_kind;

typedef struct plan_buffer {
    buffer_kind kind;
    sdlf_dtype dtype; /* of a parameter, state or control */
    int64_t bytes;
    int space;            /* index into plan->spaces; -1 until placed */
    int source;           /* the buffer this is a copy of in another space; its own index if it is no copy */
    int parameter, state; /* which, for BUFFER_PARAMETER and BUFFER_STATE */
    int control;          /* which, for BUFFER_CONTROL */
    int data;             /* which, for BUFFER_DATA: 0 samples, 1 labels, 2 .. the constants */
    int fold;             /* which, for BUFFER_DERIVED */
    int integers;         /* or which of these, counted from 1; 0: a fold */
    int weight_only;      /* or of these */
    bool raw;             /* weights that are only wanted until they are prepacked; with no offset: read from a file */
    int operand;          /* where it is raw, and worked out: which operand of its steps it is */
    bool constant;        /* no step writes it: it is valid in every space from the start */
    int first_use, last_use; /* steps; first_use -1: unused */
    int alias;               /* shares the memory of this buffer (in place); -1: has its own */
    int64_t offset;          /* in its space's arena; -1: memory elsewhere */
    void *memory;
} plan_buffer;

typedef struct plan_value {
    sdlf_tensor tensor;
    sdlf_tensor gradient;
    bool needs_gradient;
    int node; /* that makes it */
} plan_value;

typedef struct plan_node {
    const sdlf_layer *layer;
    int position; /* in the model; -1: made by the plan */
    bool live;    /* does anything wanted depend on it? */
    bool idle;    /* does nothing in this mode: its output is its input */
    int inputs[SDLF_MAX_LAYER_INPUTS];
    int input_count;
    int first_value, output_count;        /* its outputs are values first_value, first_value + 1, ... */
    int first_parameter, parameter_count; /* in the model */
    int64_t parameter_elements;
    int first_saved, saved_count; /* what forward leaves for backward, in plan->saved */
    sdlf_calculator *forward, *backward;
    int group; /* the node whose line in listings stands for this one too; its own index if it is not fused */
    char *group_name, *group_type; /* "c1+relu+pool", "conv2d+relu+max_pool2d"; NULL: a group of one */
} plan_node;

typedef struct plan_step {
    sdlf_operation operation;
    sdlf_calculator *calculator; /* a copy between spaces: the one that is not the host's */
    sdlf_phase phase;            /* SDLF_PHASE_COPY: operation.in[0] to operation.out[0] across spaces */
    sdlf_phase serves;           /* of a copy: the phase that waits for it; else `phase` */
    int node;
    bool dead; /* fused away; compacted at the end of the pass */
    sdlf_cost cost;
    double seconds;
    int64_t live;          /* see sdlf_step_info */
    int bucket;            /* SDLF_PHASE_COMMUNICATE: which, operation.out[0] */
    bool awaits;           /* is its sum waited for, and not begun? */
    bool gathers;          /* all-gather: ranks exchange their parts of it, and add nothing */
    bool queued;           /* of a copy: from pinned memory, and the host does not wait */
    char *label, *content; /* of a copy: "copy host to cuda:0", and what of: "output of relu" */
} plan_step;

typedef struct plan_space {
    const char *name;
    sdlf_calculator *calculator; /* allocates here; NULL: the host's memory without a host calculator */
    int64_t bytes;               /* of the arena */
    int64_t unshared;
    void *arena;
    bool uploading; /* queued copies to it may still read the host's memory */
} plan_space;

/* An affine function folded into the weights before it: w' = w s, b' = (b - mean) s + shift, s = factor scale /
 * sqrt(variance + epsilon), per output channel. */
typedef struct plan_fold {
    int weight, bias, scale, shift, mean, variance; /* model parameter indices; -1: 0, of scale and variance 1 */
    double factor, epsilon;
    int64_t channels;
    int folded_weight, folded_bias; /* buffers */
} plan_fold;

/* What listings need of a node. */
typedef struct plan_entry {
    int line;        /* of the listing; -1: the node is none */
    int next_member; /* the next node of its group; -1: it is the last */
    int last_member; /* of a group's first node */
    int first_step;  /* of the line's steps; -1: none */
} plan_entry;

typedef struct plan_listing {
    int *line; /* of each line, its first node */
    int count;
    plan_entry *entry; /* of each node */
    int *next_step;    /* of each step, the next of its line; -1: it is the last */
} plan_listing;

/* The buffers of the plan to reuse: a list for each parameter, and one for data. 0: its end. */
typedef struct plan_reused {
    int *first; /* of each list */
    int *next;  /* of each of its buffers */
} plan_reused;

/* A state of the options. */
typedef struct plan_state {
    int input, output; /* values */
    int axis;          /* along which it grows; -1: it does not */
    int64_t capacity;
    int buffer; /* where it grows: of both; 0: not made yet */
} plan_state;

/* An input whose values a gather takes for indices along an axis of that length, negative ones from its end. */
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
    int64_t *tickets; /* of the buckets whose sums are under way */
    int bucket_count;
    int control[CONTROL_COUNT];                           /* buffers; 0: not used (buffer 0 is never a real one) */
    int control_buffers[CONTROL_COUNT * PLAN_MAX_SPACES]; /* these and their copies in other spaces */
    int control_buffer_count;
    plan_feed feed;
    plan_state *states;
    int state_count;
    plan_index_bound *index_bounds;
    int index_bound_count;
    sdlf_plan_constant *constants; /* own list of borrowed names and tensors; names only while the plan is made */
    int parameter_buffer_base;     /* buffers of the model's parameters follow each other from here */
    sdlf_tensor metrics;           /* absent when there is no softmax_cross_entropy */
    sdlf_tensor loss_gradient;     /* (1): what a loss's gradient begins with */
    sdlf_tensor loss_scale;        /* (3): see loss_scale_update; absent without loss scaling */
    sdlf_tensor factor;            /* (1): 1 / scale, 0 in a step that is skipped; absent likewise */
    sdlf_tensor steps_taken;       /* (1) int64: those before this one that were not skipped; absent likewise */
    sdlf_tensor taken_step;        /* (1) bool: this one is not skipped; absent likewise, or where updates ask factor */
    sdlf_tensor squares, clip;     /* gradient clipping; clip is what updates multiply gradients by */
    sdlf_tensor due;               /* (1) bool: Lookahead's step is due; absent without it */
    sdlf_tensor *rates;            /* of parameters whose rate is scaled, while they are lowered; NULL: none is */
    int64_t accumulated;           /* batches since the last update */
    int loss_value;                /* value of the first loss; -1 */
    sdlf_layer *loss_layers;       /* the labels input and the loss that the plan added, or NULL */
    int64_t step_number;
    plan_recording forward_recording, step_recording;
    plan_recording several[PLAN_SEVERAL]; /* steps of a plan with a feed, fewer in each */
    plan_marks marks;
    bool bound;
    plan_pin *pins; /* memory of the host that copies use */
    int pin_count;
    bool draws;         /* the model's parameters have no values yet: the plan, as it is made, gives them their first */
    bool keeps_weights; /* in forms of its own that the model's do not follow: see sdlf_plan_load_parameters */
    uint64_t loaded;    /* model->changes when they were loaded */
    bool taken; /* options.take_parameters, and values of the model have been freed: nothing can be loaded again */
    bool changes_forward, changes_parameters; /* do steps of the forward pass, or any, write parameters? */
    plan_uses uses;                           /* while rules fuse */
    plan_listing listing;
    plan_reused reused;
    int64_t looks; /* at entries of the tables by which passes find things: grows no faster than the steps */
};

/* Does the plan update parameters, and with them an optimizer's states? */
bool plan_uses_states(const sdlf_plan *plan);
/* How many of each parameter: the optimizer's, and the average. */
int plan_state_count(const sdlf_plan_options *options);

/* Note what the bound plan keeps and changes; a pass that changes parameters has run; may a pass run with the weights
 * that are kept? */
void plan_note_weights(sdlf_plan *plan);
void plan_note_changes(sdlf_plan *plan, bool forward_alone);
sdlf_status plan_check_weights(const sdlf_plan *plan);

/* Plans of ranks with the same one add the same numbers in the same order: it depends on fusion, and so on
 * calculators. */
uint32_t plan_sums_fingerprint(const sdlf_plan *plan);

/* The loss scale, if the plan has one of its own, becomes that of the options. */
sdlf_status plan_begin_loss_scale(sdlf_plan *plan);

/* The sums of a plan that accumulates become 0. */
sdlf_status plan_clear_sums(sdlf_plan *plan);

/* ---- buffers and tensors ---- */

/* A new buffer; its index, or 0 when memory is out. */
int plan_new_buffer(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, int64_t bytes);
/* A row-major tensor over a new buffer. */
sdlf_status plan_new_tensor(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor);
sdlf_tensor plan_control_tensor(sdlf_plan *plan, plan_control control); /* absent when memory is out */
/* Index of the space of that calculator, added if new; -1: too many. */
int plan_space_of(sdlf_plan *plan, sdlf_calculator *calculator);
int plan_named_space(sdlf_plan *plan, const char *name, sdlf_calculator *calculator);
bool plan_is_host_space(const sdlf_plan *plan, int space);

/* ---- reuse ---- */

/* Is the plan to reuse, if there is one, of the same model, on the same devices' calculators? */
sdlf_status plan_check_reuse(const sdlf_plan *plan);
/* List what it has; release the lists. */
sdlf_status plan_list_reused(sdlf_plan *plan);
void plan_release_reused(sdlf_plan *plan);
/* Its buffer for the same parameter, state or data in the same space; NULL: none. */
const plan_buffer *plan_reused_buffer(const sdlf_plan *plan, const plan_buffer *wanted);
/* The host's tensor behind a BUFFER_DATA. */
const sdlf_tensor *plan_data(const sdlf_plan *plan, int data);

/* Is the buffer filled anew from another space in every run, and out of date between runs? */
bool plan_is_passing_copy(const sdlf_plan *plan, const plan_buffer *buffer);

/* Offset of a tensor in its arena; -1: a parameter's or state's memory, which is no arena's. */
int64_t plan_arena_offset(const sdlf_plan *plan, const sdlf_tensor *tensor);

/* ---- states ---- */

/* Find them in the graph. */
sdlf_status plan_find_states(sdlf_plan *plan);
/* Is the value one of a state that grows? Then its tensor, in the memory that has room for all of it; else that is
 * absent. */
sdlf_status plan_input_state_tensor(sdlf_plan *plan, int value, sdlf_tensor *tensor);
/* A pass has run: states that do not grow become the next one's inputs. */
void plan_pass_states(sdlf_plan *plan);
/* They become zeros. */
void plan_clear_states(sdlf_plan *plan);

/* Sizes of a plan's operands: shapes, strides, offsets, always in the same order. Called with each of them. */
typedef void plan_size_visitor(void *user, int64_t *size);
void plan_visit_sizes(sdlf_plan *plan, plan_size_visitor *visit, void *user);
/* Are the steps of both the same except for sizes and, unless `options`, for options of operations? */
bool plan_is_alike(const sdlf_plan *a, const sdlf_plan *b, bool options);
/* Give the steps of a bound plan the options of the other's, which is alike. */
void plan_take_options(sdlf_plan *plan, const sdlf_plan *from);
/* Sizes of a bound plan have been changed: operands get their addresses anew. Errors: SDLF_ERROR_UNSUPPORTED where a
 * step wants more scratch memory than it has. */
sdlf_status plan_settle_sizes(sdlf_plan *plan);
/* Give a parameter, of which the bound plan keeps nothing in another form, other values, `count` of them. */
sdlf_status plan_put_values(sdlf_plan *plan, int parameter, const float *values, int64_t count);

/* ---- indices ---- */

/* Do the values that are about to become an input's, of the tensor's type and number, index what reads them? Errors:
 * SDLF_ERROR_ARGUMENT with the reader, the index and the bounds. Costs nothing for inputs that are no indices. */
sdlf_status plan_check_indices(const sdlf_plan *plan, const char *input, const sdlf_tensor *tensor, const void *host);
bool plan_has_index_bounds(const sdlf_plan *plan, const char *input); /* would it look at them? */

/* ---- nodes and steps ---- */

/* The first node from `from` on with that layer's name; -1: none. */
int plan_find_node(const sdlf_plan *plan, const char *name, int from);
sdlf_status plan_emit(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator,
                      const sdlf_operation *operation);
sdlf_status plan_append_step(sdlf_plan *plan, const plan_step *step);
void plan_remove_dead_steps(sdlf_plan *plan);
/* No more steps and buffers come: what their lists have too much goes. */
void plan_fit_lists(sdlf_plan *plan);

/* Does it move numbers between memory spaces or ranks, and compute nothing? */
bool plan_step_moves(const plan_step *step);
bool plan_step_reads(const plan_step *step, int buffer);
bool plan_step_writes(const plan_step *step, int buffer);
/* Is output i of the operation also read by it? */
bool plan_output_is_updated(const sdlf_operation *operation, int i);
/* Does the tensor cover all of its buffer? */
bool plan_covers_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor);
/* Is it all of its buffer, each element once, in any order of axes? */
bool plan_permutes_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor);

#endif
