/* SPDX-License-Identifier: MIT */
/* Internal structures of a model, for the model, the plan and the formats. */
#ifndef SDLF_FRAMEWORK_MODEL_INTERNAL_H
#define SDLF_FRAMEWORK_MODEL_INTERNAL_H

#include <stdatomic.h>

#include <sdlf/formats.h>
#include <sdlf/model.h>

/* A batch size that does not occur in a network's shapes by chance: a dimension that differs from that of a batch of 1
 * depends on the batch. */
enum { MODEL_OTHER_BATCH = 1009 };

/* One layer of the graph. Outputs are known after model_infer, parameters after sdlf_model_build. */
typedef struct model_layer {
    sdlf_layer layer; /* name, origin and options are owned */
    sdlf_node *inputs;
    int input_count;
    int output_count;
    sdlf_shape output_shape[SDLF_MAX_LAYER_OUTPUTS]; /* for a batch of 1 */
    sdlf_dtype output_dtype[SDLF_MAX_LAYER_OUTPUTS];
    bool output_sparse[SDLF_MAX_LAYER_OUTPUTS];
    int first_parameter, parameter_count;
    char *frozen;    /* " weight bias ": parameters that the user froze, though trainable; NULL: none. Owned */
    int next_number; /* where the search for a free N in "NAME_N" begins, for this layer's name; 0: at 2 */
} model_layer;

/* A hash table of layer names: slots hold a layer's index + 1, or 0. Linear probing. */
typedef struct model_names {
    int *layer;
    int capacity; /* a power of 2, at least twice the layers; 0: no memory yet */
} model_names;

typedef struct model_output {
    char *name;
    sdlf_node node;
    int length, axis; /* output with the number of valid elements along the axis; -1: all are valid */
} model_output;

/* Reads parameter values that were left in a file; implemented by whoever opened the file. */
typedef struct model_source {
    /* Reads values first .. first + count - 1 of a parameter. */
    sdlf_status (*read)(void *file, int parameter, int64_t first, int64_t count, float *values);
    bool (*in_pieces)(const void *file, int parameter); /* false: only all values at once */
    /* For a parameter (units, inputs) that the file stores as integers with scales: how many inputs share a scale; 0:
     * the file stores no such integers. */
    int64_t (*shared_scale)(const void *file, int parameter);
    void (*close)(void *file);
    void *file; /* NULL: every parameter has its values */
} model_source;

/* Names of the classes that the network predicts, owned. */
typedef struct model_classes {
    char **name;
    int count;
} model_classes;

struct sdlf_model {
    char *name;
    char *origin; /* of the layers that are added next */
    model_layer *layers;
    int layer_count, layer_capacity;
    model_names names;
    model_output *outputs;
    int output_count;
    sdlf_parameter *parameters;
    int parameter_count, parameter_capacity;
    int described;                 /* number of layers, from the first, whose parameters are listed */
    atomic_uint_least64_t changes; /* how often the library has changed parameter values, here or on a device */
    int shard, shards;             /* which of several parts of the optimizer states a training has here; 0, 0: whole */
    int users, state_users;        /* plans that hold addresses of the parameters; those of them that update them */
    bool built;
    model_source source;
    bool given_away;    /* to a plan that takes the parameter values; status is an error then */
    sdlf_status status; /* the first error made while building, and its message */
    char *message;
    sdlf_normalization normalization;
    model_classes classes;
    sdlf_loss loss;    /* if it has no loss layer */
    float huber_delta; /* of `loss`; 0: 1 */
    sdlf_training_state training_state;
};

/* ---- names (model_names.c) ---- */

/* The layer of that name; -1: none. */
int model_find_layer(const sdlf_model *model, const char *name);
/* The parameter of that full name, "conv2d.weight", once parameters are listed; -1: none. */
int model_find_parameter(const sdlf_model *model, const char *name);
/* The given name, or the class's name with the first free number appended. The caller's; NULL: out of memory. */
char *model_choose_name(sdlf_model *model, const sdlf_layer_class *type, const char *given);
/* Allocate for one more name; enter the name of the next layer; remove the name of the last layer. */
sdlf_status model_reserve_name(sdlf_model *model);
void model_enter_name(sdlf_model *model, int layer);
void model_remove_last_name(sdlf_model *model);

/* ---- classes (model_classes.c) ---- */

