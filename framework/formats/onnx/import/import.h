/* SPDX-License-Identifier: MIT */
/* Conversion of an ONNX graph to a model: the interface for the converters of single operators.
 *
 * The graph is traversed once, in file order. Every name in it is a value: either a constant, whose elements are
 * known during import (weights, and everything that can be computed from weights and shapes), or a flow, the
 * output of a layer. An operator whose inputs are all constant is folded (fold.c); every other one is converted to
 * layers.
 *
 * Converters chain calls without checking each: the first failure is kept in the node's context, and later calls
 * do nothing. */
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
    ONNX_UNMADE = 0, /* its producer has not been reached, or could not be converted */
    ONNX_CONSTANT,
    ONNX_FLOW,
} onnx_value_kind;

/* Marks an axis of which only the leading elements are valid (dynamic_length.h). */
typedef struct onnx_counted {
    bool is;
    int axis;
    onnx_flow length; /* the number of valid elements, an int64 scalar */
} onnx_counted;

typedef struct onnx_value {
    const char *name;
    onnx_value_kind kind;
    onnx_tensor tensor;   /* constant */
    onnx_flow flow;       /* flow; of a constant: its layer, once one was needed */
    int producer;         /* the node that produces it; -1: an input or an initializer */
    int readers;          /* nodes that read it, plus one for an output of the graph */
    int unread;           /* of these, the nodes not yet converted */
    int reader;           /* the last such node; -1: none */
    onnx_type narrow;     /* of a flow: the integer type that it holds in a larger one; ONNX_UNDEFINED: its own type */
    onnx_counted counted; /* of a flow */
    const int64_t *integers; /* of a constant: its elements, once needed as integers */
    bool is_weight;          /* a float initializer of the file */
    bool must_be_known;      /* its elements are needed during import */
    bool failed;             /* its producer could not be converted */
    bool is_output;          /* already an output of the model */
} onnx_value;

/* How the elements of a constant become those of a parameter. */
typedef struct onnx_fill {
    onnx_tensor tensor;
    int layer;
    const char *parameter; /* "weight" */
    float scale;           /* factor for every element; 0 counts as 1 */
    bool transpose;        /* the tensor (A,B) is the parameter's (B,A) */
    int64_t first;         /* first element of the tensor; with repeat: */
    int64_t
        block; /* not 0: the parameter has blocks of that many elements; its block i is the tensor's block order[i] */
    int order[4];
    bool repeat;  /* repeats the elements until the parameter is full */
    double value; /* if the tensor has type ONNX_UNDEFINED: the value of every element */
} onnx_fill;

typedef struct onnx_import {
    onnx_file *file;
    const sdlf_onnx_options *options;
    sdlf_model *model;
    sdlf_onnx_report *report; /* NULL: the first failure ends the import */
    onnx_name_table names;
    onnx_value *value;
    int value_count, value_capacity;
    onnx_name_table layers; /* names in use */
    onnx_fill *fill;
    int fill_count, fill_capacity;
    int64_t folded;          /* elements of computed constants */
    int64_t weights;         /* those derived from the file's weights, which are not counted in `folded` */
    int64_t elements_run;    /* elements used by folding through execution (fold_run.c) */
    int64_t weight_elements; /* of the file's weights: what bounds these three, see fold.h */
    bool batched;            /* the first dimension of an input is the batch, chosen by the plan */
    bool open_batch;         /* and the file does not fix it to 1 */
    bool takes_batch;        /* or it is options->batch */
    void *batches;           /* the batch axes of every layer's outputs (batch.c) */
    int batch_capacity;
    onnx_branch *branch; /* subgraphs of nodes */
    int branch_count;
    bool fills; /* parameters get their values: otherwise large constants are only outlined */
} onnx_import;

typedef struct onnx_operator onnx_operator;

