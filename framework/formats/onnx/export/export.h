/* SPDX-License-Identifier: MIT */
/* Conversion of a model to an ONNX graph: the interface for the writers of single layers.
 *
 * A graph is built in memory, layer by layer in the model's order, of the layers that its outputs depend on; weights
 * remain in the model. A layer's writer appends nodes: steps, whose results have their own names, and finally one node
 * that produces the layer's outputs. It chains calls without checking each: the first failure is kept, and later calls
 * do nothing. */
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

/* Export state of one layer of the model. */
typedef struct export_layer {
    bool live;                                 /* the graph's outputs depend on it */
    bool wanted[SDLF_MAX_LAYER_OUTPUTS];       /* it has a reader */
    const char *value[SDLF_MAX_LAYER_OUTPUTS]; /* its name in the graph */
    sdlf_shape wide[SDLF_MAX_LAYER_OUTPUTS];   /* its shape for a batch other than 1 */
} export_layer;

/* An output of the graph. */
typedef struct export_output {
    sdlf_node node;
    const char *name;
} export_output;

typedef struct onnx_export {
    const sdlf_model *model;
    onnx_arena arena;
    onnx_name_table names; /* of values and nodes: those in use */
    int opset;
    int needed_opset; /* the lowest opset that can express a layer which `opset` cannot; 0: none needed */
    bool fixed_batch; /* the batch is fixed to 1: the network does not allow another */
    bool normalize;   /* the graph begins with the model's normalisation */
    export_layer *layer;
    export_output *output;
    int output_count;
    Onnx__GraphProto graph;
    export_list nodes, weights, inputs, outputs;
    export_list constants;   /* of the weights, those that are no parameters: equal ones are shared */
    int64_t parameter_count; /* elements of the model's parameters in it */
    const model_layer *now;  /* the layer being written */
    int position, steps;     /* its position, and its number of steps so far */
    bool named;              /* one of these has its name */
    sdlf_status status;
} onnx_export;

typedef void export_writer(onnx_export *e);

/* The writer of a layer class; export_none, which rejects it, if layers/list.h names no other. */
export_writer *export_writer_of(const sdlf_layer_class *type);

/* ---- the export as a whole ---- */

/* Checks that the model can be exported, and that the opset exists; 0: any. */
sdlf_status export_check(const sdlf_model *model, int opset);
/* Builds the graph in `opset`, or the lowest that suffices (0). Release with export_release, also after a failure. */
sdlf_status export_run(onnx_export *e, const sdlf_model *model, int opset, bool normalize);
void export_release(onnx_export *e);
/* Determines dependencies, shapes for another batch, and names. */
sdlf_status export_prepare(onnx_export *e);
/* The graph's inputs and outputs. */
void export_inputs(onnx_export *e);
/* Sub and Mul between input 0 and its readers. */
void export_normalization(onnx_export *e);
void export_outputs(onnx_export *e);
/* A key-value entry; the key is borrowed. NULL: out of memory. */
Onnx__StringStringEntryProto *export_entry(onnx_export *e, const char *key, const char *value);
/* Sets the graph's arrays to the current lists. */
void export_collect(onnx_export *e);
/* The message around the graph, without metadata. `opset` and `opsets` are storage that it refers to. */
Onnx__ModelProto export_message(onnx_export *e, Onnx__OperatorSetIdProto *opset, Onnx__OperatorSetIdProto *opsets[1]);
/* Writes the graph. Fills in the bytes and the external file. */
sdlf_status export_write(onnx_export *e, const char *path, bool external, sdlf_onnx_exported *result);

/* ---- failing ---- */

/* Records a failure; only the first is kept: ONNX, or this opset, cannot express this layer. Layer and class are
 * prepended. */
void export_refuse(onnx_export *e, const char *format, ...) SDLF_PRINTF(2, 3);
/* States that `what` of the layer needs `opset`. False: the graph is being built for an older one (and will be
 * rebuilt). */
bool export_needs(onnx_export *e, int opset, const char *what);
/* ONNX can express the layer only for a batch of 1: the graph is rebuilt for that. */
void export_needs_fixed_batch(onnx_export *e);
/* The same if one of x's dimensions other than the first depends on the batch. */
void export_check_samples(onnx_export *e);
void export_no_memory(onnx_export *e);
bool export_ok(const onnx_export *e);

/* ---- the layer being written ---- */

const void *export_options(const onnx_export *e);
int export_in_count(const onnx_export *e);
const char *export_in(const onnx_export *e, int input); /* the name of a value that it reads */
sdlf_shape export_in_shape(const onnx_export *e, int input);
sdlf_dtype export_in_dtype(const onnx_export *e, int input);
sdlf_shape export_out_shape(const onnx_export *e);
/* True if this dimension of input i depends on the batch. */
bool export_varies(const onnx_export *e, int input, int axis);
/* Resolves an axis of input 0 that may count from the end. */
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

/* Appends the node that produces the layer's outputs. Inputs end with NULL; "" is omitted. Attributes may be NULL. */
void export_node(onnx_export *e, const char *type, const char *const *inputs, const export_attribute *attributes);
/* Appends a node before it; returns the name of its single result. */
const char *export_step(onnx_export *e, const char *type, const char *const *inputs,
                        const export_attribute *attributes);
/* A step that gets the layer's name, instead of the node that produces the outputs. */
const char *export_main_step(onnx_export *e, const char *type, const char *const *inputs);
/* Steps with one or two inputs, without attributes. */
const char *export_step1(onnx_export *e, const char *type, const char *x);
const char *export_step2(onnx_export *e, const char *type, const char *a, const char *b);

/* Appends any node to the graph. Text is borrowed for the lifetime of the export. */
void export_append(onnx_export *e, const char *type, const char *name, const char *const *inputs,
                   const char *const *outputs, size_t output_count, const export_attribute *attributes);

/* A unique name for a value or node, derived from `wanted`; NULL after a failure. */
const char *export_name(onnx_export *e, const char *wanted);

/* ---- weights: the names of initializers ---- */

/* A parameter of the layer; NULL if it has none of that name, which ends a list of inputs. */
const char *export_parameter(onnx_export *e, const char *name);
/* The same elements with another type and shape. */
const char *export_parameter_as(onnx_export *e, const char *name, sdlf_dtype dtype, sdlf_shape shape);
/* An initializer with elements in file format, borrowed as long as the export; the name is derived from `wanted`. */
const char *export_initializer(onnx_export *e, const char *wanted, onnx_type type, sdlf_shape shape, const void *data);
/* Constants that are no parameters: a scalar; lists. Equal ones are shared. */
const char *export_number(onnx_export *e, double number, sdlf_dtype dtype);
const char *export_nothing(onnx_export *e, sdlf_dtype dtype, sdlf_shape shape); /* without elements */
const char *export_list_integers(onnx_export *e, const int64_t *numbers, int count);
const char *export_shape(onnx_export *e, sdlf_shape numbers);
const char *export_list_reals(onnx_export *e, const float *numbers, int count);
const char *export_reals(onnx_export *e, const float *numbers, sdlf_shape shape);

/* ---- the writers, and their classes ---- */

export_writer export_none;
#define SDLF_LAYER(class, writer)                                                                                      \
    extern const sdlf_layer_class class;                                                                               \
    export_writer writer;
#include "layers/list.h"
#undef SDLF_LAYER

#endif
