/* SPDX-License-Identifier: MIT */
/* From an ONNX graph to a model: what the converters of the single operators work with.
 *
 * A graph is gone through once, in its own order. Every name in it is a value: either constant, with its elements known
 * while the model is made (weights, and everything that can be worked out from weights and shapes), or a flow, the
 * output of a layer. An operator all of whose inputs are constant is folded (fold.c); every other is converted into
 * layers.
 *
 * Converters chain calls without checking each: the first failure is kept in the node's context, and what is called
 * after it does nothing. */
#ifndef SDLF_FORMATS_ONNX_IMPORT_H
#define SDLF_FORMATS_ONNX_IMPORT_H

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/onnx/file.h"
#include "framework/formats/onnx/name_table.h"
#include "framework/model_internal.h"

/* One output of a layer, with its shape for a batch of 1. */
typedef struct onnx_flow {
    sdlf_node node; /* node.layer < 0: there is none */
    sdlf_dtype dtype;
    sdlf_shape shape;
} onnx_flow;

typedef enum onnx_value_kind {
    ONNX_UNMADE = 0, /* what makes it has not been reached, or could not be converted */
    ONNX_CONSTANT,
    ONNX_FLOW,
} onnx_value_kind;

/* That only the beginning of an axis counts (dynamic_length.h). */
typedef struct onnx_counted {
    bool is;
    int axis;
    onnx_flow length; /* how many elements of it, an int64 scalar */
} onnx_counted;

typedef struct onnx_value {
    const char *name;
    onnx_value_kind kind;
    onnx_tensor tensor;   /* constant */
    onnx_flow flow;       /* flow; of a constant: its layer, once somebody wanted one */
    int producer;         /* the node that makes it; -1: an input or a weight */
    int readers;          /* nodes that read it, and once for an output of the graph */
    int unread;           /* of these, how many are still to come */
    int reader;           /* the last such node; -1: none */
    onnx_type narrow;     /* of a flow: the integers that it holds, in larger ones; ONNX_UNDEFINED: it is what it is */
    onnx_counted counted; /* of a flow */
    const int64_t *integers; /* of a constant: its elements, once somebody wanted them as integers */
    bool is_weight;          /* the file has it, as one of floats */
    bool must_be_known;      /* something needs its elements while the model is made */
    bool failed;             /* what makes it could not be converted */
    bool is_output;          /* the model has it as an output already */
} onnx_value;

/* How the elements of a constant become a parameter's. */
typedef struct onnx_fill {
    onnx_tensor tensor;
    int layer;
    const char *parameter; /* "weight" */
    float scale;           /* every element is multiplied by it; 0 counts as 1 */
    bool transpose;        /* the tensor (A,B) is the parameter's (B,A) */
    int64_t first;         /* of the tensor's elements; with repeat: */
    int64_t
        block; /* not 0: the parameter is of blocks of as many elements; its block i is the tensor's block order[i] */
    int order[4];
    bool repeat;  /* the elements again and again, until the parameter is full */
    double value; /* a tensor of type ONNX_UNDEFINED: every element */
} onnx_fill;

typedef struct onnx_import {
    onnx_file *file;
    const sdlf_onnx_options *options;
    sdlf_model *model;
    sdlf_onnx_report *report; /* NULL: the first failure ends the import */
    onnx_name_table names;
    onnx_value *value;
    int value_count, value_capacity;
    onnx_name_table layers; /* names that are taken */
    onnx_fill *fill;
    int fill_count, fill_capacity;
    int64_t folded;         /* elements of constants that were worked out */
    int64_t weights;        /* those that stand for weights of the file's, which are not counted there */
    int64_t elements_run;   /* what folding by running has taken (fold_run.c) */
    int64_t elements_limit; /* of these: as many as the file's weights have, and some more */
    bool batched;           /* the first dimension of an input is the plan's to choose */
    bool open_batch;        /* and the file does not say that it is 1 */
    bool takes_batch;       /* or it is options->batch */
    void *batches;          /* where it lies in every layer's outputs (batch.c) */
    int batch_capacity;
    onnx_branch *branch; /* graphs inside of nodes */
    int branch_count;
    bool fills; /* parameters get their values: unless so, large constants are only outlined */
} onnx_import;

typedef struct onnx_operator onnx_operator;

