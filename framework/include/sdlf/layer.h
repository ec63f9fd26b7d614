/* SPDX-License-Identifier: MIT */
/* Layer: WHAT one operation of a network means.
 *
 * A layer class says how output shapes follow from input shapes, which parameters there are, and which operations the
 * forward and the backward pass consist of. It names no calculator, allocates no memory and loops over no elements: it
 * describes, once, when a plan is built; the plan binds memory and runs what was described.
 *
 * To add a class: one file in layers/, one line in layers/list.h; or, from outside the tree, sdlf_register_layer.
 * docs/guides/add-a-layer.md walks through one.
 *
 * Threads: classes are constant tables: their functions may be called from several threads, for different models. The
 * list may be read, and added to, from any thread.
 * Ownership: classes and the strings in them are borrowed for as long as the process lives; options are copied by the
 * model.
 * Errors: `infer`, `forward` and `backward` return a status whose message begins with what is wrong (sdlf_fail); the
 * layer's name is put before it. */
#ifndef SDLF_LAYER_H
#define SDLF_LAYER_H

#include <sdlf/operation.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_layer sdlf_layer;
typedef struct sdlf_layer_class sdlf_layer_class;

/* ---- options: a plain struct, described by a table so that files, messages and listings can be made from it ---- */

typedef enum sdlf_field_type {
    SDLF_FIELD_INT,    /* int */
    SDLF_FIELD_PAIR,   /* int[2], vertical then horizontal; in a file one number stands for both */
    SDLF_FIELD_FLOAT,  /* float */
    SDLF_FIELD_BOOL,   /* bool */
    SDLF_FIELD_CHOICE, /* int, an index into choices */
    SDLF_FIELD_SHAPE,  /* sdlf_shape */
    SDLF_FIELD_DOUBLE, /* double */
} sdlf_field_type;

typedef struct sdlf_field {
    const char *name; /* as in files; NULL ends a table */
    sdlf_field_type type;
    size_t offset;              /* of the member in the options struct */
    double minimum, maximum;    /* allowed range, inclusive, of a number (each of a pair) */
    const char *const *choices; /* NULL-terminated names for SDLF_FIELD_CHOICE; [0] is the default */
    double fallback;            /* a number left at zero becomes this when `zero_means_default` */
    bool zero_means_default;    /* of a shape: it may be left empty, and the layer knows what that means */
    const char *help;           /* one line */
} sdlf_field;

/* Limits for fields, which no sensible network comes near. They keep every product of two in an int64_t. */
#define SDLF_MAX_LAYER_SIDE   16777216 /* units, filters, channels, a dimension of a sample */
#define SDLF_MAX_LAYER_WINDOW 65535    /* kernel, window, stride, padding, dilation */

/* ---- parameters ---- */

typedef enum sdlf_initializer_kind {
    SDLF_INIT_DEFAULT = 0, /* what the layer's documentation says: He-uniform for weights, zero for biases */
    SDLF_INIT_ZERO,
    SDLF_INIT_ONE,
    SDLF_INIT_HE_UNIFORM,     /* +- sqrt(6 / fan_in) */
    SDLF_INIT_HE_NORMAL,      /* deviation sqrt(2 / fan_in) */
    SDLF_INIT_XAVIER_UNIFORM, /* +- sqrt(6 / (fan_in + fan_out)) */
    SDLF_INIT_XAVIER_NORMAL,  /* deviation sqrt(2 / (fan_in + fan_out)) */
    SDLF_INIT_LECUN_UNIFORM,  /* +- sqrt(1 / fan_in): what PyTorch's layers start with */
    SDLF_INIT_UNIFORM,        /* +- scale */
    SDLF_INIT_NORMAL,         /* deviation scale */
    /* convolutions: filter k passes channel k on (Dirac), as many as there are; the rest lecun_uniform. */
    SDLF_INIT_IDENTITY,
    /* Convolutions of the network's input: measured from the data that it is trained on (trainer.h); till then
     * lecun_uniform. */
    SDLF_INIT_WHITENING,
    SDLF_INIT_COUNT
} sdlf_initializer_kind;

/* Names of the kinds above in order, NULL-terminated: "default", "zero", "one", "he_uniform", ... for
 * SDLF_FIELD_CHOICE. */
