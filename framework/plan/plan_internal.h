/* A plan from the inside: nodes, buffers, steps, and the passes that make them.
 *
 *   graph    nodes with shapes, calculators; dead and idle layers gone              plan_build_graph
 *   lower    layers describe their operations: a straight list of steps             plan_lower
 *   fuse     neighbouring steps become one where a calculator can                   plan_fuse
 *   choose   algorithms by measurement, if asked for                            plan_choose
 *   layouts  activations channels last, for inference where that is faster      plan_choose_layouts
 *   place    copies between memory spaces                                           plan_place
 *   arena    one offset for every buffer, by lifetime                               plan_lay_out
 *   bind     memory is allocated, operands get addresses, parameters are loaded     plan_bind
 *
 * A buffer is written in program order and read after it: every gradient and activation is made once, so aliases are safe
 * and the passes reason about buffers alone. */
#ifndef SDLF_FRAMEWORK_PLAN_INTERNAL_H
#define SDLF_FRAMEWORK_PLAN_INTERNAL_H

#include <sdlf/plan.h>

#include "framework/model_internal.h"

#define SDLF_HOST_SPACE "host"

enum { PLAN_MAX_SPACES = 8, PLAN_FIRST_CONSTANT = 2 };

typedef enum buffer_kind {
    BUFFER_ARENA,     /* lives from its first write to its last read */
    BUFFER_PINNED,    /* keeps its place for the whole plan: inputs, outputs, loss, metrics */
    BUFFER_CONTROL,   /* a scalar that the host sets before a run; valid in every space */
    BUFFER_PARAMETER, /* a parameter's value */
    BUFFER_STATE,     /* an optimiser state */
    BUFFER_DATA,      /* a feed's samples or labels, or a constant input: as constant as parameters in inference */
    BUFFER_DERIVED,   /* computed from parameters when they are loaded (folded batch normalisation) */
    BUFFER_PREPARED,  /* weights in the form that a calculator made ready, when they are loaded */
} buffer_kind;

typedef enum plan_control { CONTROL_STEP, CONTROL_RATE, CONTROL_ONE, CONTROL_COUNT } plan_control;

typedef struct plan_buffer {
    buffer_kind kind;
    sdlf_dtype dtype; /* of a parameter, state or control */
    int64_t bytes;
    int space;               /* index into plan->spaces; -1 until placed */
    int source;              /* the buffer this is a copy of in another space; its own index if it is no copy */
    int parameter, state;    /* which, for BUFFER_PARAMETER and BUFFER_STATE */
    int control;             /* which, for BUFFER_CONTROL */
    int data;                /* which, for BUFFER_DATA: 0 samples, 1 labels, 2 .. the constants */
    int fold;                /* which, for BUFFER_DERIVED */
    bool constant;           /* no step writes it: it is valid in every space from the start */
    int first_use, last_use; /* steps; first_use -1: unused */
    int alias;               /* shares the memory of this buffer (in place); -1: has its own */
    int64_t offset;          /* in its space's arena; -1: memory elsewhere */
    void *memory;
} plan_buffer;

typedef struct plan_value {
    sdlf_tensor tensor;
    sdlf_tensor gradient;
    bool needs_gradient;
} plan_value;

