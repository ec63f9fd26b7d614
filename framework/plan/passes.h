/* SPDX-License-Identifier: MIT */
/* The passes that make a plan, and the helpers they share besides the queries of plan_internal.h. */
#ifndef SDLF_FRAMEWORK_PLAN_PASSES_H
#define SDLF_FRAMEWORK_PLAN_PASSES_H

#include "framework/plan/plan_internal.h"

sdlf_status plan_complete_options(sdlf_plan_options *options);
sdlf_status plan_build_graph(sdlf_plan *plan);
sdlf_status plan_lower(sdlf_plan *plan);
sdlf_status plan_find_index_bounds(sdlf_plan *plan); /* of inputs, before fusion */
sdlf_status plan_fuse(sdlf_plan *plan);
sdlf_status plan_check_support(sdlf_plan *plan);
/* "NAME" or "CALCULATOR:NAME", the algorithm that the options request for operations of that kind; NULL: none. */
const char *plan_requested_algorithm(const sdlf_plan *plan, sdlf_operation_kind kind);
sdlf_status plan_choose(sdlf_plan *plan);
sdlf_status plan_choose_layouts(sdlf_plan *plan);
sdlf_status plan_store_rows(sdlf_plan *plan); /* after layouts: row-major activations stored in 16 bits */
/* Runs after layouts. In training: epilogues that only kernels for a storage type support. In inference: removal of
 * copies that layouts made redundant, and fusions that only channels-last kernels support. */
sdlf_status plan_fuse_stored(sdlf_plan *plan);
sdlf_status plan_order_multi_tensor(sdlf_plan *plan); /* training: makes small per-parameter steps adjacent */
sdlf_status plan_sync_norms(sdlf_plan *plan);         /* training with a communicator: batch statistics of all ranks */
sdlf_status plan_bucket_gradients(sdlf_plan *plan);   /* training with a communicator */
/* An all-reduce of a whole buffer over all ranks, and the step that starts it or waits for it. */
typedef struct plan_sum {
    int buffer;
    sdlf_calculator *calculator; /* whose memory holds it */
    sdlf_phase serves;
    int node, number; /* of its bucket, from plan->bucket_count++ */
    const char *what;
    bool gathers; /* all-gather: ranks exchange their parts, nothing is added */
} plan_sum;
sdlf_status plan_append_sum(sdlf_plan *plan, const plan_sum *sum, bool awaits);
sdlf_status plan_place(sdlf_plan *plan);
sdlf_status plan_assign_offsets(sdlf_plan *plan);
void plan_find_unpacked_weights(sdlf_plan *plan); /* part of plan_assign_offsets, once lifetimes are known */
/* True if the buffer holds a copy of a model's tensor, unless another plan owns that copy. */
bool plan_is_copy_of_model(const sdlf_plan *plan, const plan_buffer *buffer);
/* Lists the parameters from which the buffer's content is computed: six of each branch. Returns how many. */
enum { PLAN_MAX_BRANCHES = 8, PLAN_FOLDED = 6 * PLAN_MAX_BRANCHES };
int plan_source_parameters(const sdlf_plan *plan, const plan_buffer *buffer, int parameter[PLAN_FOLDED]);
/* True if the operation does not read operand in[i], because it has it in a prepacked form. (Host memory
 * only.) */
bool plan_is_prepacked(const sdlf_operation *operation, int i);
/* Index of the input that is added to the result before its activation; -1: the kind has none. */
int plan_residual_of(const sdlf_operation *operation);
/* Lists the steps that have prepacked operands, in the order of prepacking: the largest weights first, while the least
 * other memory is in use. The caller frees the list. */
sdlf_status plan_order_preparing(const sdlf_plan *plan, int **steps, int *count);
/* For each parameter, the time after which nothing reads the model's values; PLAN_KEEPS if there is none. Time b <
 * buffer_count: buffer b is loaded; buffer_count + i: the weights of steps[i] are prepacked. The caller frees *after.
 * plan_take_after frees what is no longer needed once `buffer` has been read, at that time. */
enum { PLAN_KEEPS = -1 };
sdlf_status plan_find_taken(const sdlf_plan *plan, const int *steps, int count, int **after);
void plan_take_after(sdlf_plan *plan, const int *after, int buffer, int time);
sdlf_status plan_make_listing(sdlf_plan *plan); /* after all of them */
void plan_release_listing(sdlf_plan *plan);
sdlf_status plan_bind(sdlf_plan *plan);

/* ---- constant inputs ---- */

/* The constant that supplies an input node, or NULL. */
const sdlf_plan_constant *plan_constant_of(const sdlf_plan *plan, const plan_node *node);
sdlf_status plan_take_constants(sdlf_plan *plan);  /* before the graph pass: makes the plan's own list */
sdlf_status plan_check_constants(sdlf_plan *plan); /* after the graph pass: checks that they match their inputs */
/* Fills `tensor` with the value of a constant input. */
sdlf_status plan_make_constant(sdlf_plan *plan, const sdlf_plan_constant *constant, sdlf_tensor *tensor);