/* A node that is being converted. */
typedef struct onnx_context {
    onnx_import *import;
    const Onnx__NodeProto *node;
    const onnx_operator *type;
    int position;
    int opset;
    onnx_value **input;  /* NULL: an optional input that is left out */
    int input_count;     /* inputs left out at the end do not count */
    onnx_value **output; /* NULL: an output that nobody wants */
    int output_count;
    int layers;       /* made so far */
    const char *name; /* of the next layer; NULL: the node's */
    sdlf_status status;
} onnx_context;

typedef void onnx_convert(onnx_context *c);

/* An operator: one row of a table. The rows of one name differ in the opsets they are for. */
struct onnx_operator {
    const char *type;
    int since, until; /* opsets, inclusive; until 0: it is still so */
    int minimum_inputs, maximum_inputs;
    unsigned known;         /* bit i: the elements of input i must be known when the model is made */
    const char *attributes; /* " name name " that are understood; any other is refused */
    onnx_convert *convert;  /* into layers; NULL: only folded */
    onnx_convert *fold;     /* with all inputs constant; NULL: constants become layers, too */
    bool of_rows;           /* it picks rows of input 0: see onnx_keeps_rows */
    bool of_weights;        /* `fold` is for constants of any size, not only for small ones */
    bool from_first; /* the standard has never changed it: it may stand in a file of an opset below ONNX_FIRST_OPSET */
    bool of_shape;   /* `fold` looks only at shapes: inputs need not be constant */
};

/* Tables, one a family of operators; each ends with a row without type. */
#define ONNX_OPERATORS(table) extern const onnx_operator table[];
#include "framework/formats/onnx/import/list.h"
#undef ONNX_OPERATORS

/* The row for that name and opset; NULL: none. `other` says why: a row of that name for other opsets, or NULL. */
const onnx_operator *onnx_operator_find(const char *type, int opset, const onnx_operator **other);
/* The row for that node; those of other domains are called "ai.onnx.ml.Scaler". */
const onnx_operator *onnx_operator_of(const Onnx__NodeProto *node, int opset, const onnx_operator **other);
/* Row `index` of all tables; NULL past the end. */
const onnx_operator *onnx_operator_at(int index);

enum { ONNX_FIRST_OPSET = 7, ONNX_LAST_OPSET = 28 };

/* ---- the import as a whole ---- */

/* Make a model of the file. With `report`: go on after failures and collect them; *model is then NULL if there are any.
 * Parameters are described, and filled only if `fill`; with options->leave_weights, not even then. */
sdlf_status onnx_import_run(sdlf_model **model, onnx_file *file, const sdlf_onnx_options *options,
                            sdlf_onnx_report *report, bool fill);
/* Give the model's parameters memory and the values that were noted. */
sdlf_status onnx_fill_parameters(onnx_import *import);
/* Or have the values stay where they are: the file, from malloc, is the model's from now on. */
sdlf_status onnx_defer_parameters(onnx_import *import);
/* Inputs of the graph as layers. */
sdlf_status onnx_import_inputs(onnx_import *import);
/* The value of that name, made if new; NULL when memory is out. */
onnx_value *onnx_value_named(onnx_import *import, const char *name);

/* node.c: make layers or constants of node number `position`. A report takes a failure; without one it ends the
 * import. */
sdlf_status onnx_import_node(onnx_import *import, int position);
/* The same of a node inside of node `position`; its failure is that node's. */
sdlf_status onnx_import_inner(onnx_import *import, const Onnx__NodeProto *node, int position);

/* open_batch.c: where the node failed for a batch of 1, which the file leaves open, and another one may be meant, say how to set it.
 * Gives the status. */
sdlf_status onnx_open_batch_say(onnx_context *c, sdlf_status status);

/* control_flow.c: read the graphs inside of nodes; how many names they have; and have what they read stay. False:
 * memory is out. */
sdlf_status onnx_branches_read(onnx_import *import);
size_t onnx_branches_names(const onnx_import *import);
bool onnx_branches_link(onnx_import *import);
/* Is its operator one of the standard's own? */
bool onnx_is_standard(const Onnx__NodeProto *node);

/* narrow_integers.c: refuse integers that SDLF computes in larger ones where the operator could leave their range; and
 * once it is converted, pass on to the outputs what they are. */
