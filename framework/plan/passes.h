/* SPDX-License-Identifier: MIT */
/* The passes that make a plan, and what they share beside the questions of plan_internal.h. */
#ifndef SDLF_FRAMEWORK_PLAN_PASSES_H
#define SDLF_FRAMEWORK_PLAN_PASSES_H

#include "framework/plan/plan_internal.h"

sdlf_status plan_complete_options(sdlf_plan_options *options);
sdlf_status plan_build_graph(sdlf_plan *plan);
sdlf_status plan_lower(sdlf_plan *plan);
sdlf_status plan_find_index_bounds(sdlf_plan *plan); /* of inputs, before anything is fused */
sdlf_status plan_fuse(sdlf_plan *plan);
sdlf_status plan_check_support(sdlf_plan *plan);
/* "NAME" or "CALCULATOR:NAME", which the options request for operations of that kind; NULL: none. */
const char *plan_requested_algorithm(const sdlf_plan *plan, sdlf_operation_kind kind);
sdlf_status plan_choose(sdlf_plan *plan);
sdlf_status plan_choose_layouts(sdlf_plan *plan);
sdlf_status plan_store_rows(sdlf_plan *plan); /* inference, after layouts: row-major activations in 16 bits */
/* After layouts: in training epilogues that only kernels for a storage type have, in inference copies that layouts made
 * needless, and fusions that only kernels for images channels last have. */
sdlf_status plan_fuse_stored(sdlf_plan *plan);
sdlf_status plan_order_multi_tensor(sdlf_plan *plan); /* training: small steps of parameters, side by side */
sdlf_status plan_sync_norms(sdlf_plan *plan);       /* training with a communicator: batch normalisation of all ranks */
sdlf_status plan_bucket_gradients(sdlf_plan *plan); /* training with a communicator */
/* A sum over all ranks of a whole buffer, and the step that begins it, or waits for it. */
typedef struct plan_sum {
    int buffer;
    sdlf_calculator *calculator; /* in whose memory it is */
    sdlf_phase serves;
    int node, number; /* its bucket's, from plan->bucket_count++ */
    const char *what;
    bool gathers; /* its parts are gathered by all ranks, and not added */
} plan_sum;
sdlf_status plan_append_sum(sdlf_plan *plan, const plan_sum *sum, bool awaits);
sdlf_status plan_place(sdlf_plan *plan);
sdlf_status plan_lay_out(sdlf_plan *plan);
void plan_find_unpacked_weights(sdlf_plan *plan); /* part of it: lifetimes are known */
/* Does the buffer hold a copy of a model's tensor? (And not one that another plan keeps.) */
bool plan_is_copy_of_model(const sdlf_plan *plan, const plan_buffer *buffer);
/* The parameters whose values the buffer's content is made of. Returns how many. */
enum { PLAN_FOLDED = 6 };
int plan_source_parameters(const sdlf_plan *plan, const plan_buffer *buffer, int parameter[PLAN_FOLDED]);
/* Does the operation leave operand in[i] unread, as it has it in the form that its kernel likes best? (In the host's
 * memory.) */
bool plan_is_prepacked(const sdlf_operation *operation, int i);
/* The input that is added to the result before its activation; -1: the kind has none. */
int plan_residual_of(const sdlf_operation *operation);
/* The steps that have something prepacked, in the order in which that is done: the largest weights first, while there
 * is the least beside them. The caller's to free. */
sdlf_status plan_order_preparing(const sdlf_plan *plan, int **steps, int *count);
/* Of each parameter, the time after which nothing reads the model's values any more, PLAN_KEEPS where there is none.
 * Time b < buffer_count: buffer b is loaded; buffer_count + i: steps[i] has its weights prepacked. The caller's to
 * free. Then: `buffer` has been read, it is that time. */