/* ---- fusion rules; each visits all steps once ---- */

/* Records which steps use which buffer, for the queries below; rebuilt before each rule. */
sdlf_status plan_find_uses(sdlf_plan *plan);
/* Replaces a step's operation and marks the step live. */
sdlf_status plan_replace_operation(sdlf_plan *plan, int step, const sdlf_operation *operation);
/* Uses of a buffer by live steps: the number that read or update it, the number that write it, and the first reader
 * after step `after`. */
int plan_count_readers(const sdlf_plan *plan, int buffer);
int plan_count_writers(const sdlf_plan *plan, int buffer);
int plan_next_reader(const sdlf_plan *plan, int buffer, int after);
int plan_first_writer(const sdlf_plan *plan, int buffer); /* -1: none */
/* True if a step strictly between the two writes what the operation reads. (Visits all of them.) */
bool plan_writes_between(const sdlf_plan *plan, const sdlf_operation *operation, int first, int last);
/* Merges node b's line into node a's group; and, after all rules, makes every node and step name the first node of its
 * group. */
void plan_join_groups(sdlf_plan *plan, int a, int b);
void plan_settle_groups(sdlf_plan *plan);

/* The only reader of step i's output, if it reads all of it on the same calculator and in the same pass; else -1. */
int plan_sole_reader(const sdlf_plan *plan, int i);
/* True if both have the same shape and the same strides. */
bool plan_same_strides(const sdlf_tensor *a, const sdlf_tensor *b);
/* For a copy from `from` to `to`: maps a dense part of the destination to the same part of the source. False if an axis
 * of the part spans several of the copy's axes. */
bool plan_view_source(const sdlf_tensor *from, const sdlf_tensor *to, sdlf_tensor *part);
/* True if x is all of a buffer that exactly one step writes and one reads. */
bool plan_is_between(const sdlf_plan *plan, const sdlf_tensor *x);
/* Computes a buffer of a plan_integers from the model's values. */
sdlf_status plan_load_integers(sdlf_plan *plan, int buffer);
void plan_release_scales(plan_weight_only *w);
sdlf_status plan_load_weight_only(sdlf_plan *plan, int buffer); /* the same for a plan_weight_only */

sdlf_status plan_fuse_qdq_nodes(sdlf_plan *plan);
sdlf_status plan_fuse_qdq_integers(sdlf_plan *plan);
sdlf_status plan_fuse_integer_products(sdlf_plan *plan);
sdlf_status plan_fuse_weight_only(sdlf_plan *plan);
sdlf_status plan_fold_norms(sdlf_plan *plan);
sdlf_status plan_merge_branches(sdlf_plan *plan);
/* The model parameter of `count` values that an operand covers entirely; -1: none. */
int plan_parameter_of(const sdlf_plan *plan, const sdlf_tensor *tensor, int64_t count);
/* Gives a product new weights of that shape and a new bias, whose contents are then those of a fold. */
sdlf_status plan_derive_weights(sdlf_plan *plan, sdlf_operation *product, sdlf_shape weights);
/* Appends the fold that computes the product's new weights and bias. */
sdlf_status plan_add_fold(sdlf_plan *plan, const plan_fold *fold, const sdlf_operation *product);
/* Computes `count` values of a folded weight or bias, from index `first` on. */
void plan_compute_fold(const sdlf_plan *plan, const plan_fold *fold, bool bias, int64_t first, int64_t count,
                       double *out);
sdlf_status plan_fold_scales(sdlf_plan *plan);
sdlf_status plan_fuse_rectified_pools(sdlf_plan *plan);
sdlf_status plan_fuse_activations(sdlf_plan *plan);
sdlf_status plan_fuse_values(sdlf_plan *plan);
sdlf_status plan_fuse_transposed_operands(sdlf_plan *plan);
sdlf_status plan_fuse_permuted_rows(sdlf_plan *plan);
sdlf_status plan_fuse_attention(sdlf_plan *plan);
sdlf_status plan_fuse_epilogues(sdlf_plan *plan);
sdlf_status plan_fuse_declared(sdlf_plan *plan);
sdlf_status plan_fuse_copies(sdlf_plan *plan);
sdlf_status plan_fuse_feed(sdlf_plan *plan);
sdlf_status plan_fuse_loss(sdlf_plan *plan);
sdlf_status plan_fuse_norm_backward(sdlf_plan *plan);
sdlf_status
plan_fuse_gradient_sums(sdlf_plan *plan); /* runs after the fusion of updates, which matches unfused gradients */

/* ---- words for buffers ---- */

/* WHAT and the name of its owner: "output of ", "relu". */
typedef struct plan_words {
    const char *what, *name; /* NULL: no rule names it */
} plan_words;

/* What every buffer holds. The caller frees it; NULL: out of memory. */
plan_words *plan_name_buffers(const sdlf_plan *plan);
/* Both as one string, which the caller frees; NULL: out of memory. */
char *plan_join_words(plan_words words);

#endif
