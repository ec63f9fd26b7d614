/* SPDX-License-Identifier: MIT */
/* Model: a directed acyclic graph of layers with named parameters. It knows no batch size, no calculator, no memory
 * layout: those are a plan's. Nodes are added in topological order by construction.
 *
 * Threads: one thread at a time works on a model, and makes or frees plans of it; plans for inference that have been
 * made may run in several threads. Different models need no care.
 * Ownership: a model is the caller's (sdlf_model_free); what it is given is copied, and what it returns is its own
 * until it is changed or freed, unless a declaration says otherwise.
 * Errors: of functions with a status, in it, with a message (status.h); of those that append layers, kept in the model:
 * the first is what sdlf_model_status and whatever uses the model return. */
#ifndef SDLF_MODEL_H
#define SDLF_MODEL_H

#include <sdlf/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_model sdlf_model;

/* One output of one layer in a model. A value; index < 0 marks a node that could not be made. */
typedef struct sdlf_node {
    int layer; /* position of the layer in the model */
    int output;
} sdlf_node;

/* NULL only when memory is out; every function here accepts a NULL model and then reports SDLF_ERROR_MEMORY. The name
 * is copied. Free with sdlf_model_free (accepts NULL), after the plans made of it. */
sdlf_model *sdlf_model_create(const char *name);
void sdlf_model_free(sdlf_model *model);
const char *sdlf_model_name(const sdlf_model *model);

/* ---- building ---- */

/* An input of that shape, the batch left out. `name` is copied. */
sdlf_node sdlf_input(sdlf_model *model, const char *name, sdlf_dtype dtype, sdlf_shape shape);

/* An input that is a sparse square matrix over the batch: (N,N), the adjacency of a graph whose N nodes are the batch.
 * A plan is told which (sdlf_plan_options.constants), since the number of its elements is not the model's. */
sdlf_node sdlf_sparse_input(sdlf_model *model, const char *name);

/* Declare a result of the model. `name` is copied. SDLF_ERROR_ARGUMENT, kept in the model, while a plan of the model
 * exists: a plan has places for the outputs that it was made with. */
void sdlf_output(sdlf_model *model, const char *name, sdlf_node node);

/* How long output `name` is depends on what the model is given: it has the most elements along `axis` that there can
 * be, and those from the beginning on count of which output `length`, one int64, says how many. Both are outputs
 * already. sdlf_plan_trim leaves what counts. */
void sdlf_output_length(sdlf_model *model, const char *name, int axis, const char *length);

/* Forget the results declared so far, before others take their place: a model from a file gets another head so. A model
 * without any has its last layer's. The same error while a plan of the model exists. */
void sdlf_model_clear_outputs(sdlf_model *model);

/* Append a layer of any class. `options` (borrowed, copied) is the class's options struct or NULL for all defaults. */
sdlf_node sdlf_model_add(sdlf_model *model, const sdlf_layer_class *type, const void *options, const sdlf_node *inputs,
                         int input_count);

/* Layers added from now on say they come from `origin` ("net.json:14", copied; NULL: from nowhere). */
void sdlf_model_set_origin(sdlf_model *model, const char *origin);

/* The first error made while building; SDLF_OK if none. Sets the message. */
sdlf_status sdlf_model_status(const sdlf_model *model);

/* How a picture of another size becomes a sample: all of it, scaled, in the middle of black; its middle, in the
 * sample's proportions; or all of it stretched into these. */
typedef enum sdlf_fit { SDLF_FIT_WHOLE = 0, SDLF_FIT_CROP, SDLF_FIT_STRETCH } sdlf_fit;

/* How raw samples become the model's input: (x - mean) * scale. A trainer sets it from its data set; weights files
 * carry it, so that a prediction treats its pictures as training did. (0, 1) until set. */
typedef struct sdlf_normalization {
    float mean, scale;                   /* where channels.count is 0 */
    sdlf_channel_normalization channels; /* of inputs (N,C,H,W) */
    sdlf_fit fit;
    bool known;
} sdlf_normalization;
sdlf_normalization *sdlf_model_normalization(sdlf_model *model);

/* Names of the classes that the model tells apart, in the order of its scores; kept in weights files and in ONNX
 * exports. `names` (count of them, UTF-8) are copied; a count of 0 forgets them. Errors: SDLF_ERROR_ARGUMENT (a name
 * that is NULL), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_set_classes(sdlf_model *model, const char *const *names, int count);
int sdlf_model_class_count(const sdlf_model *model);                   /* names; 0: none are known */
const char *sdlf_model_class_name(const sdlf_model *model, int index); /* NULL: it has none */

/* What a model's outputs are compared with: classes, by the cross-entropy of their softmax; or float targets, by one of
 * the losses of <sdlf/layers/loss.h>: numbers (mse, mae, huber), or which of several labels hold, each 0 or 1
 * (bce_with_logits). */
typedef enum sdlf_loss {
    SDLF_LOSS_CROSS_ENTROPY = 0,
    SDLF_LOSS_MSE,
    SDLF_LOSS_MAE,
    SDLF_LOSS_HUBER,
    SDLF_LOSS_BCE,
    SDLF_LOSS_COUNT
} sdlf_loss;

/* Names in the order of the kinds, those of the layers ("cross_entropy" is softmax_cross_entropy), NULL-terminated. */
extern const char *const sdlf_loss_names[];

/* That of its first loss layer, or, where it has none, what sdlf_model_set_loss said: a trainer does, and weights files
 * keep it. */