void model_release_classes(model_classes *classes);
/* The model takes ownership of them, in place of those before. */
void model_take_classes(sdlf_model *model, model_classes *classes);

/* ---- inference (model_build.c) ---- */

/* Infers one layer's signature from its inputs' shapes and dtypes (already filled in), and adds the layer's name and
 * position, and the layer that its first input comes from, to an error. `producer` may be NULL. */
sdlf_status model_layer_infer(const sdlf_layer *layer, int position, const sdlf_layer *producer,
                              sdlf_signature *signature);

/* The signature of one layer, for a batch of 1, from the outputs of those before it; stores its outputs. */
sdlf_status model_infer_layer(sdlf_model *model, int index, sdlf_signature *signature);

/* Infers every layer's outputs for a batch of 1 and checks the size of the parameters, without allocating them. Errors:
 * as sdlf_model_build; parameters that exceed the machine's memory are SDLF_ERROR_MEMORY. */
sdlf_status model_infer(sdlf_model *model);

/* ---- parameters (model_parameters.c) ---- */

/* The two halves of sdlf_model_build: the first lists the parameters that are not listed yet (all of them, if the model
 * is built), without values; the second gives values to those that have none, initialised from *seed, or undefined if
 * seed is NULL. After a failure, or to stop in between, model_truncate_parameters restores the previous state. */
sdlf_status model_describe(sdlf_model *model);
sdlf_status model_allocate(sdlf_model *model, const uint64_t *seed);

/* Freezes the parameter of that name ("weight"); whether it exists is checked when parameters are listed. */
sdlf_status model_freeze(sdlf_model *model, int layer, const char *parameter);

bool model_is_frozen(const model_layer *layer, const char *parameter);
/* SDLF_ERROR_ARGUMENT if a parameter was frozen that the layer does not have. */
sdlf_status model_check_frozen(const model_layer *layer, const sdlf_signature *signature);

/* How many parameters, from the first on, have values. */
int model_valued_count(const sdlf_model *model);

/* Frees the parameters from index `count` on, which is the first of a layer; the model is then not built. */
void model_truncate_parameters(sdlf_model *model, int count);

/* Frees all parameters (before they are listed again). */
void model_free_parameters(sdlf_model *model);

/* A plan starts to use addresses of the parameters, and of the optimizer states if it updates them; or it stops. In
 * between neither may be freed. */
void model_start_using(sdlf_model *model, bool states);
void model_stop_using(sdlf_model *model, bool states);
/* Keeps the shard-th of `shards` parts of each optimizer state, flat, and nothing of the others, also of future states;
 * with 0 of 0 states are whole again, and existing ones are dropped. No plan may be using them. */
sdlf_status model_shard_states(sdlf_model *model, int shard, int shards);
/* The number of elements of a parameter's state here, and the index of the first. */
int64_t model_state_count(const sdlf_model *model, int parameter);
int64_t model_state_first(const sdlf_model *model, int parameter);

/* Records that parameter values have changed, which makes copies in plans out of date. */
void model_note_change(sdlf_model *model);

/* A plan takes the parameter values: the model's status, SDLF_OK so far, becomes an error that says so. The thread's
 * message does not change: it may be that of the failure during which the values were lost. */
void model_mark_consumed(sdlf_model *model);

/* ---- values that have been left in a file (model_lazy.c) ---- */

/* The parameters are listed, but their values stay in a file, from which `source`, owned by the model from now on,
 * reads them. Until a plan has taken them, the model's status is an error that says so. */
void model_defer_values(sdlf_model *model, model_source source);

/* Loads the values of a parameter into the model's memory, unless they are there. */
sdlf_status model_fetch_values(sdlf_model *model, int parameter);

/* True if parts of a parameter's values that are not in memory can be read; and the function that reads them. */
bool model_reads_pieces(const sdlf_model *model, int parameter);
sdlf_status model_read_values(sdlf_model *model, int parameter, int64_t first, int64_t count, float *values);

/* Frees a parameter's values and returns their memory to the system at once. */
void model_drop_values(sdlf_model *model, int parameter);

/* Closes the source: no more values will be read. */
void model_close_source(sdlf_model *model);

/* For readers that continue after a layer did not fit: removes the newest layer, which no other layer reads; clears the
 * error that building recorded. */
void model_drop_last(sdlf_model *model);
void model_forget_error(sdlf_model *model);

#endif
