/* SPDX-License-Identifier: MIT */
/* From a model to an ONNX graph: what the writers of the single layers work with.
 *
 * A graph is made in memory, layer by layer in the model's order, of what its outputs depend on; weights stay where the
 * model has them. A layer's writer appends nodes: steps, whose results have names of their own, and at the end one node
 * that gives the layer's outputs. It chains calls without checking each: the first failure is kept, and what is called
 * after it does nothing. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_H
#define SDLF_FORMATS_ONNX_EXPORT_H

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/export/list.h"
#include "framework/formats/onnx/name_table.h"
#include "framework/formats/onnx/onnx.pb-c.h"
#include "framework/formats/onnx/tensor.h"
#include "framework/model_internal.h"

enum { EXPORT_FIRST_OPSET = 17, EXPORT_LAST_OPSET = 22 };

/* What the export knows of a layer of the model. */
typedef struct export_layer {
    bool live;                                 /* the graph's outputs depend on it */
    bool wanted[SDLF_MAX_LAYER_OUTPUTS];       /* somebody reads it */
    const char *value[SDLF_MAX_LAYER_OUTPUTS]; /* its name in the graph */
    sdlf_shape wide[SDLF_MAX_LAYER_OUTPUTS];   /* its shape for another batch than 1 */
} export_layer;

/* An output of the graph. */
typedef struct export_output {
    sdlf_node node;
    const char *name;
} export_output;

typedef struct onnx_export {
    const sdlf_model *model;
    onnx_arena arena;
    onnx_name_table names; /* of values and nodes: those that are taken */
    int opset;
    int needed_opset; /* a layer cannot be said in `opset`, but in this one; 0: all can */
    bool fixed_batch; /* the batch is 1 throughout: the network does not allow another */
    bool normalize;   /* the graph begins with the model's normalisation */
    export_layer *layer;
    export_output *output;
    int output_count;
    Onnx__GraphProto graph;
    export_list nodes, weights, inputs, outputs;
    export_list constants;   /* of the weights those that are no parameters: equal ones are one */
    int64_t parameter_count; /* elements of the model's parameters in it */
    const model_layer *now;  /* the layer that is being written */
    int position, steps;     /* its position, and how many steps it has so far */
    bool named;              /* one of these has its name */
    sdlf_status status;
} onnx_export;

typedef void export_writer(onnx_export *e);

/* The writer of a layer class; export_none, which refuses it, where layers/list.h names no other. */
export_writer *export_writer_of(const sdlf_layer_class *type);

/* ---- the export as a whole ---- */

/* Can it be exported at all, and is there such an opset? 0: any. */
sdlf_status export_check(const sdlf_model *model, int opset);
/* Make the graph in `opset`, or the lowest that will do (0). Release with export_release, also after a failure. */
sdlf_status export_run(onnx_export *e, const sdlf_model *model, int opset, bool normalize);
void export_release(onnx_export *e);
/* What depends on what, shapes for another batch, and names. */
sdlf_status export_prepare(onnx_export *e);
/* The graph's inputs and outputs. */
void export_inputs(onnx_export *e);
/* Sub and Mul between input 0 and what reads it. */
void export_normalization(onnx_export *e);
void export_outputs(onnx_export *e);
/* A pair of texts; the key is borrowed. NULL: no memory. */
Onnx__StringStringEntryProto *export_entry(onnx_export *e, const char *key, const char *value);
/* The graph has what the lists have by now. */
void export_collect(onnx_export *e);
/* The message around the graph, without metadata. `opset` and `opsets` are what it points to. */
Onnx__ModelProto export_message(onnx_export *e, Onnx__OperatorSetIdProto *opset, Onnx__OperatorSetIdProto *opsets[1]);
/* Write the graph. Fills in the bytes and the file beside it. */
sdlf_status export_write(onnx_export *e, const char *path, bool external, sdlf_onnx_exported *result);

/* ---- failing ---- */

/* Keep a failure, only the first: ONNX, or this opset of it, cannot say this layer. Layer and class are put before
 * it. */
void export_refuse(onnx_export *e, const char *format, ...) SDLF_PRINTF(2, 3);
/* `what` of the layer can be said from `opset` on. False: the graph is being made in an older one (and will be made
 * again). */
