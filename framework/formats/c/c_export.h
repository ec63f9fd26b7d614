/* From a model to one file of C: what its parts work with.
 *
 * The file is written in the order: what it is, the kernels that it needs, the weights, and the function that runs the network,
 * a call or a loop for each layer. Kernels are the files of kernels/, taken in as they stand. A value of the network lies in
 * an argument of the function or in one static array, in which values that are not needed at the same time share memory. */
#ifndef SDLF_FORMATS_C_EXPORT_H
#define SDLF_FORMATS_C_EXPORT_H

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/atomic_file.h"
#include "framework/model_internal.h"

/* Where a value lies. */
typedef enum c_place_kind { C_NOWHERE = 0, C_INPUT, C_OUTPUT, C_SCRATCH } c_place_kind;

typedef struct c_value {
    bool live;
    int root;          /* the layer whose memory it is: itself, or one before it */
    int last;          /* of a root: the last layer that reads it; the number of layers if it is an output */
    int readers;       /* layers, and outputs */
    c_place_kind kind; /* of a root */
    int index;         /* of the argument */
    int64_t offset;    /* in the scratch memory, in elements */
    int64_t count;
    int norm;    /* of a convolution or product: the batch normalisation that is folded into it; -1: none */
    bool folded; /* of a batch normalisation: it is */
} c_value;

typedef struct c_export {
    const sdlf_model *model;
    const sdlf_c_export_options *options;
    sdlf_c_exported *result;
    c_value *value; /* by layer */
    sdlf_node *output;
    const char **output_name;
    int output_count, input_count;
    int64_t scratch; /* elements */
    atomic_file *file;
    char *bytes; /* of the file that are not written yet */
    size_t used;
    sdlf_status status; /* the first failure */
} c_export;

enum { C_BUFFER = 1 << 16 };

/* What is known of a layer class. */
typedef struct c_layer {
    const char *type;
    const char *kernels[2];                /* names; NULL: none */
    void (*check)(c_export *e, int layer); /* c_refuse; NULL: nothing to refuse */
    void (*print)(c_export *e, int layer); /* its statements; NULL: it does nothing, its output is its input */
    bool over_input;                       /* it may write over its first input */
} c_layer;
const c_layer *c_layer_find(const char *type);

/* ---- passes, in this order ---- */

void c_choose_outputs(c_export *e); /* liveness, and what is folded */
void c_check_layers(c_export *e);
void c_lay_out(c_export *e);
void c_print_file(c_export *e);
void c_print_weights(c_export *e); /* a part of it */
/* Numbers that c_print_weights prints. */
int64_t c_count_weights(const c_export *e);

/* ---- failing ---- */

bool c_ok(const c_export *e);
void c_refuse(c_export *e, int layer, const char *format, ...) SDLF_PRINTF(3, 4);
void c_no_memory(c_export *e);

/* ---- looking ---- */

const model_layer *c_at(const c_export *e, int layer);
sdlf_shape c_in_shape(const c_export *e, int layer, int input);
sdlf_shape c_out_shape(const c_export *e, int layer);
const sdlf_parameter *c_parameter(const c_export *e, int layer, const char *name);

/* ---- printing ---- */

void c_print(c_export *e, const char *format, ...) SDLF_PRINTF(2, 3);
void c_write(c_export *e, const char *text, size_t size);
void c_flush(c_export *e);

/* Any name as an identifier. */
typedef struct c_name {
    char text[160];
} c_name;
c_name c_identifier(const char *name);
/* A value as an expression, "scratch + 784"; input i of a layer, and its output. */
c_name c_in(const c_export *e, int layer, int input);
c_name c_out(const c_export *e, int layer);
/* Element i of them, "scratch[784 + i]". */
c_name c_in_element(const c_export *e, int layer, int input);
c_name c_out_element(const c_export *e, int layer);
/* The array of a layer's parameter. Layers' numbers are in it where names alone would not tell them apart. */
c_name c_weights(const c_export *e, int layer, const char *parameter);
/* A number as C has it, of float, exactly. */
c_name c_number(float value);
/* The name of an input or output of the function. */
c_name c_argument(const c_export *e, bool input, int index);

/* ---- kernels ---- */

typedef struct c_kernel {
    const char *name;
    const unsigned char *text;
    unsigned size;
} c_kernel;
/* In the order in which they are written; ends with a row without name. Made of the files of kernels/. */
extern const c_kernel c_kernels[];

#endif