onnx_type onnx_narrow_check(onnx_context *c);
void onnx_narrow_outputs(onnx_context *c, onnx_type type);
/* What input i holds, in those terms. */
onnx_type onnx_narrow_input(const onnx_context *c, int input);

/* ---- failing ---- */

/* Keep a failure, only the first. Unsupported: SDLF cannot; wrong: the file cannot be right. */
void onnx_unsupported(onnx_context *c, const char *format, ...) SDLF_PRINTF(2, 3);
void onnx_wrong(onnx_context *c, const char *format, ...) SDLF_PRINTF(2, 3);
void onnx_no_memory(onnx_context *c);
bool onnx_ok(const onnx_context *c);

/* ---- attributes; a type other than the one asked for is a failure ---- */

bool onnx_has_attribute(onnx_context *c, const char *name);
int64_t onnx_integer(onnx_context *c, const char *name, int64_t fallback);
/* 0 or 1; any other number is a failure, since programs differ in what they take it for. */
bool onnx_flag(onnx_context *c, const char *name, bool fallback);
float onnx_real(onnx_context *c, const char *name, float fallback);
/* Text of at most 31 bytes. */
typedef struct onnx_word {
    char text[32];
} onnx_word;
onnx_word onnx_text(onnx_context *c, const char *name, const char *fallback);
/* A list of integers; count -1: there is none. Borrowed. */
typedef struct onnx_list {
    const int64_t *item;
    int count;
} onnx_list;
onnx_list onnx_integers(onnx_context *c, const char *name);
/* The attribute itself, or NULL. */
const Onnx__AttributeProto *onnx_attribute(const onnx_context *c, const char *name);

/* ---- inputs ---- */

bool onnx_has(const onnx_context *c, int input);
/* Input i as a flow; a constant becomes a layer. */
onnx_flow onnx_in(onnx_context *c, int input);
/* Input i's elements, never NULL: after a failure a tensor without any. */
const onnx_tensor *onnx_known(onnx_context *c, int input);
onnx_list onnx_known_integers(onnx_context *c, int input);
double onnx_known_number(onnx_context *c, int input, double fallback);
/* Is that number, if there is one, a float or an integer that float32, which layers have for numbers, holds exactly? */
bool onnx_is_exact_number(onnx_context *c, int input);
bool onnx_is_constant(const onnx_context *c, int input);
/* Is a parameter of the network among the inputs, which training reaches only if the node becomes layers? Not where the
 * output must be known when the model is made. */
bool onnx_has_trainable_input(const onnx_context *c);
/* Does the node pick rows of a weight of floats, which is to be done when the model is run
 * (sdlf_onnx_options.keep_rows)? */
bool onnx_keeps_rows(const onnx_context *c);
/* Input i, if it is constant, holds numbers of rows, `depth` for each place, of axes of these lengths: a failure where
 * there is no such row. */
void onnx_check_indices(onnx_context *c, int input, const int64_t *length, int64_t depth);
/* The shape of input i, constant or not. */
sdlf_shape onnx_shape(onnx_context *c, int input);

/* An axis that may count from the end; a failure where it is not in [-rank, rank). */
int onnx_axis(onnx_context *c, int64_t axis, int rank);

/* ---- layers ---- */

/* A layer of that class; its name is made from the node's. `options` is the class's struct or NULL. */
onnx_flow onnx_layer(onnx_context *c, const char *type, const void *options, const onnx_flow *inputs, int input_count);
/* Another output of the layer that made `flow`. */
onnx_flow onnx_layer_output(onnx_context *c, onnx_flow flow, int output);
/* The parameter of the layer that made `flow` is to hold these elements. */
void onnx_fill_with(onnx_context *c, onnx_flow flow, const char *parameter, onnx_fill fill);
/* trainable.c: is a weight of the file a parameter of the network? */
bool onnx_is_trainable(const onnx_import *import, const onnx_tensor *tensor);
/* A normalisation's scale or shift, which may be NULL; what is made up, all of it neutral (1 or 0), is not trained. */
void onnx_fill_scale(onnx_context *c, onnx_flow y, const char *parameter, const onnx_tensor *tensor, double neutral);
/* A constant as a layer of its own. */
onnx_flow onnx_constant_layer(onnx_context *c, const onnx_tensor *tensor);
/* One without elements, as an output of the graph: no other layer takes it. */
onnx_flow onnx_empty_output(onnx_context *c, const onnx_tensor *tensor);