bool export_needs(onnx_export *e, int opset, const char *what);
/* ONNX can say the layer only for a batch of 1: the graph is made again for that. */
void export_needs_fixed_batch(onnx_export *e);
/* The same where one of x's sizes beside the first depends on the batch. */
void export_check_samples(onnx_export *e);
void export_no_memory(onnx_export *e);
bool export_ok(const onnx_export *e);

/* ---- the layer that is being written ---- */

const void *export_options(const onnx_export *e);
int export_in_count(const onnx_export *e);
const char *export_in(const onnx_export *e, int input); /* the name of a value that it reads */
sdlf_shape export_in_shape(const onnx_export *e, int input);
sdlf_dtype export_in_dtype(const onnx_export *e, int input);
sdlf_shape export_out_shape(const onnx_export *e);
/* Does this dimension of input i depend on the batch? */
bool export_varies(const onnx_export *e, int input, int axis);
/* An axis that may count from the end, of input 0. */
int export_axis(const onnx_export *e, int64_t axis);

/* ---- nodes ---- */

typedef enum export_attribute_type { EXPORT_INTEGER, EXPORT_INTEGERS, EXPORT_REAL, EXPORT_WORD } export_attribute_type;

typedef struct export_attribute {
    const char *name; /* NULL ends a list of them */
    export_attribute_type type;
    int64_t integer;
    sdlf_shape integers; /* any list of up to 8 */
    float real;
    const char *word;
} export_attribute;

export_attribute export_integer(const char *name, int64_t value);
export_attribute export_integers(const char *name, sdlf_shape values);
export_attribute export_pair(const char *name, const int values[2]);
export_attribute export_real(const char *name, float value);
export_attribute export_word(const char *name, const char *value);

/* The node that gives the layer's outputs. Inputs end with NULL; "" is one that is left out. Attributes may be NULL. */
void export_node(onnx_export *e, const char *type, const char *const *inputs, const export_attribute *attributes);
/* A node before it; the name of its one result. */
const char *export_step(onnx_export *e, const char *type, const char *const *inputs,
                        const export_attribute *attributes);
/* One that has the layer's name, instead of the node that gives the outputs. */
const char *export_main_step(onnx_export *e, const char *type, const char *const *inputs);
/* Of one or two inputs, without attributes. */
const char *export_step1(onnx_export *e, const char *type, const char *x);
const char *export_step2(onnx_export *e, const char *type, const char *a, const char *b);

/* Any node at the end of the graph. Text is borrowed for as long as the export. */
void export_append(onnx_export *e, const char *type, const char *name, const char *const *inputs,
                   const char *const *outputs, size_t output_count, const export_attribute *attributes);

/* A name for a value or node, `wanted` or something like it; NULL after a failure. */
const char *export_name(onnx_export *e, const char *wanted);

/* ---- weights: the names of values that are known ---- */

/* A parameter of the layer; NULL if it has none of that name, which ends a list of inputs. */
const char *export_parameter(onnx_export *e, const char *name);
/* The same elements as another type and under another shape. */
const char *export_parameter_as(onnx_export *e, const char *name, sdlf_dtype dtype, sdlf_shape shape);
/* Elements as a file has them, borrowed for as long as the export; the name is `wanted` or something like it. */
const char *export_initializer(onnx_export *e, const char *wanted, onnx_type type, sdlf_shape shape, const void *data);
/* Numbers that are no parameters: one, as a scalar; lists. Equal ones are one value. */
const char *export_number(onnx_export *e, double number, sdlf_dtype dtype);
const char *export_nothing(onnx_export *e, sdlf_dtype dtype, sdlf_shape shape); /* without elements */
const char *export_list_integers(onnx_export *e, const int64_t *numbers, int count);
const char *export_shape(onnx_export *e, sdlf_shape numbers);
const char *export_list_reals(onnx_export *e, const float *numbers, int count);
const char *export_reals(onnx_export *e, const float *numbers, sdlf_shape shape);

/* ---- the writers, and the classes that they are for ---- */

export_writer export_none;
#define SDLF_LAYER(class, writer)                                                                                      \
    extern const sdlf_layer_class class;                                                                               \
    export_writer writer;
#include "layers/list.h"
#undef SDLF_LAYER

#endif
