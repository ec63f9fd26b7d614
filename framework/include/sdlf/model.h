/* SPDX-License-Identifier: MIT */
/* Model: a directed acyclic graph of layers with named parameters. It has no batch size, calculator or memory layout;
 * those belong to a plan. Layers are appended after their inputs, so they are always in topological order.
 *
 * Threads: one thread at a time may change a model and create or free plans of it; existing inference plans may run in
 * several threads. Different models are independent.
 * Ownership: a model is the caller's (sdlf_model_free). Arguments are copied; returned pointers belong to the model and
 * stay valid until it is changed or freed, unless a declaration says otherwise.
 * Errors: functions that return a status leave a message (status.h). Functions that append layers record the error in
 * the model; sdlf_model_status, and every function that uses the model, returns the first one. */
#ifndef SDLF_MODEL_H
#define SDLF_MODEL_H

#include <sdlf/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_model sdlf_model;

/* One output of one layer in a model. A value; layer < 0 marks a node that could not be created. */
typedef struct sdlf_node {
    int layer; /* position of the layer in the model */
    int output;
} sdlf_node;

/* Create an empty model. `name` is copied. Returns NULL only when memory is out; every function here accepts a NULL
 * model and then reports SDLF_ERROR_MEMORY. Free with sdlf_model_free (accepts NULL), after all plans of the model. */
sdlf_model *sdlf_model_create(const char *name);
void sdlf_model_free(sdlf_model *model);
const char *sdlf_model_name(const sdlf_model *model);

/* ---- building ---- */

/* Add an input. `shape` is that of one sample, without the batch. `name` is copied. */
sdlf_node sdlf_input(sdlf_model *model, const char *name, sdlf_dtype dtype, sdlf_shape shape);

/* Add an input that is a sparse square matrix (N,N), the adjacency of a graph whose N nodes are the batch. The matrix
 * is given to a plan (sdlf_plan_options.constants): the model does not fix how many elements it stores. */
sdlf_node sdlf_sparse_input(sdlf_model *model, const char *name);

/* Declare an output of the model. `name` is copied. Error, recorded in the model: SDLF_ERROR_ARGUMENT while a plan of
 * the model exists, since a plan has memory only for the outputs that it was created with. */
void sdlf_output(sdlf_model *model, const char *name, sdlf_node node);

/* Declare that the length of output `name` along `axis` depends on the data. The output is always allocated at its
 * maximum length; only its leading elements are valid, and output `length`, one int64, holds their count. Both outputs
 * must already be declared. sdlf_plan_trim keeps only the valid elements. */
void sdlf_output_length(sdlf_model *model, const char *name, int axis, const char *length);

/* Remove all declared outputs so that others can be declared, for example to give a model read from a file another
 * head. A model without declared outputs returns that of its last layer. Error: as for sdlf_output. */
void sdlf_model_clear_outputs(sdlf_model *model);

/* Append a layer of any class. `options` (borrowed, copied) is the class's options struct, or NULL for the defaults. */
sdlf_node sdlf_model_add(sdlf_model *model, const sdlf_layer_class *type, const void *options, const sdlf_node *inputs,
                         int input_count);

/* Set the origin recorded in layers that are added from now on ("net.json:14"; copied). NULL: none. */
void sdlf_model_set_origin(sdlf_model *model, const char *origin);

/* Returns the first error that occurred while building, or SDLF_OK, and sets its message. */
sdlf_status sdlf_model_status(const sdlf_model *model);

/* How an image of another size becomes a sample: the whole image, scaled and centred on black; its centre, cropped to
 * the sample's aspect ratio; or the whole image, stretched to the sample's size. */
typedef enum sdlf_fit { SDLF_FIT_WHOLE = 0, SDLF_FIT_CROP, SDLF_FIT_STRETCH } sdlf_fit;

/* How raw samples become the model's input: (x - mean) * scale. A trainer sets it from its data set, and weights files
 * store it, so that inference preprocesses images as training did. (0, 1) until set. */
typedef struct sdlf_normalization {
    float mean, scale;                   /* where channels.count is 0 */
    sdlf_channel_normalization channels; /* of inputs (N,C,H,W) */
    sdlf_fit fit;
    bool known;
} sdlf_normalization;
sdlf_normalization *sdlf_model_normalization(sdlf_model *model);

/* Set the names of the classes, in the order of the model's scores; weights files and ONNX exports store them. `names`
 * (`count` UTF-8 strings) is copied; a count of 0 removes all names. Errors: SDLF_ERROR_ARGUMENT (a name is NULL),
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_set_classes(sdlf_model *model, const char *const *names, int count);
int sdlf_model_class_count(const sdlf_model *model);                   /* number of names; 0: unknown */
const char *sdlf_model_class_name(const sdlf_model *model, int index); /* NULL: no such name */

/* The loss that compares a model's output with its targets: cross-entropy of the softmax for classes, or a loss of
 * <sdlf/layers/loss.h> for float targets: regression (mse, mae, huber), or independent labels that are each 0 or 1
 * (bce_with_logits). */
typedef enum sdlf_loss {
    SDLF_LOSS_CROSS_ENTROPY = 0,
    SDLF_LOSS_MSE,
    SDLF_LOSS_MAE,
    SDLF_LOSS_HUBER,
    SDLF_LOSS_BCE,
    SDLF_LOSS_COUNT
} sdlf_loss;

/* Names of the losses in enum order, NULL-terminated; as the layers' ("cross_entropy" is softmax_cross_entropy). */
extern const char *const sdlf_loss_names[];

/* The loss of the model's first loss layer or, if it has none, the one set by sdlf_model_set_loss. A trainer sets it,
 * and weights files store it. */