enum { PLAN_KEEPS = -1 };
sdlf_status plan_find_taken(const sdlf_plan *plan, const int *steps, int count, int **after);
void plan_take_after(sdlf_plan *plan, const int *after, int buffer, int time);
sdlf_status plan_make_listing(sdlf_plan *plan); /* after them all */
void plan_release_listing(sdlf_plan *plan);
sdlf_status plan_bind(sdlf_plan *plan);

/* ---- constant inputs ---- */

/* The constant that an input node is, or NULL. */
const sdlf_plan_constant *plan_constant_of(const sdlf_plan *plan, const plan_node *node);
sdlf_status plan_take_constants(sdlf_plan *plan);  /* before the graph pass: a list of one's own */
sdlf_status plan_check_constants(sdlf_plan *plan); /* after it: they are what their inputs take */
/* The value of a constant input. */
sdlf_status plan_make_constant(sdlf_plan *plan, const sdlf_plan_constant *constant, sdlf_tensor *tensor);

/* ---- fusion rules; each walks all steps once ---- */

/* Which steps use which buffer, for the questions below; anew before each rule. */
sdlf_status plan_find_uses(sdlf_plan *plan);
/* Give a step another operation, and life. */
sdlf_status plan_replace_operation(sdlf_plan *plan, int step, const sdlf_operation *operation);
/* Uses of a buffer by the steps that are not dead: how many read or update it, how many write it, the first reader
 * after step `after`. */
int plan_count_readers(const sdlf_plan *plan, int buffer);
int plan_count_writers(const sdlf_plan *plan, int buffer);
int plan_next_reader(const sdlf_plan *plan, int buffer, int after);
int plan_first_writer(const sdlf_plan *plan, int buffer); /* -1: none */
/* Does a step between the two, neither included, write what the operation reads? (Looks at all of them.) */
bool plan_writes_between(const sdlf_plan *plan, const sdlf_operation *operation, int first, int last);
/* Put node b's line into node a's group; and, when all rules are done, let every node and step name its group's first
 * node. */
void plan_join_groups(sdlf_plan *plan, int a, int b);
void plan_settle_groups(sdlf_plan *plan);

/* The step that alone reads all of what step `i` makes, on the same calculator and in the same pass; -1: none. */
int plan_sole_reader(const sdlf_plan *plan, int i);
/* Are the two of one shape, and do their elements lie at the same distances? */
bool plan_same_strides(const sdlf_tensor *a, const sdlf_tensor *b);
/* Of a copy: a part of what it writes, without gaps, becomes the same part of what it reads. False: an axis of the part
 * goes along several of the copy's. */
bool plan_view_source(const sdlf_tensor *from, const sdlf_tensor *to, sdlf_tensor *part);
/* Is x all of a buffer that one step writes, and one reads? */
bool plan_is_between(const sdlf_plan *plan, const sdlf_tensor *x);
/* Work out a buffer of a plan_integers from the model's values. */
sdlf_status plan_load_integers(sdlf_plan *plan, int buffer);
void plan_release_scales(plan_weight_only *w);
sdlf_status plan_load_weight_only(sdlf_plan *plan, int buffer); /* or of a plan_weight_only */

sdlf_status plan_fuse_qdq_nodes(sdlf_plan *plan);
sdlf_status plan_fuse_qdq_integers(sdlf_plan *plan);
sdlf_status plan_fuse_integer_products(sdlf_plan *plan);
sdlf_status plan_fuse_weight_only(sdlf_plan *plan);
sdlf_status plan_fold_norms(sdlf_plan *plan);
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
plan_fuse_gradient_sums(sdlf_plan *plan); /* behind the fusion of updates, which looks for gradients by themselves */

/* ---- words for buffers ---- */

/* WHAT and the name of the thing it is of: "output of ", "relu". */
typedef struct plan_words {
    const char *what, *name; /* NULL: no rule names it */
} plan_words;

/* What every buffer holds. The caller's to free; NULL: no memory. */
plan_words *plan_name_buffers(const sdlf_plan *plan);
/* As one text, the caller's to free; NULL: no memory. */
char *plan_join_words(plan_words words);

#endif