typedef struct plan_node {
    const sdlf_layer *layer;
    int position; /* in the model; -1: made by the plan */
    bool live;    /* does anything wanted depend on it? */
    bool idle;    /* does nothing in this mode: its output is its input */
    int inputs[SDLF_MAX_LAYER_INPUTS];
    int input_count;
    int first_value; /* its outputs are values first_value, first_value + 1, ... */
    sdlf_signature signature;
    int first_parameter; /* in the model */
    sdlf_tensor parameter[SDLF_MAX_LAYER_PARAMETERS];
    sdlf_tensor parameter_gradient[SDLF_MAX_LAYER_PARAMETERS];
    sdlf_tensor saved[SDLF_MAX_LAYER_SAVED];
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

/* The steps of a pass as one unit that the calculator replays (see calculator.h). A pass runs once step by step, so that
 * whatever libraries set up lazily is there; then it is recorded. */
typedef struct plan_recording {
    sdlf_calculator *calculator; /* NULL: the pass cannot be recorded */
    int repeats;                 /* the pass so many times over */
    bool warm;                   /* it has run once */
    void *recording;
} plan_recording;

/* Looks at the metrics that are under way, oldest first. */
typedef struct plan_marks {
    sdlf_calculator *calculator; /* whose queue carries them; NULL: they are taken at once */
    double (*sums)[3];           /* in host memory of that queue */
    sdlf_fence *fence[SDLF_PLAN_MARKS];
    sdlf_metrics taken[SDLF_PLAN_MARKS]; /* without queues */
    int first, count;
} plan_marks;

/* Host memory that a device's transfers may use while the host goes on. */
typedef struct plan_pin {
    sdlf_calculator *calculator;
    void *memory;
} plan_pin;

/* Batch normalisation folded into the weights before it: w' = w s, b' = (b - mean) s + shift, s = scale / sqrt(var + eps),
 * per output channel. Buffers of model parameters; bias may be -1. */
typedef struct plan_fold {
    int weight, bias, scale, shift, mean, variance; /* model parameter indices */
    float epsilon;
    int folded_weight, folded_bias; /* buffers */
} plan_fold;

/* Batches on their way to a device that does not hold the data set (stage.c): a ring of places there, one of as many in host
 * memory, and fences that say which are filled and which are used up. */
typedef struct plan_stages {
    int count; /* places; 0: the device holds all data, or is none */
    sdlf_calculator *calculator;
    bool queued;         /* do its queues carry the batches? Else the host waits for each */
    char *host;          /* samples, labels, numbers of each place */
    int64_t part[3];     /* bytes of these in one batch */
    int64_t place_bytes; /* of one place in host memory */
    sdlf_fence *filled[SDLF_MAX_STAGED], *used[SDLF_MAX_STAGED];
    int32_t *order; /* of the epoch under way, on the host, with scratch space for shuffling */
    uint64_t *keys;
} plan_stages;

/* The tensors of a plan's feed. */
typedef struct plan_feed {
    bool present;
    sdlf_feed feed;
    sdlf_tensor data[2];              /* samples, labels: all of them, or the places of a few batches */
    sdlf_tensor number;               /* of the images in these places; absent where it is not needed */
    sdlf_tensor whole_order, order;   /* of all samples; of this plan's */
    sdlf_tensor rates, first, cursor; /* set by the host at an epoch's start */
    sdlf_tensor epoch;                /* likewise */
    sdlf_tensor index, rate, step;    /* of the present step */
    sdlf_operation shuffle;           /* makes whole_order; kind SDLF_FILL: not wanted */
    sdlf_calculator *calculator;      /* of these operations */
    int64_t steps, done;              /* of the epoch under way */
    plan_stages stages;
} plan_feed;

struct sdlf_plan {
    sdlf_model *model;
    sdlf_plan_options options;
    plan_node *nodes;
    int node_count;
    plan_value *values;
    int value_count;
    plan_buffer *buffers;
    int buffer_count, buffer_capacity;
    plan_step *steps;
    int step_count, step_capacity;
    int forward_steps; /* steps[0 .. forward_steps - 1] are the forward pass */
    plan_space spaces[PLAN_MAX_SPACES];
    int space_count;
    plan_fold *folds;
    int fold_count;
    int control[CONTROL_COUNT]; /* buffers; 0: not used (buffer 0 is never a real one) */
    plan_feed feed;
    sdlf_constant *constants;  /* own list of borrowed names and tensors; names only while the plan is made */
    int parameter_buffer_base; /* buffers of the model's parameters follow each other from here */
    sdlf_tensor metrics;       /* absent when there is no softmax_cross_entropy */
    sdlf_tensor squares, clip; /* gradient clipping */
    int loss_value;            /* value of the first loss; -1 */
    sdlf_layer *loss_layers;   /* the labels input and the loss that the plan added, or NULL */
    int64_t step_number;
    plan_recording forward_recording, step_recording;
    plan_recording steps_recording; /* several steps of a plan with a feed */
    plan_marks marks;
    bool bound;
    plan_pin *pins; /* memory of the host that copies use */
    int pin_count;
};

/* ---- passes ---- */
sdlf_status plan_build_graph(sdlf_plan *plan);
sdlf_status plan_add_loss(sdlf_plan *plan); /* part of the graph pass */
sdlf_status plan_lower(sdlf_plan *plan);
sdlf_status plan_fuse(sdlf_plan *plan);
sdlf_status plan_check_support(sdlf_plan *plan);
sdlf_status plan_choose(sdlf_plan *plan);
sdlf_status plan_choose_layouts(sdlf_plan *plan);
/* Does the layout pass bring activations channels last to operations that like it? */
bool plan_turns_layouts(const sdlf_plan *plan);
sdlf_status plan_place(sdlf_plan *plan);
sdlf_status plan_lay_out(sdlf_plan *plan);
sdlf_status plan_bind(sdlf_plan *plan);
/* Does the plan update parameters, and with them an optimiser's states? */
bool plan_uses_states(const sdlf_plan *plan);

/* ---- constant inputs ---- */

/* The constant that an input node is, or NULL. */
const sdlf_constant *plan_constant_of(const sdlf_plan *plan, const plan_node *node);
sdlf_status plan_take_constants(sdlf_plan *plan);  /* before the graph pass: a list of one's own */
sdlf_status plan_check_constants(sdlf_plan *plan); /* after it: they are what their inputs take */
/* The value of a constant input. */
sdlf_status plan_make_constant(sdlf_plan *plan, const sdlf_constant *constant, sdlf_tensor *tensor);
/* The host's tensor behind a BUFFER_DATA. */
const sdlf_tensor *plan_data(const sdlf_plan *plan, int data);

/* ---- feeding (part of lowering) ---- */
sdlf_status plan_lower_feed(sdlf_plan *plan);
sdlf_status plan_lower_gather(sdlf_plan *plan, int node);
/* Before a timed step: the same first batch with learning rate 0. The epoch under way is over. */
sdlf_status plan_feed_still(sdlf_plan *plan);
/* Is the feed's data set, as it is, in the memory that the plan reads it from? */
bool plan_holds_data(const sdlf_plan *plan);
/* Batches that are brought one by one: room for them, the order of an epoch, the batch of the step that comes next. */
int64_t plan_stage_bytes(const sdlf_plan *plan); /* in the host's memory */
sdlf_status plan_prepare_stages(sdlf_plan *plan);
void plan_release_stages(sdlf_plan *plan);
void plan_order_stages(sdlf_plan *plan, const sdlf_epoch *epoch);
sdlf_status plan_bring_batch(sdlf_plan *plan, int64_t step);
sdlf_status plan_batch_used(sdlf_plan *plan, int64_t step);
bool plan_is_fed(const sdlf_plan *plan, const plan_node *node);
sdlf_status plan_emit(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator,
                      const sdlf_operation *operation);

/* ---- fusion rules; each walks all steps once ---- */
sdlf_status plan_fold_batch_norm(sdlf_plan *plan);
sdlf_status plan_fuse_conv_pool(sdlf_plan *plan);
sdlf_status plan_fuse_silu(sdlf_plan *plan);
sdlf_status plan_fuse_epilogues(sdlf_plan *plan);
sdlf_status plan_fuse_feed(sdlf_plan *plan);
sdlf_status plan_fuse_loss(sdlf_plan *plan);
sdlf_status plan_fuse_updates(sdlf_plan *plan);

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

/* The buffer of the plan that this one shares with, for the same parameter, state or data in the same space; NULL: none. */
const plan_buffer *plan_shared_buffer(const sdlf_plan *plan, const plan_buffer *wanted);
/* What is in the buffer, in words for listings: "output of relu", "conv2d.weight". The caller's to free; NULL: no memory. */
char *plan_describe_buffer(const sdlf_plan *plan, int buffer);
/* Is the buffer filled anew from another space in every run, and out of date between runs? */
bool plan_is_passing_copy(const sdlf_plan *plan, const plan_buffer *buffer);

/* ---- steps ---- */
sdlf_status plan_append_step(sdlf_plan *plan, const plan_step *step);
void plan_remove_dead_steps(sdlf_plan *plan);

/* Uses of a buffer by the steps that are not dead: how many read or update it, how many write it, the first reader after
 * step `after`. */
int plan_count_readers(const sdlf_plan *plan, int buffer);
int plan_count_writers(const sdlf_plan *plan, int buffer);
int plan_next_reader(const sdlf_plan *plan, int buffer, int after);
bool plan_step_reads(const plan_step *step, int buffer);
bool plan_step_writes(const plan_step *step, int buffer);
/* Is output i of the operation also read by it? */
bool plan_output_is_updated(const sdlf_operation *operation, int i);
/* Does the tensor cover all of its buffer? */
bool plan_covers_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor);
/* Put node b's line into node a's group. */
void plan_join_groups(sdlf_plan *plan, int a, int b);