extern const char *const sdlf_initializer_names[];

typedef struct sdlf_parameter_spec {
    const char *name; /* "weight"; a string that outlives the plan. The full name is LAYER.weight */
    sdlf_shape shape;
    int initializer; /* sdlf_initializer_kind, never SDLF_INIT_DEFAULT here */
    float scale;     /* for uniform and normal */
    int64_t fan_in, fan_out;
    bool trainable; /* false: a statistic that the forward pass keeps (it has no gradient) */
    bool decay;     /* does weight decay apply? (weights yes; biases, scales and shifts no) */
} sdlf_parameter_spec;

/* ---- what a layer looks like from inside the plan that is being built ---- */

#define SDLF_MAX_LAYER_INPUTS     16
#define SDLF_MAX_LAYER_OUTPUTS    4
#define SDLF_MAX_LAYER_PARAMETERS 6
#define SDLF_MAX_LAYER_SAVED      5

/* Filled by `infer`. Shapes include the batch as dimension 0. */
typedef struct sdlf_signature {
    int64_t batch;                                 /* given: samples in a batch, at least 1 */
    int input_count;                               /* given */
    sdlf_dtype input_dtype[SDLF_MAX_LAYER_INPUTS]; /* given */
    sdlf_shape input_shape[SDLF_MAX_LAYER_INPUTS]; /* given */
    bool input_sparse[SDLF_MAX_LAYER_INPUTS];      /* given: is it a sparse matrix? */
    sdlf_dtype dtype;                              /* given: the plan's floating type */
    bool training;                                 /* given */
    bool eval_mode;                                /* given: training computes as inference does */
    int output_count;
    sdlf_dtype output_dtype[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_shape output_shape[SDLF_MAX_LAYER_OUTPUTS];
    bool output_sparse[SDLF_MAX_LAYER_OUTPUTS]; /* only of inputs of the network */
    int parameter_count;
    sdlf_parameter_spec parameter[SDLF_MAX_LAYER_PARAMETERS];
    int saved_count; /* tensors that forward leaves for backward, beside inputs and outputs */
    sdlf_dtype saved_dtype[SDLF_MAX_LAYER_SAVED];
    sdlf_shape saved_shape[SDLF_MAX_LAYER_SAVED];
} sdlf_signature;

/* With these `infer` appends an output, a parameter, and a tensor that forward leaves for backward. Strings are
 * borrowed. Errors: SDLF_ERROR_SHAPE where the shape has a dimension below 1 or more bytes than an int64_t counts,
 * SDLF_ERROR_ARGUMENT without an element type, and where there are as many as a layer can have. */
sdlf_status sdlf_signature_add_output(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape);
sdlf_status sdlf_signature_add_parameter(sdlf_signature *signature, sdlf_parameter_spec parameter);
sdlf_status sdlf_signature_add_saved(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape);

/* The tensors a layer's forward or backward pass works on, and where its operations go. Tensors have shapes and no data
 * yet. Reading a tensor in an operation is all it takes to have it kept until then.
 *
 * In backward, an input or parameter that needs no gradient has an absent gradient tensor, and an operation whose every
 * output is absent is dropped: a layer describes all its gradients and pays only for those that are used. `backward`
 * may set input_gradient[i] to (a view of) an output gradient instead of computing it. */
typedef struct sdlf_layer_context {
    const sdlf_tensor *input, *output, *parameter, *saved;
    int input_count;
    bool training;
    bool eval_mode;              /* there is a backward pass, and forward computes as without training */
    int64_t batch, first_sample; /* samples, and the number of the first in the batch of all ranks */
    uint64_t seed;
    uint32_t stream;  /* this layer's own random stream: SDLF_STREAM_DROPOUT + its index */
    sdlf_tensor step; /* (1) int64, the number of training steps done */
    /* (3) float64, to which losses, correct ones and samples are added, as in softmax_cross_entropy_forward. Absent but
     * in a plan's first layer that has_metrics. */
    sdlf_tensor metrics;
    const sdlf_tensor *output_gradient; /* backward */
    sdlf_tensor *input_gradient;        /* backward */
    sdlf_tensor *parameter_gradient;    /* backward */
    void *sink;                         /* the plan's own */
} sdlf_layer_context;

/* Append an operation to the pass. Errors: what sdlf_operation_check says. */
sdlf_status sdlf_emit(sdlf_layer_context *context, const sdlf_operation *operation);

/* Can what computes the layer do that operation, when training in either pass? Where not, a layer may append others that come to the
 * same. */
bool sdlf_layer_takes(const sdlf_layer_context *context, const sdlf_operation *operation);

/* A tensor that lives for this pass of this layer only. */
sdlf_tensor sdlf_scratch(sdlf_layer_context *context, sdlf_dtype dtype, sdlf_shape shape);

/* ---- the class ---- */

/* What an output has for each class. */
typedef enum sdlf_scores {
    SDLF_SCORES_LOGITS = 0,
    SDLF_SCORES_PROBABILITIES,
    SDLF_SCORES_LOG_PROBABILITIES
} sdlf_scores;

struct sdlf_layer_class {
    const char *name;    /* "conv2d": the type in network files */
    const char *summary; /* one line for listings */
    size_t options_size; /* the options struct; its first member is `const char *name` */
    const sdlf_field *fields;
    int minimum_inputs, maximum_inputs;
    unsigned sparse_inputs;   /* bit i: input i is a sparse matrix; all others are dense */
    unsigned backward_inputs; /* bit i: only the backward pass reads input i */

    /* Shapes, parameters and saved tensors from the inputs. Errors: SDLF_ERROR_SHAPE, with a message that begins with
     * what is wrong; the caller puts the layer's name and origin around it. */
    sdlf_status (*infer)(const sdlf_layer *layer, sdlf_signature *signature);

    /* The operations of the forward pass. Optional; NULL: output 0 is input 0's memory under output 0's shape
     * (reshape, flatten, dropout's identity in inference is reported by is_identity instead). */
    sdlf_status (*forward)(const sdlf_layer *layer, sdlf_layer_context *context);

    /* The operations of the backward pass. Optional; NULL with a NULL forward: the gradient passes through, reshaped;
     * NULL with a forward: the layer cannot be trained through, which is an error only where a gradient must pass. */
    sdlf_status (*backward)(const sdlf_layer *layer, sdlf_layer_context *context);

    /* Does the layer do nothing when not training? Optional; NULL: no. */
    bool (*is_identity_in_inference)(const sdlf_layer *layer);

    /* Is output 0 a mean loss over the batch, which training minimises? */
    bool is_loss;

    /* Does its forward pass add to context->metrics? */
    bool has_metrics;

    /* What output 0 is, where it is a score for each class. Other than logits: input 0 is the logits. */
    sdlf_scores scores;

    void *reserved[4]; /* zero, so that members can be added without breaking what was compiled before */
};

struct sdlf_layer {
    const sdlf_layer_class *type;
    const char *name;    /* unique in its model */
    const char *origin;  /* "simple_cnn.json:14", or NULL */
    const void *options; /* a complete copy: defaults filled in, ranges checked */
};

/* Registered layer classes: by position (NULL past the end) and by name (NULL if unknown). */
const sdlf_layer_class *sdlf_layer_class_at(int index);
const sdlf_layer_class *sdlf_layer_class_find(const char *name);

/* Make a class of the program's own known by its name: to network files, to sdlf_model_open and to listings, behind
 * those of the library. Any thread may call it, at any time. The table is borrowed for as long as the process lives.
 * Registering the same table again does nothing. Errors: SDLF_ERROR_ARGUMENT (a name that is no lower-case word or is
 * taken, a member that is missing or out of range: the message says which), SDLF_ERROR_UNSUPPORTED (the program was
 * compiled with the headers of a newer library), SDLF_ERROR_MEMORY (64 are registered already). `size` is that of the
 * table as it was compiled: sdlf_register_layer gives it. Members that a shorter table lacks are zero. */
sdlf_status sdlf_register_layer_sized(const sdlf_layer_class *type, size_t size);
static inline sdlf_status sdlf_register_layer(const sdlf_layer_class *type)
{
    return sdlf_register_layer_sized(type, sizeof(sdlf_layer_class));
}

#ifdef __cplusplus
}
#endif
#endif