sdlf_loss sdlf_model_loss(const sdlf_model *model);
/* SDLF_ERROR_ARGUMENT: it has a loss layer of another kind, or there is no such kind. */
sdlf_status sdlf_model_set_loss(sdlf_model *model, sdlf_loss loss);
/* The difference from which on huber is linear: of that layer, or what was set, or 1. Setting: SDLF_ERROR_ARGUMENT, it
 * is not from 1e-6 to 1e6. */
float sdlf_model_huber_delta(const sdlf_model *model);
sdlf_status sdlf_model_set_huber_delta(sdlf_model *model, float delta);

/* Give a classifier other classes: the layer that makes its scores, the last with parameters on the way to
 * output 0, gets as many units (fully_connected) or filters (conv2d), with parameters drawn from `seed`, which training
 * changes, also where it has that many; all other parameters keep their values. Names of classes are forgotten. The
 * model is built, without plans. Errors: SDLF_ERROR_UNSUPPORTED (it ends otherwise), SDLF_ERROR_SHAPE
 * (what follows takes no other number), SDLF_ERROR_ARGUMENT (not built, plans, fewer than 1 class), SDLF_ERROR_MEMORY;
 * the model is then only to be freed. */
sdlf_status sdlf_model_replace_head(sdlf_model *model, int classes, uint64_t seed);
/* The position of that layer; -1: it ends otherwise. */
int sdlf_model_head(const sdlf_model *model);

/* Infer every shape once (for a batch of 1), make the parameters and initialise them from `seed`. If it has not been
 * called, the first plan builds the model, from its own seed. Calling it again draws new parameters.
 *
 * A model that has been built, or came from a file, takes more layers: its parameters keep their values and optimizer
 * states, the model has to be built again, and then only the parameters of the layers that came after are drawn. (The
 * array of sdlf_parameter moves: pointers into it are no good then.) After a failure the parameters are as they were.
 * Errors: the first error of building, shapes that do not fit, memory; SDLF_ERROR_ARGUMENT while a plan of the model
 * exists (adding a layer is the same error then). */
sdlf_status sdlf_model_build(sdlf_model *model, uint64_t seed);

/* ---- looking ----
 * What is not there is NULL, 0, a node whose layer is -1, a scalar. */

int sdlf_model_layer_count(const sdlf_model *model);
const sdlf_layer *sdlf_model_layer(const sdlf_model *model, int index);
int sdlf_model_layer_input_count(const sdlf_model *model, int index);
sdlf_node sdlf_model_layer_input(const sdlf_model *model, int index, int input);

int sdlf_model_input_count(const sdlf_model *model);
sdlf_node sdlf_model_input(const sdlf_model *model, int index);
int sdlf_model_output_count(const sdlf_model *model);
sdlf_node sdlf_model_output(const sdlf_model *model, int index);
const char *sdlf_model_output_name(const sdlf_model *model, int index);
/* Are its samples tokens: does an embedding read an input, or another layer than a loss one of integers? Data sets are
 * not normalised for it. */
bool sdlf_model_takes_tokens(const sdlf_model *model);
/* Is it there to say how long another one is (sdlf_output_length)? */
bool sdlf_model_output_is_length(const sdlf_model *model, int index);

/* Shape of a node for a batch of 1, of a model that is built: by sdlf_model_build, or by the first plan of it. */
sdlf_shape sdlf_model_node_shape(const sdlf_model *model, sdlf_node node);

/* ---- parameters: of a model that is built ---- */

/* A parameter with its training state, in host memory that the model owns. */
typedef struct sdlf_parameter {
    char *name; /* "conv2d.weight" */
    sdlf_parameter_spec spec;
    int layer;            /* the layer it belongs to */
    sdlf_tensor value;    /* float32; absent (data is NULL) once a plan has taken it: take_parameters in plan.h */
    sdlf_tensor state[3]; /* the optimizer's, float32 with the value's shape; absent until training needs them */
} sdlf_parameter;

int sdlf_model_parameter_count(const sdlf_model *model);
sdlf_parameter *sdlf_model_parameter(sdlf_model *model, int index);
sdlf_parameter *sdlf_model_find_parameter(sdlf_model *model, const char *name);

/* Is parameter `index` one of those that `pattern` means: "conv2d.weight" one by its name, "conv2d.*" all whose names
 * begin so, "trunk" all but those of the layer that makes the scores (sdlf_model_head), "head" those? */
bool sdlf_model_parameter_matches(const sdlf_model *model, int index, const char *pattern);

/* Make state[0 .. count - 1] present and zero in every trainable parameter; more than `count` are freed. Present ones
 * are kept as they are. Errors: memory; SDLF_ERROR_ARGUMENT where one that would be freed may be in use by a training
 * plan. */
sdlf_status sdlf_model_require_states(sdlf_model *model, int count);

/* Freeze a parameter ("conv2d.weight"), so that training does not change it, or unfreeze it; also a value (sdlf_value)
 * of floats, whatever its options said. Files that carry the network keep that. Errors: SDLF_ERROR_ARGUMENT where the
 * model has no such parameter, or nothing trains it (running statistics, integers), and while a plan of the model
 * exists. */
sdlf_status sdlf_model_freeze(sdlf_model *model, const char *parameter, bool frozen);

/* Scalars in the model's parameters that training changes. */
int64_t sdlf_model_trainable_count(const sdlf_model *model);

/* A 32-bit check sum (CRC-32) of all parameter values in order: two runs that agree have equal ones. Values that a plan
 * has taken are left out: sdlf_model_status is an error then. */
uint32_t sdlf_model_hash(const sdlf_model *model);

#ifdef __cplusplus
}
#endif
#endif