sdlf_loss sdlf_model_loss(const sdlf_model *model);
/* Errors: SDLF_ERROR_ARGUMENT if the model has a loss layer of another kind, or `loss` is out of range. */
sdlf_status sdlf_model_set_loss(sdlf_model *model, sdlf_loss loss);
/* The absolute difference beyond which the Huber loss is linear: the loss layer's, else the value that was set, else 1.
 * Setting it fails with SDLF_ERROR_ARGUMENT outside 1e-6 to 1e6. */
float sdlf_model_huber_delta(const sdlf_model *model);
sdlf_status sdlf_model_set_huber_delta(sdlf_model *model, float delta);

/* Give a classifier another number of classes. The head, the last layer with parameters on the path to output 0, gets
 * `classes` units (fully_connected) or filters (conv2d), and trainable parameters newly drawn from `seed`, even if it
 * already has that many. All other parameters keep their values; class names are removed. The model must be built and
 * have no plans. Errors: SDLF_ERROR_UNSUPPORTED (the model has no such head), SDLF_ERROR_SHAPE (a later layer does not
 * accept the new size), SDLF_ERROR_ARGUMENT (not built, plans exist, or classes < 1), SDLF_ERROR_MEMORY. After an error
 * the model can only be freed. */
sdlf_status sdlf_model_replace_head(sdlf_model *model, int classes, uint64_t seed);
/* The index of the head layer; -1 if the model does not end in one. */
int sdlf_model_head(const sdlf_model *model);

/* Infer all shapes once (for a batch of 1), create the parameters and initialise them from `seed`. If this has not been
 * called, the first plan builds the model from its own seed. Calling it again draws new parameters.
 *
 * Layers can be appended to a model that has been built or read from a file. Its parameters keep their values and
 * optimizer states; the model must be built again, and only the parameters of the new layers are drawn. (The array of
 * sdlf_parameter moves, so pointers into it become invalid.) After a failure the parameters are unchanged. Errors: the
 * first error of building, shapes that do not fit, memory; SDLF_ERROR_ARGUMENT while a plan of the model exists (which
 * also holds for appending a layer). */
sdlf_status sdlf_model_build(sdlf_model *model, uint64_t seed);

/* ---- looking ----
 * For an index out of range these return NULL, 0, a node whose layer is -1, or a scalar shape. */

int sdlf_model_layer_count(const sdlf_model *model);
const sdlf_layer *sdlf_model_layer(const sdlf_model *model, int index);
int sdlf_model_layer_input_count(const sdlf_model *model, int index);
sdlf_node sdlf_model_layer_input(const sdlf_model *model, int index, int input);

int sdlf_model_input_count(const sdlf_model *model);
sdlf_node sdlf_model_input(const sdlf_model *model, int index);
int sdlf_model_output_count(const sdlf_model *model);
sdlf_node sdlf_model_output(const sdlf_model *model, int index);
const char *sdlf_model_output_name(const sdlf_model *model, int index);
/* True if the model's samples are tokens: an embedding reads a model input, or a layer other than a loss reads an
 * integer one. Data sets are not normalised for such a model. */
bool sdlf_model_takes_tokens(const sdlf_model *model);
/* True if the output holds the length of another output (sdlf_output_length). */
bool sdlf_model_output_is_length(const sdlf_model *model, int index);

/* The shape of a node for a batch of 1. The model must be built, by sdlf_model_build or by its first plan. */
sdlf_shape sdlf_model_node_shape(const sdlf_model *model, sdlf_node node);

/* ---- parameters: of a model that is built ---- */

/* A parameter with its training state, in host memory that the model owns. */
typedef struct sdlf_parameter {
    char *name; /* "conv2d.weight" */
    sdlf_parameter_spec spec;
    int layer;            /* the layer it belongs to */
    sdlf_tensor value;    /* float32; absent (data is NULL) once a plan has taken it: consume_parameters in plan.h */
    sdlf_tensor state[3]; /* optimizer state, float32, shaped like the value; absent until training needs it */
} sdlf_parameter;

int sdlf_model_parameter_count(const sdlf_model *model);
sdlf_parameter *sdlf_model_parameter(sdlf_model *model, int index);
sdlf_parameter *sdlf_model_find_parameter(sdlf_model *model, const char *name);

/* True if `pattern` covers parameter `index`: "conv2d.weight" matches that name, "conv2d.*" all names with that prefix,
 * "head" the parameters of the head layer (sdlf_model_head), "trunk" all others. */
bool sdlf_model_parameter_matches(const sdlf_model *model, int index, const char *pattern);

/* Ensure that every trainable parameter has state[0 .. count - 1]. Existing states keep their values, new ones are
 * zero, and those from `count` on are freed. Errors: memory; SDLF_ERROR_ARGUMENT if a state that would be freed may be
 * in use by a training plan. */
sdlf_status sdlf_model_require_states(sdlf_model *model, int count);

/* Freeze a parameter ("conv2d.weight"), so that training does not change it, or unfreeze it. This also applies to a
 * floating-point value (sdlf_value), overriding its options. Files that store the network store this. Errors:
 * SDLF_ERROR_ARGUMENT if there is no such parameter, if it cannot be trained (running statistics, integers), or while a
 * plan of the model exists. */
sdlf_status sdlf_model_freeze(sdlf_model *model, const char *parameter, bool frozen);

/* The number of scalar parameters that training changes. */
int64_t sdlf_model_trainable_count(const sdlf_model *model);

/* A CRC-32 checksum of all parameter values in order, to compare two runs. Values that a plan has taken are left out;
 * sdlf_model_status then returns an error. */
uint32_t sdlf_model_hash(const sdlf_model *model);

#ifdef __cplusplus
}
#endif
#endif