/* The conversion of one node. */
typedef struct onnx_context {
    onnx_import *import;
    const Onnx__NodeProto *node;
    const onnx_operator *type;
    int position;
    int opset;
    onnx_value **input;  /* NULL: an omitted optional input */
    int input_count;     /* trailing omitted inputs do not count */
    onnx_value **output; /* NULL: an unused output */
    int output_count;
    int layers;       /* added so far */
    const char *name; /* of the next layer; NULL: the node's */
    sdlf_status status;
} onnx_context;

typedef void onnx_convert(onnx_context *c);

/* An operator: one row of a table. Rows of the same name differ in their opsets. */
struct onnx_operator {
    const char *type;
    int since, until; /* opsets, inclusive; until 0: still current */
    int minimum_inputs, maximum_inputs;
    unsigned known;         /* bit i: the elements of input i must be known during import */
    const char *attributes; /* " name name " that are supported; any other is rejected */
    onnx_convert *convert;  /* to layers; NULL: only folded */
    onnx_convert *fold;     /* with all inputs constant; NULL: constants become layers too */
    bool of_rows;           /* it selects rows of input 0: see onnx_keeps_rows */
    bool of_weights;        /* `fold` is for constants of any size, not only for small ones */
    bool from_first; /* unchanged since its introduction: allowed in a file with an opset below ONNX_FIRST_OPSET */
    bool of_shape;   /* `fold` uses only shapes: inputs need not be constant */
};

/* Tables, one per operator family; each ends with a row whose type is NULL. */
#define ONNX_OPERATORS(table) extern const onnx_operator table[];
#include "framework/formats/onnx/import/list.h"
#undef ONNX_OPERATORS

/* The row for that name and opset; NULL: none. `other` gives the reason: a row of that name for other opsets. */
const onnx_operator *onnx_operator_find(const char *type, int opset, const onnx_operator **other);
/* The row for that node; operators of other domains are named like "ai.onnx.ml.Scaler". */
const onnx_operator *onnx_operator_of(const Onnx__NodeProto *node, int opset, const onnx_operator **other);
/* Row `index` of all tables; NULL past the end. */
const onnx_operator *onnx_operator_at(int index);

enum { ONNX_FIRST_OPSET = 7, ONNX_LAST_OPSET = 28 };

/* ---- the import as a whole ---- */

/* Creates a model from the file. With `report`: continues after failures and collects them; *model is then NULL if
 * there are any. Parameters are described, and filled only if `fill`; with options->leave_weights, not even then. */
sdlf_status onnx_import_run(sdlf_model **model, onnx_file *file, const sdlf_onnx_options *options,
                            sdlf_onnx_report *report, bool fill);
/* Allocates the model's parameters and stores the recorded values. */
sdlf_status onnx_fill_parameters(onnx_import *import);
/* Leaves the values in the file instead; the model takes ownership of the file, which is from malloc. */
sdlf_status onnx_defer_parameters(onnx_import *import);
/* Adds the inputs of the graph as layers. */
sdlf_status onnx_import_inputs(onnx_import *import);
/* The value of that name, created if new; NULL when out of memory. */
onnx_value *onnx_value_named(onnx_import *import, const char *name);

/* node.c: converts node `position` to layers or constants. A failure goes to the report; without one it ends the
 * import. */
sdlf_status onnx_import_node(onnx_import *import, int position);
/* The same for a node inside node `position`; its failure is that node's. */
sdlf_status onnx_import_inner(onnx_import *import, const Onnx__NodeProto *node, int position);

/* open_batch.c: if the node failed for a batch of 1, which the file leaves open, and another one may be meant, adds how
 * to set it to the message. Returns the status. */
sdlf_status onnx_open_batch_say(onnx_context *c, sdlf_status status);

/* control_flow.c: reads the subgraphs of nodes; counts their names; and keeps alive the values that they read. False:
 * out of memory. */
sdlf_status onnx_branches_read(onnx_import *import);
size_t onnx_branches_names(const onnx_import *import);
bool onnx_branches_link(onnx_import *import);
/* True if its operator is in the standard domain. */
bool onnx_is_standard(const Onnx__NodeProto *node);

