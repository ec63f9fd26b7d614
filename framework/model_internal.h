/* SPDX-License-Identifier: MIT */
/* The model's own structures, for the model, the plan and the formats. */
#ifndef SDLF_FRAMEWORK_MODEL_INTERNAL_H
#define SDLF_FRAMEWORK_MODEL_INTERNAL_H

#include <stdatomic.h>

#include <sdlf/formats.h>
#include <sdlf/model.h>

/* A batch that no network has somewhere in its shapes by chance: what differs from a batch of 1 depends on the
 * batch. */
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
    char *frozen;    /* " weight bias ": parameters that training does not change, though it could; NULL: none. Owned */
    int next_number; /* where search begins for a free N in "NAME_N", with this layer's name; 0: at 2 */
} model_layer;

/* Names of layers, hashed: slots hold a layer's index + 1, or 0. Each stands at the first free slot from its own on. */
typedef struct model_names {
    int *layer;
    int capacity; /* a power of 2, at least twice the layers; 0: no memory yet */
} model_names;

typedef struct model_output {
    char *name;
    sdlf_node node;
    int length, axis; /* the output that says how many of its elements along the axis count; -1: all do */
} model_output;

/* Where the values of parameters are that have been left in a file: who opened it reads them. */
typedef struct model_source {
    /* Values first .. first + count - 1 of a parameter. */
    sdlf_status (*read)(void *file, int parameter, int64_t first, int64_t count, float *values);
    bool (*in_pieces)(const void *file, int parameter); /* or only all of them at once? */
    /* Is the parameter, a matrix (units, inputs), of integers with scales in the file? That many inputs share one; 0:
     * no. */
    int64_t (*shared_scale)(const void *file, int parameter);
    void (*close)(void *file);
    void *file; /* NULL: every parameter has its values */
} model_source;

/* Names of classes, owned. */
typedef struct model_classes {
    char **name;
    int count;
} model_classes;

struct sdlf_model {
    char *name;
    char *origin; /* of the layers added next */
    model_layer *layers;
    int layer_count, layer_capacity;
    model_names names;
    model_output *outputs;
    int output_count;
    sdlf_parameter *parameters;
    int parameter_count, parameter_capacity;
    int described;                 /* the layers, from the first on, whose parameters are listed */
    atomic_uint_least64_t changes; /* how often the library has changed values of parameters, here or on a device */
    int shard, shards;      /* of what optimizer states a training has here, one part of several; 0 of 0: all of them */
    int users, state_users; /* plans that hold addresses of the parameters; of these, such as update them */
    bool built;
    model_source source;
    bool given_away;    /* to a plan that takes values of its parameters: that is the error then */
    sdlf_status status; /* the first error made while building, and its message */
    char *message;
    sdlf_normalization normalization;
    model_classes classes;
    sdlf_loss loss;    /* where it has no loss layer */
    float huber_delta; /* of that; 0: 1 */
    sdlf_training_state training_state;
};

/* ---- names (model_names.c) ---- */

/* The layer of that name; -1: none. */
int model_find_layer(const sdlf_model *model, const char *name);
/* The parameter of that full name, "conv2d.weight", once parameters are listed; -1: none. */
int model_find_parameter(const sdlf_model *model, const char *name);
/* The given name, or the class's name with the first free number behind it. The caller's; NULL: out of memory. */
char *model_choose_name(sdlf_model *model, const sdlf_layer_class *type, const char *given);
/* Make room for one more name; enter the name of a layer, the next; take that of the last layer away. */
sdlf_status model_reserve_name(sdlf_model *model);
void model_enter_name(sdlf_model *model, int layer);
void model_remove_last_name(sdlf_model *model);

/* ---- classes (model_classes.c) ---- */

void model_release_classes(model_classes *classes);
/* They are the model's from now on, in place of those before. */
void model_take_classes(sdlf_model *model, model_classes *classes);

/* ---- inference (model_build.c) ---- */

/* Infer one layer's signature from its inputs' shapes and dtypes (already filled in), and put the layer's name,
 * position and the layer its first input comes from around an error. `producer` may be NULL. */
