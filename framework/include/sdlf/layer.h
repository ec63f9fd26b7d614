/* SPDX-License-Identifier: MIT */
/* Layer: WHAT one operation of a network means.
 *
 * A layer class defines how output shapes follow from input shapes, which parameters the layer has, and which
 * operations make up its forward and backward pass. It names no calculator, allocates no memory and loops over no
 * elements: it describes the layer once, when a plan is built. The plan then allocates memory and runs the operations.
 *
 * To add a class: one file in layers/, one line in layers/list.h; or, from outside the tree, sdlf_register_layer.
 * docs/guides/add-a-layer.md walks through one.
 *
 * Threads: classes are constant tables; their functions may be called from several threads for different models. The
 * list of classes may be read and extended from any thread.
 * Ownership: classes and the strings in them are borrowed until the process ends; the model copies
 * options.
 * Errors: `infer`, `forward` and `backward` return a status whose message begins with the problem (sdlf_fail); the
 * caller prepends the layer's name. */
#ifndef SDLF_LAYER_H
#define SDLF_LAYER_H

#include <sdlf/operation.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_layer sdlf_layer;
typedef struct sdlf_layer_class sdlf_layer_class;

/* ---- options: a plain struct, described by a table from which file formats, messages and listings are derived ---- */

typedef enum sdlf_field_type {
    SDLF_FIELD_INT,    /* int */
    SDLF_FIELD_PAIR,   /* int[2], vertical then horizontal; in a file one number sets both */
    SDLF_FIELD_FLOAT,  /* float */
    SDLF_FIELD_BOOL,   /* bool */
    SDLF_FIELD_CHOICE, /* int, an index into choices */
    SDLF_FIELD_SHAPE,  /* sdlf_shape */
    SDLF_FIELD_DOUBLE, /* double */
} sdlf_field_type;

typedef struct sdlf_field {
    const char *name; /* as in files; a NULL name ends the table */
    sdlf_field_type type;
    size_t offset;              /* of the member in the options struct */
    double minimum, maximum;    /* allowed range of the number (of each, for a pair), inclusive */
    const char *const *choices; /* NULL-terminated names for SDLF_FIELD_CHOICE; [0] is the default */
    double fallback;            /* replaces a number that is zero if `zero_means_default` */
    bool zero_means_default;    /* for a shape: it may be empty, and the layer interprets that */
    const char *help;           /* one line */
} sdlf_field;

/* Upper limits for fields, far above practical sizes. The product of any two fits in an int64_t. */
#define SDLF_MAX_LAYER_SIDE   16777216 /* units, filters, channels, a dimension of a sample */
#define SDLF_MAX_LAYER_WINDOW 65535    /* kernel, window, stride, padding, dilation */

/* ---- parameters ---- */

typedef enum sdlf_initializer_kind {
    SDLF_INIT_DEFAULT = 0, /* the layer's documented default: He-uniform for weights, zero for biases */
    SDLF_INIT_ZERO,
    SDLF_INIT_ONE,
    SDLF_INIT_HE_UNIFORM,     /* +- sqrt(6 / fan_in) */
    SDLF_INIT_HE_NORMAL,      /* standard deviation sqrt(2 / fan_in) */
    SDLF_INIT_XAVIER_UNIFORM, /* +- sqrt(6 / (fan_in + fan_out)) */
    SDLF_INIT_XAVIER_NORMAL,  /* standard deviation sqrt(2 / (fan_in + fan_out)) */
    SDLF_INIT_LECUN_UNIFORM,  /* +- sqrt(1 / fan_in): the default of PyTorch's layers */
    SDLF_INIT_UNIFORM,        /* +- scale */
    SDLF_INIT_NORMAL,         /* standard deviation scale */
    /* Convolutions: filter k copies channel k (Dirac) for as many channels as there are; the rest lecun_uniform. */
    SDLF_INIT_IDENTITY,
    /* Convolutions of the network's input: computed from the training data (trainer.h); lecun_uniform until
     * then. */
    SDLF_INIT_WHITENING,
    SDLF_INIT_COUNT
} sdlf_initializer_kind;

/* Names of these kinds in order, NULL-terminated: "default", "zero", "one", "he_uniform", ... For
 * SDLF_FIELD_CHOICE. */
