/* SPDX-License-Identifier: MIT */
/* Elementwise layers. Several inputs are broadcast as in numpy: axes are matched from the last one on, and a missing
 * axis or one of size 1 is repeated. A gradient is summed over the repeated axes. layers.h describes what is common to
 * all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_ELEMENTWISE_H
#define SDLF_LAYERS_ELEMENTWISE_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* max(x, 0); min(max(x, 0), 6); 1 / (1 + exp(-x)); tanh(x). The gradient at a kink is 0. */
sdlf_node sdlf_relu(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_relu6(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_sigmoid(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_tanh(sdlf_model *model, sdlf_node x);

/* min(max(x, low), high); the gradient passes where low < y < high. */
typedef struct sdlf_clip_options {
    const char *name;
    float low, high;   /* low < high */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_clip_options;
sdlf_node sdlf_clip(sdlf_model *model, sdlf_node x, const sdlf_clip_options *options);

/* x if it is positive, else slope x. */
typedef struct sdlf_leaky_relu_options {
    const char *name;
    float slope;       /* default 0.01 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_leaky_relu_options;
sdlf_node sdlf_leaky_relu(sdlf_model *model, sdlf_node x, const sdlf_leaky_relu_options *options);

/* The other functions of <sdlf/operations/elementwise.h>, which lists their formulas. */
typedef enum sdlf_unary_function {
    SDLF_UNARY_SILU = 0,
    SDLF_UNARY_HARD_SWISH,
    SDLF_UNARY_ELU,
    SDLF_UNARY_SELU,
    SDLF_UNARY_CELU,
    SDLF_UNARY_GELU,
    SDLF_UNARY_GELU_TANH,
    SDLF_UNARY_MISH,
    SDLF_UNARY_SOFTPLUS,
    SDLF_UNARY_SOFTSIGN,
    SDLF_UNARY_HARD_SIGMOID,
    SDLF_UNARY_ERF,
    SDLF_UNARY_SQRT,
    SDLF_UNARY_EXP,
    SDLF_UNARY_LOG,
    SDLF_UNARY_ABS,
    SDLF_UNARY_NEGATE,
    SDLF_UNARY_RECIPROCAL,
    SDLF_UNARY_FLOOR,
    SDLF_UNARY_CEIL,
    SDLF_UNARY_ROUND, /* ties to even */
    SDLF_UNARY_SIN,
    SDLF_UNARY_COS,
    SDLF_UNARY_TAN,
    SDLF_UNARY_ASIN,
    SDLF_UNARY_ACOS,
    SDLF_UNARY_ATAN,
    SDLF_UNARY_SINH,
    SDLF_UNARY_COSH,
    SDLF_UNARY_ASINH,
    SDLF_UNARY_ACOSH,
    SDLF_UNARY_ATANH,
    SDLF_UNARY_SIGN, /* -1, 0 or 1 */
    SDLF_UNARY_FUNCTION_COUNT
} sdlf_unary_function;
typedef struct sdlf_unary_options {
    const char *name;
    int function;      /* sdlf_unary_function */
    float alpha;       /* elu, celu: default 1; selu: 1.6732632; hard_sigmoid: 0.2 */
    float beta;        /* selu: default 1.050701; hard_sigmoid: default 0.5 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_unary_options;
sdlf_node sdlf_unary(sdlf_model *model, sdlf_node x, const sdlf_unary_options *options);

/* In training, y = x / (1 - probability), or 0 with that probability,
 * drawn independently for each element and each step. In inference, y =
 * x. */
typedef struct sdlf_dropout_options {
    const char *name;
    float probability; /* in [0, 1) */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_dropout_options;
sdlf_node sdlf_dropout(sdlf_model *model, sdlf_node x, const sdlf_dropout_options *options);

/* The sum of two nodes of the same shape, for residual connections. Nothing is broadcast. */
sdlf_node sdlf_add(sdlf_model *model, sdlf_node a, sdlf_node b);

/* A function of two nodes of one element type, or of a node and a number. Comparisons return bool and have no
 * gradient. */
typedef enum sdlf_binary_layer_function {
    SDLF_LAYER_ADD = 0,
    SDLF_LAYER_SUBTRACT,
    SDLF_LAYER_MULTIPLY,
    SDLF_LAYER_DIVIDE,
    SDLF_LAYER_POWER,
    SDLF_LAYER_MINIMUM,
    SDLF_LAYER_MAXIMUM,
    SDLF_LAYER_PRELU,     /* a, or b a where a is negative */
    SDLF_LAYER_REMAINDER, /* of division rounded toward zero: it has a's sign */
    SDLF_LAYER_MODULO,    /* of division rounded down: it has b's sign */
    SDLF_LAYER_BIT_AND,   /* this and the next four are for integers */
    SDLF_LAYER_BIT_OR,
    SDLF_LAYER_BIT_XOR,
    SDLF_LAYER_SHIFT_LEFT,
    SDLF_LAYER_SHIFT_RIGHT,
    SDLF_LAYER_EQUAL,
    SDLF_LAYER_LESS,
    SDLF_LAYER_LESS_EQUAL,
    SDLF_LAYER_GREATER,
    SDLF_LAYER_GREATER_EQUAL,
    SDLF_LAYER_AND, /* of bool, as are or and xor; for "not x", compare x with 0 */
    SDLF_LAYER_OR,
    SDLF_LAYER_XOR,
    SDLF_LAYER_FUNCTION_COUNT
} sdlf_binary_layer_function;
typedef struct sdlf_binary_layer_options {
    const char *name;
    int function;      /* sdlf_binary_layer_function */
    float scalar;      /* with one input: the number that replaces the other */
    bool scalar_first; /* with one input: number op x instead of x op number */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_binary_layer_options;
sdlf_node sdlf_binary(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_binary_layer_options *options);

/* condition ? a : b. `condition` is bool; a and b have the same element type. */
sdlf_node sdlf_select(sdlf_model *model, sdlf_node condition, sdlf_node a, sdlf_node b);

#ifdef __cplusplus
}
#endif

#endif