/* narrow_integers.c: rejects integers that SDLF computes in larger types if the operator could leave their range; and
 * after conversion, propagates their type to the outputs. */
onnx_type onnx_narrow_check(onnx_context *c);
void onnx_narrow_outputs(onnx_context *c, onnx_type type);
/* The narrow type of input i. */
onnx_type onnx_narrow_input(const onnx_context *c, int input);

/* ---- failing ---- */

/* Records a failure; only the first is kept. Unsupported: a limitation of SDLF; wrong: the file is invalid. */
void onnx_unsupported(onnx_context *c, const char *format, ...) SDLF_PRINTF(2, 3);
void onnx_wrong(onnx_context *c, const char *format, ...) SDLF_PRINTF(2, 3);
void onnx_no_memory(onnx_context *c);
bool onnx_ok(const onnx_context *c);

/* ---- attributes; a type other than the requested one is a failure ---- */

bool onnx_has_attribute(onnx_context *c, const char *name);
int64_t onnx_integer(onnx_context *c, const char *name, int64_t fallback);
/* 0 or 1; any other number is a failure, since programs interpret it differently. */
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
/* Input i's elements, never NULL: after a failure an empty tensor. */
const onnx_tensor *onnx_known(onnx_context *c, int input);
onnx_list onnx_known_integers(onnx_context *c, int input);
double onnx_known_number(onnx_context *c, int input, double fallback);
/* True if that number, if present, is a float, or an integer that is exact in float32, the type of layers' scalars. */
bool onnx_is_exact_number(onnx_context *c, int input);
bool onnx_is_constant(const onnx_context *c, int input);
/* True if an input is a parameter of the network, which training reaches only if the node becomes layers; false if the
 * output must be known during import. */
bool onnx_has_trainable_input(const onnx_context *c);
/* True if the node selects rows of a float weight, and that should happen at run time
 * (sdlf_onnx_options.keep_rows). */
bool onnx_keeps_rows(const onnx_context *c);
/* If input i is constant: checks its index rows, `depth` indices per position, against these axis lengths, and fails if
 * one is out of range. */
void onnx_check_indices(onnx_context *c, int input, const int64_t *length, int64_t depth);
/* The shape of input i, constant or not. */
sdlf_shape onnx_shape(onnx_context *c, int input);

/* Resolves an axis that may count from the end; fails if it is not in [-rank, rank). */
int onnx_axis(onnx_context *c, int64_t axis, int rank);

/* ---- layers ---- */

/* Adds a layer of that class, named after the node. `options` is the class's struct or NULL. */
onnx_flow onnx_layer(onnx_context *c, const char *type, const void *options, const onnx_flow *inputs, int input_count);
/* Another output of the layer that produced `flow`. */
onnx_flow onnx_layer_output(onnx_context *c, onnx_flow flow, int output);
/* Fills the parameter of the layer that produced `flow` with these elements. */
void onnx_fill_with(onnx_context *c, onnx_flow flow, const char *parameter, onnx_fill fill);
/* trainable.c: true if a weight of the file is a parameter of the network. */
bool onnx_is_trainable(const onnx_import *import, const onnx_tensor *tensor);
/* Fills a normalisation's scale or shift; NULL: filled with the neutral value (1 or 0), which is not trained. */
void onnx_fill_scale(onnx_context *c, onnx_flow y, const char *parameter, const onnx_tensor *tensor, double neutral);
/* Adds a constant as a layer of its own. */
onnx_flow onnx_constant_layer(onnx_context *c, const onnx_tensor *tensor);
/* An empty constant as an output of the graph: no other layer accepts it. */
onnx_flow onnx_empty_output(onnx_context *c, const onnx_tensor *tensor);

/* add, sub, mul, ... of two operands that broadcast: the functions of the layer binary; add of equal shapes is the
 * layer add. */