extern const char *const sdlf_initializer_names[];

typedef struct sdlf_parameter_spec {
    const char *name; /* "weight"; a string that outlives the plan. The full name is LAYER.weight */
    sdlf_shape shape;
    int initializer; /* sdlf_initializer_kind, never SDLF_INIT_DEFAULT here */
    float scale;     /* for uniform and normal */
    int64_t fan_in, fan_out;
    bool trainable; /* false: a statistic that the forward pass updates; it has no gradient */
    bool decay;     /* weight decay applies (true for weights; false for biases, scales and shifts) */
} sdlf_parameter_spec;

/* ---- a layer's view of the plan that is being built ---- */

#define SDLF_MAX_LAYER_INPUTS     16
#define SDLF_MAX_LAYER_OUTPUTS    4
#define SDLF_MAX_LAYER_PARAMETERS 6
#define SDLF_MAX_LAYER_SAVED      5

/* Completed by `infer`; members marked `given` are set by the caller. Dimension 0 of a shape is the batch. */
typedef struct sdlf_signature {
    int64_t batch;                                 /* given: samples in a batch, at least 1 */
    int input_count;                               /* given */
    sdlf_dtype input_dtype[SDLF_MAX_LAYER_INPUTS]; /* given */
    sdlf_shape input_shape[SDLF_MAX_LAYER_INPUTS]; /* given */
    bool input_sparse[SDLF_MAX_LAYER_INPUTS];      /* given: the input is a sparse matrix */
    sdlf_dtype dtype;                              /* given: the plan's floating type */
    bool training;                                 /* given */
    bool eval_mode;                                /* given: training computes the forward pass as inference does */
    int output_count;
    sdlf_dtype output_dtype[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_shape output_shape[SDLF_MAX_LAYER_OUTPUTS];
    bool output_sparse[SDLF_MAX_LAYER_OUTPUTS]; /* only for inputs of the network */
    int parameter_count;
    sdlf_parameter_spec parameter[SDLF_MAX_LAYER_PARAMETERS];
    int saved_count; /* tensors that forward saves for backward, beside inputs and outputs */
    sdlf_dtype saved_dtype[SDLF_MAX_LAYER_SAVED];
    sdlf_shape saved_shape[SDLF_MAX_LAYER_SAVED];
} sdlf_signature;

/* Called by `infer` to append an output, a parameter, or a tensor that forward saves for backward. Strings are
 * borrowed. Errors: SDLF_ERROR_SHAPE if the shape has a dimension below 1 or its size in bytes overflows an int64_t;
 * SDLF_ERROR_ARGUMENT without an element type, or if the layer already has the maximum number of them. */
sdlf_status sdlf_signature_add_output(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape);
sdlf_status sdlf_signature_add_parameter(sdlf_signature *signature, sdlf_parameter_spec parameter);
sdlf_status sdlf_signature_add_saved(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape);

/* The tensors of a layer's forward or backward pass, and the sink that receives its operations. Tensors have shapes but
 * no data yet. A tensor that an operation reads is kept in memory until that operation has run.
 *
 * In backward, an input or parameter that needs no gradient has an absent gradient tensor, and an operation whose
 * outputs are all absent is dropped: a layer describes all its gradients, and only those in use are computed.
 * `backward` may set input_gradient[i] to (a view of) an output gradient instead of computing it. */
typedef struct sdlf_layer_context {
    const sdlf_tensor *input, *output, *parameter, *saved;
    int input_count;
    bool training;
    bool eval_mode;              /* there is a backward pass, and forward computes as in inference */
    int64_t batch, first_sample; /* samples, and the index of the first one in the batch of all ranks */
    uint64_t seed;
    uint32_t stream;  /* this layer's own random stream: SDLF_STREAM_DROPOUT + its index */
    sdlf_tensor step; /* (1) int64, the number of training steps done */
    /* (3) float64: accumulates the losses, correct predictions and samples, as in softmax_cross_entropy_forward.
     * Present only in a plan's first layer that has_metrics. */
    sdlf_tensor metrics;
    const sdlf_tensor *output_gradient; /* backward */
    sdlf_tensor *input_gradient;        /* backward */
    sdlf_tensor *parameter_gradient;    /* backward */
    void *sink;                         /* private to the plan */
} sdlf_layer_context;

/* Append an operation to the pass. Errors: those of sdlf_operation_check. */
sdlf_status sdlf_emit(sdlf_layer_context *context, const sdlf_operation *operation);

/* True if the plan fuses operations and the layer's calculator supports this one (in training, the calculators of both
 * passes). If false, a layer may append an equivalent sequence of operations instead. */
bool sdlf_layer_supports(const sdlf_layer_context *context, const sdlf_operation *operation);

/* A temporary tensor that exists only during this pass of this layer. */
sdlf_tensor sdlf_scratch(sdlf_layer_context *context, sdlf_dtype dtype, sdlf_shape shape);

/* ---- the class ---- */

/* What an output holds for each class. */
typedef enum sdlf_scores {
    SDLF_SCORES_LOGITS = 0,
    SDLF_SCORES_PROBABILITIES,
    SDLF_SCORES_LOG_PROBABILITIES
} sdlf_scores;

struct sdlf_layer_class {
    const char *name;    /* "conv2d": the type in network files */
    const char *summary; /* one line for listings */
    size_t options_size; /* of the options struct; its first member is `const char *name` */
    const sdlf_field *fields;
    int minimum_inputs, maximum_inputs;
    unsigned sparse_inputs;   /* bit i: input i is a sparse matrix; all others are dense */
    unsigned backward_inputs; /* bit i: only the backward pass reads input i */

    /* Derive shapes, parameters and saved tensors from the inputs. Errors: SDLF_ERROR_SHAPE, with a message that begins
     * with the problem; the caller adds the layer's name and origin. */
    sdlf_status (*infer)(const sdlf_layer *layer, sdlf_signature *signature);

    /* Append the operations of the forward pass. Optional; NULL: output 0 is input 0's memory with output 0's shape
     * (reshape, flatten). For dropout's identity in inference see is_identity_in_inference. */
    sdlf_status (*forward)(const sdlf_layer *layer, sdlf_layer_context *context);

    /* Append the operations of the backward pass. Optional. NULL without a forward: the gradient passes through,
     * reshaped. NULL with one: the layer has no gradient, which is an error only if a gradient must pass through it. */
    sdlf_status (*backward)(const sdlf_layer *layer, sdlf_layer_context *context);

    /* True if the layer does nothing outside training. Optional; NULL: false. */
    bool (*is_identity_in_inference)(const sdlf_layer *layer);

    /* Output 0 is a mean loss over the batch, which training minimises. */
    bool is_loss;

    /* The forward pass adds to context->metrics. */
    bool has_metrics;

    /* The meaning of output 0 where it holds a score for each class. If not logits, input 0 holds the logits. */
    sdlf_scores scores;

    void *reserved[4]; /* zero; members can be added here without breaking binary compatibility */
};

struct sdlf_layer {
    const sdlf_layer_class *type;
    const char *name;    /* unique in its model */
    const char *origin;  /* "simple_cnn.json:14", or NULL */
    const void *options; /* a complete copy, with defaults filled in and ranges checked */
};

/* Registered layer classes, by index (NULL past the end) and by name (NULL if unknown). */
const sdlf_layer_class *sdlf_layer_class_at(int index);
const sdlf_layer_class *sdlf_layer_class_find(const char *name);

/* Register a layer class of the program, after those of the library. Network files, sdlf_model_open and listings then
 * know it by name. Any thread may call this at any time. The table is borrowed until the process ends. Registering the
 * same table again has no effect. Errors: SDLF_ERROR_ARGUMENT (the name is not a lower-case word or is taken, a member
 * is missing or out of range: the message says which), SDLF_ERROR_UNSUPPORTED (the program was compiled with the
 * headers of a newer library), SDLF_ERROR_MEMORY (64 are registered already). `size` is that of the table as compiled;
 * sdlf_register_layer passes it. Members that a shorter table lacks are zero. */
sdlf_status sdlf_register_layer_sized(const sdlf_layer_class *type, size_t size);
static inline sdlf_status sdlf_register_layer(const sdlf_layer_class *type)
{
    return sdlf_register_layer_sized(type, sizeof(sdlf_layer_class));
}

#ifdef __cplusplus
}
#endif
#endif
