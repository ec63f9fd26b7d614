/* SPDX-License-Identifier: MIT */
/* Exports a model as a single C file: the interface between its parts.
 *
 * Every live layer emits its forward pass, as for a plan (c_lower.c), which gives a list of operations on values. The
 * file is written in this order: a description, the required kernels, the weights, and the function that runs the
 * network, with a call or a loop per operation. Kernels are copied verbatim from the files of kernels/. A value is in
 * an argument of the function, in an array of weights, or in one of the static arrays, one per element type, in which
 * values with disjoint lifetimes share memory. */
#ifndef SDLF_FORMATS_C_EXPORT_H
#define SDLF_FORMATS_C_EXPORT_H

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/atomic_file.h"
#include "framework/model_internal.h"

/* ---- values of the network ---- */

typedef enum c_place_kind { C_NOWHERE = 0, C_INPUT, C_OUTPUT, C_WEIGHTS, C_SCRATCH } c_place_kind;

/* An output of a layer, a parameter, or a tensor between a layer's operations. Tensors of operations refer to it by
 * their `buffer`; value 0 is none. */
typedef struct c_value {
    sdlf_dtype dtype;
    int64_t count;     /* elements; 0: there is no such value */
    int root;          /* the value whose memory it uses: itself, or another */
    int first, last;   /* of a root: the first step that writes it, the last that uses it; the number of steps if it is
                        * an output */
    bool read;         /* of a root: it has a reader */
    c_place_kind kind; /* of a root */
    int index;         /* of the argument, or of the parameter */
    int64_t offset;    /* in the scratch memory, in elements */
} c_value;

/* A layer. */
typedef struct c_state {
    bool live;
    int readers; /* layers, and outputs */
    int norm;    /* of a convolution or GEMM: the batch normalisation to fold into it; -1: none */
    bool folded; /* of a batch normalisation: it has been folded */
} c_state;

/* The name of a layer's array, or a candidate for it. */
typedef struct c_array {
    char name[128];
    int layer;
} c_array;

typedef struct c_step {
    sdlf_operation operation;
    int layer;
} c_step;

typedef struct c_export {
    const sdlf_model *model;
    const sdlf_c_export_options *options;
    sdlf_c_exported *result;
    c_state *state; /* by layer */
    c_array *array; /* of all live layers, sorted by name */
    int array_count;
    c_value *value;
    int value_count, value_capacity;
    c_step *step;
    int step_count, step_capacity;
    sdlf_node *output;
    const char **output_name;
    int output_count, input_count;
    int64_t scratch[SDLF_DTYPE_COUNT]; /* elements of each type */
    unsigned kernels;                  /* bit i: c_kernels[i] is called */
    bool dry;                          /* nothing is written: only determines what is called */
    atomic_file *file;
    char *bytes; /* buffered bytes of the file */
    size_t used;
    sdlf_status status; /* the first failure */
} c_export;

enum { C_BUFFER = 1 << 16 };

/* ---- passes, in this order ---- */

void c_choose_outputs(c_export *e); /* liveness, and folding */
void c_lower(c_export *e);          /* values and steps */
void c_lay_out(c_export *e);
void c_list_arrays(c_export *e); /* assigns array names */
void c_print_file(c_export *e);
void c_print_weights(c_export *e); /* part of c_print_file */
/* The number of values that c_print_weights prints. */
int64_t c_count_weights(const c_export *e);

/* ---- failing ---- */

bool c_ok(const c_export *e);
void c_refuse(c_export *e, int layer, const char *format, ...) SDLF_PRINTF(3, 4);
void c_no_memory(c_export *e);

/* ---- queries ---- */

const model_layer *c_at(const c_export *e, int layer);
sdlf_shape c_shape(const c_export *e, sdlf_node node);
bool c_is(const c_export *e, int layer, const char *type);
/* Finds a parameter by name; NULL: the layer has none. */
const sdlf_parameter *c_parameter(const c_export *e, int layer, const char *name);
/* The value of a layer's output, and of a parameter of the model. */
int c_output_value(sdlf_node node);
int c_parameter_value(const c_export *e, int parameter);
int c_root(const c_export *e, int value);
/* True if the tensor is all of its value, in order. */
bool c_is_whole(const c_export *e, const sdlf_tensor *tensor);

/* ---- printing ---- */

void c_print(c_export *e, const char *format, ...) SDLF_PRINTF(2, 3);
void c_write(c_export *e, const char *text, size_t size);
void c_flush(c_export *e);

/* A name, a number or a part of a statement. */
typedef struct c_name {
    char text[256];
} c_name;
/* Converts any name to an identifier. */
c_name c_identifier(const char *name);
/* A tensor's first element as an address, "scratch + 784", or "NULL" if it has no reader; offset by `index`, "n * 12";
 * and as an element, "scratch[784 + i]". */
c_name c_address(const c_export *e, const sdlf_tensor *tensor, const char *index);
c_name c_element(const c_export *e, const sdlf_tensor *tensor, const char *index);
/* The array of a layer's parameter. It includes the layer's number if names are ambiguous. */
c_name c_weights(const c_export *e, int layer, const char *parameter);
/* A float or integer as a C literal, exactly. */
c_name c_number(float value);
c_name c_integer(sdlf_dtype dtype, int64_t value);
/* A scalar of an operation, converted to that type. */
c_name c_constant(sdlf_dtype dtype, double value);
/* The name of an input or output of the function, and of a value's type. */
c_name c_argument(const c_export *e, bool input, int index);
const char *c_type(sdlf_dtype dtype);
const char *c_scratch_name(sdlf_dtype dtype);

/* ---- statements ---- */

/* Prints the statements of a step. */
void c_print_operation(c_export *e, const c_step *step);
/* True if this kind is supported; and if it is elementwise, so that its output may alias an input. */
bool c_supports(sdlf_operation_kind kind);
bool c_runs_in_place(sdlf_operation_kind kind);

/* Printers of the families, by file. */
void c_print_fill(c_export *e, const c_step *step);
void c_print_copy(c_export *e, const c_step *step);
void c_print_select(c_export *e, const c_step *step);
void c_print_activation(c_export *e, const c_step *step);
void c_print_binary(c_export *e, const c_step *step);
void c_print_sum(c_export *e, const c_step *step);
void c_print_reduce(c_export *e, const c_step *step);
void c_print_arg_reduce(c_export *e, const c_step *step);
void c_print_gather(c_export *e, const c_step *step);
void c_print_top_k(c_export *e, const c_step *step);
void c_print_resample(c_export *e, const c_step *step);

/* Loops over views of one shape. `index` of operand i, in terms of the loops' variables. */
enum { C_OPERANDS = 4 };
typedef struct c_loops {
    int depth; /* nesting of the statement inside, in units of four spaces */
    bool braces;
    char index[C_OPERANDS][128];
} c_loops;
/* Prints the heads of loops over all elements of `tensor`s, skipping absent ones. With `braces`, several statements may
 * follow; then call c_close. */
void c_open(c_export *e, c_loops *loops, const sdlf_tensor *const *tensor, int count, bool braces);
void c_close(c_export *e, const c_loops *loops);
/* The indentation of a statement inside. */
c_name c_indent(int depth);

/* ---- kernels ---- */

typedef struct c_kernel {
    const char *name;
    const unsigned char *text;
    unsigned size;
} c_kernel;
/* In the order in which they are written; ends with a row without a name. Generated from the files of kernels/. */
extern const c_kernel c_kernels[];
/* Marks a kernel as required by the file; c_uses returns whether it is. */
void c_use(c_export *e, const char *kernel);
bool c_uses(const c_export *e, const char *kernel);

#endif