sdlf_status model_layer_infer(const sdlf_layer *layer, int position, const sdlf_layer *producer,
                              sdlf_signature *signature);

/* The signature of one layer, for a batch of 1, from the outputs of those before it; the layer keeps its outputs. */
sdlf_status model_infer_layer(sdlf_model *model, int index, sdlf_signature *signature);

/* Infer every layer's outputs for a batch of 1 and check the size of the parameters, without making them. Errors: as
 * sdlf_model_build; parameters that take more than the machine's memory are SDLF_ERROR_MEMORY. */
sdlf_status model_infer(sdlf_model *model);

/* ---- parameters (model_parameters.c) ---- */

/* The two halves of sdlf_model_build: list the parameters that are not listed yet (of a model that is built: all of
 * them anew), without values; then give values to those that have none, initialised from *seed, or undefined without
 * one. After a failure, and for whoever stops in between, model_truncate_parameters has things as they were. */
sdlf_status model_describe(sdlf_model *model);
sdlf_status model_allocate(sdlf_model *model, const uint64_t *seed);

/* Freeze the parameter of that name ("weight"); whether the layer has one is told when parameters are listed. */
sdlf_status model_freeze(sdlf_model *model, int layer, const char *parameter);

bool model_is_frozen(const model_layer *layer, const char *parameter);
/* SDLF_ERROR_ARGUMENT where it has been said of a parameter that the layer does not have. */
sdlf_status model_check_frozen(const model_layer *layer, const sdlf_signature *signature);

/* How many parameters, from the first on, have values. */
int model_valued_count(const sdlf_model *model);

/* Free the parameters from number `count` on, with which a layer's own begin; the model is then not built. */
void model_truncate_parameters(sdlf_model *model, int count);

/* Free all of them (before they are made anew). */
void model_free_parameters(sdlf_model *model);

/* A plan takes addresses of the parameters, and of the optimizer's states too where it updates them; and is done with
 * them. Meanwhile neither may be freed. */
void model_start_using(sdlf_model *model, bool states);
void model_stop_using(sdlf_model *model, bool states);
/* Keep the shard-th of `shards` parts of each optimizer state, flat, and nothing of the others, also of states to come;
 * 0 of 0: states are whole again, and what is there is dropped. No plan uses them. */
sdlf_status model_shard_states(sdlf_model *model, int shard, int shards);
/* Elements of a parameter's state here, and where they begin. */
int64_t model_state_count(const sdlf_model *model, int parameter);
int64_t model_state_first(const sdlf_model *model, int parameter);

/* Values of parameters have been changed: what plans have made of them is out of date. */
void model_note_change(sdlf_model *model);

/* A plan takes the values of parameters: from now on the status of the model, until now SDLF_OK, is an error that says
 * so. The thread's message stays: it may be that of the failure in whose middle the values were lost. */
void model_give_away(sdlf_model *model);

/* ---- values that have been left in a file (model_lazy.c) ---- */

/* The parameters are described, and their values stay where `source` reads them, which is the model's from now on.
 * Until a plan has taken them, the status of the model is an error that says so. */
void model_defer_values(sdlf_model *model, model_source source);

/* Have the values of a parameter in the model's memory; nothing to do where they are there. */
sdlf_status model_fetch_values(sdlf_model *model, int parameter);

/* Can some of a parameter's values be read that are not there? Then read them. */
bool model_reads_pieces(const sdlf_model *model, int parameter);
sdlf_status model_read_values(sdlf_model *model, int parameter, int64_t first, int64_t count, float *values);

/* Free a parameter's values, given back to the system at once. */
void model_drop_values(sdlf_model *model, int parameter);

/* Values are wanted from the source no more. */
void model_close_source(sdlf_model *model);

/* For readers that go on after a layer did not fit: take the newest layer, which nobody reads, away; forget the error
 * that building kept. */
void model_drop_last(sdlf_model *model);
void model_forget_error(sdlf_model *model);

#endif