/* add, sub, mul, ... of two operands that broadcast: the layer binary's functions; add of equal shapes is the layer
 * add. */
onnx_flow onnx_binary(onnx_context *c, const char *function, const onnx_flow *operands);
/* The same of a flow and a number. */
onnx_flow onnx_with_number(onnx_context *c, const char *function, onnx_flow x, double number);
/* Some axes of x folded (rank 0: all). */
onnx_flow onnx_reduce(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep);
/* x as another dtype; floats are all one. */
onnx_flow onnx_cast(onnx_context *c, onnx_flow x, sdlf_dtype dtype);
/* Integers of a byte, and bools, as floats, which hold them exactly; anything else as it is. */
onnx_flow onnx_small_as_float(onnx_context *c, onnx_flow x);

/* ---- the batch (batch.c) ---- */

/* Where the plan's batch lies in a value. */
typedef struct onnx_batch {
    int axis;       /* -1: nowhere */
    int64_t inside; /* elements of that axis in front of it, for a batch of 1: 3 in (3 N, ...), 1 in (N 3, ...); 0: the
                     * axis is as many times as long, and its samples stand in another order: (N + N, ...) */
} onnx_batch;
/* Find that for the outputs of a layer. False: out of memory. */
bool onnx_batch_note(onnx_import *import, int layer);
onnx_batch onnx_batch_of(const onnx_context *c, onnx_flow x);
int onnx_batch_axis(const onnx_context *c, onnx_flow x);
/* x under another shape, whose axis `axis` has the batch (-1: none); where that would mix samples, it is for the batch
 * that the model is made for and no other. */
onnx_flow onnx_reshape_batch(onnx_context *c, onnx_flow x, sdlf_shape shape, int axis);
/* The same where nobody says which axis that is, or where one is told that may be it (-1: none). */
onnx_flow onnx_reshape(onnx_context *c, onnx_flow x, sdlf_shape shape);
onnx_flow onnx_reshape_told(onnx_context *c, onnx_flow x, sdlf_shape shape, int told);
/* x, for the batch that the model is made for and no other: where an operator tells the samples of a batch apart. */
onnx_flow onnx_batch_fixed(onnx_context *c, onnx_flow x);

/* ---- operators ---- */

/* integers.c: are these int8, uint8, int32 or int64? */
bool onnx_is_integer(onnx_flow x);
/* Relu, Neg or Abs, as the node says. */
onnx_flow onnx_integer_function(onnx_context *c, onnx_flow x);
/* onnx_reduce of int32 or int64; means are cut off toward zero. */
onnx_flow onnx_reduce_integers(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep);
/* 1 where an element of int32 or int64 is the largest (or smallest) along the axis, else 0; as floats. */
onnx_flow onnx_equal_to_best(onnx_context *c, onnx_flow x, int axis, bool smallest);
/* fold_run.c: work the node out, all of whose inputs are constant. False: it could not be, and nothing was made. */
bool onnx_fold_by_running(onnx_context *c);
/* BatchNormalization with training_mode: by the statistics of the batch, with the running ones as outputs. */
void onnx_batch_norm_training(onnx_context *c);
/* How options name a dtype (0: floats), or -1: no layer makes it. */
int onnx_dtype_choice(sdlf_dtype dtype);
/* Axis i of the result is axis order[i] of x. */
onnx_flow onnx_transpose(onnx_context *c, onnx_flow x, const int *order);

/* ---- outputs ---- */

void onnx_give(onnx_context *c, int output, onnx_flow flow);
void onnx_give_constant(onnx_context *c, int output, const onnx_tensor *tensor);

/* A node behind this one that may be taken into it: of type `type`, the only reader of output 0, whose other input is
 * constant. That constant, or NULL. */
const onnx_tensor *onnx_constant_behind(onnx_context *c, const char *type, const Onnx__NodeProto **node);
/* Take it in: it is not converted any more, and its output is `flow`. */
void onnx_absorb(onnx_context *c, const Onnx__NodeProto *node, onnx_flow flow);

#endif