/* ---- running and memory ---- */
sdlf_status plan_run_step(sdlf_plan *plan, const plan_step *step);
/* Pin what copies between host and devices use, where the devices can; nothing but speed depends on it. */
sdlf_status plan_pin_memory(sdlf_plan *plan);
void plan_unpin_memory(sdlf_plan *plan);
/* Wait until queued copies have read the host's memory. */
sdlf_status plan_settle_uploads(sdlf_plan *plan);
sdlf_status plan_run_steps(sdlf_plan *plan, int first, int last);
void plan_prepare_recordings(sdlf_plan *plan);
void plan_discard_recordings(sdlf_plan *plan);
/* Run steps [0, count): the first time one by one, then as a recording where that can be. */
sdlf_status plan_run_pass(sdlf_plan *plan, plan_recording *kept, int count);
/* Make the recordings of training steps now. One step has run. */
sdlf_status plan_record_ahead(sdlf_plan *plan);
sdlf_status plan_warm_up(sdlf_plan *plan);
/* Bring the parameters and states that this plan uses, its own and those it shares, to the model, or back from there. */
sdlf_status plan_move_parameters(sdlf_plan *plan, bool load);
/* Of a plan with a feed: run `done` training steps, 1 to `most`, as few calls of the calculator do it. */
sdlf_status plan_run_some(sdlf_plan *plan, int64_t most, int64_t *done);
sdlf_status plan_prepare_marks(sdlf_plan *plan);
void plan_release_marks(sdlf_plan *plan);
sdlf_status plan_upload(sdlf_plan *plan, int buffer, const void *host, int64_t bytes);
sdlf_status plan_download(sdlf_plan *plan, int buffer, void *host, int64_t bytes);
/* Set a control in every space. */
sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value);
/* Address of a tensor in its (bound) buffer. */
sdlf_tensor plan_bound(const sdlf_plan *plan, sdlf_tensor tensor);

#endif