onnx_flow onnx_binary(onnx_context *c, const char *function, const onnx_flow *operands);
/* The same for a flow and a scalar. */
onnx_flow onnx_with_number(onnx_context *c, const char *function, onnx_flow x, double number);
/* Reduces some axes of x (rank 0: all). */
onnx_flow onnx_reduce(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep);
/* x as another dtype; all float types are one. */
onnx_flow onnx_cast(onnx_context *c, onnx_flow x, sdlf_dtype dtype);
/* 8-bit integers and bools as floats, which hold them exactly; other types are unchanged. */
onnx_flow onnx_small_as_float(onnx_context *c, onnx_flow x);

/* ---- the batch (batch.c) ---- */

/* The location of the plan's batch in a value. */
typedef struct onnx_batch {
    int axis;       /* -1: nowhere */
    int64_t inside; /* elements of that axis that precede the batch, for a batch of 1: 3 in (3 N, ...), 1 in (N 3, ...);
                     * 0: the axis scales with the batch, but its samples are in another order: (N + N, ...) */
} onnx_batch;
/* Determines that for the outputs of a layer. False: out of memory. */
bool onnx_batch_note(onnx_import *import, int layer);
onnx_batch onnx_batch_of(const onnx_context *c, onnx_flow x);
int onnx_batch_axis(const onnx_context *c, onnx_flow x);
/* Reshapes x so that axis `axis` has the batch (-1: none); if that would mix samples, the result is fixed to the batch
 * that the model is made for. */
onnx_flow onnx_reshape_batch(onnx_context *c, onnx_flow x, sdlf_shape shape, int axis);
/* The same where the batch axis is inferred, or where a candidate for it is given (-1: none). */
onnx_flow onnx_reshape(onnx_context *c, onnx_flow x, sdlf_shape shape);
onnx_flow onnx_reshape_told(onnx_context *c, onnx_flow x, sdlf_shape shape, int told);
/* x, fixed to the batch that the model is made for: for operators that treat the samples of a batch differently. */
onnx_flow onnx_batch_fixed(onnx_context *c, onnx_flow x);

/* ---- operators ---- */

/* integers.c: true for int8, uint8, int32 or int64. */
bool onnx_is_integer(onnx_flow x);
/* Relu, Neg or Abs, depending on the node. */
onnx_flow onnx_integer_function(onnx_context *c, onnx_flow x);
/* onnx_reduce of int32 or int64; means round toward zero. */
onnx_flow onnx_reduce_integers(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep);
/* 1 where an element of int32 or int64 is the largest (or smallest) along the axis, else 0; as floats. */
onnx_flow onnx_equal_to_best(onnx_context *c, onnx_flow x, int axis, bool smallest);
/* fold_run.c: folds the node, whose inputs are all constant, by executing it. False: impossible; nothing created. */
bool onnx_fold_by_running(onnx_context *c);
/* BatchNormalization with training_mode: with the statistics of the batch, and the running ones as outputs. */
void onnx_batch_norm_training(onnx_context *c);
/* The number of a dtype in options (0: floats), or -1: no layer produces it. */
int onnx_dtype_choice(sdlf_dtype dtype);
/* Axis i of the result is axis order[i] of x. */
onnx_flow onnx_transpose(onnx_context *c, onnx_flow x, const int *order);

/* ---- outputs ---- */

void onnx_set_output(onnx_context *c, int output, onnx_flow flow);
void onnx_set_output_constant(onnx_context *c, int output, const onnx_tensor *tensor);

/* The next node, if it can be fused into this one: of type `type`, the only reader of output 0, with a constant as its
 * other input. Returns that constant, or NULL. */
const onnx_tensor *onnx_constant_behind(onnx_context *c, const char *type, const Onnx__NodeProto **node);
/* Absorbs that node: it is not converted, and its output is `flow`. */
void onnx_absorb(onnx_context *c, const Onnx__NodeProto *node, onnx_flow flow);

#endif
