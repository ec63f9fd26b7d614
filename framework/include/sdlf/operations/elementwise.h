/* SPDX-License-Identifier: MIT */
/* Elementwise functions: what the kinds `activation_forward`, `activation_backward` and `binary` and every epilogue can
 * apply. <sdlf/operations/kinds.h> has the contracts of these kinds.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used. */
#ifndef SDLF_OPERATIONS_ELEMENTWISE_H
#define SDLF_OPERATIONS_ELEMENTWISE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* f(x), unless the name says it, then f'(x) as activation_backward computes it: from y = f(x), or from x if the line
 * ends with (x). */
typedef enum sdlf_activation_function {
    SDLF_IDENTITY = 0, /* none */
    SDLF_RELU,         /* max(x, 0); y > 0 */
    SDLF_CLIP,         /* min(max(x, low), high), so ReLU6 is clip to [0, 6]; low < y < high */
    SDLF_LEAKY_RELU,   /* x > 0 ? x : slope x; y > 0 ? 1 : slope */
    SDLF_SIGMOID,      /* s(x) = 1 / (1 + exp(-x)); y (1 - y) */
    SDLF_TANH,         /* 1 - y^2 */
    SDLF_SILU,         /* x s(x); s(x) (1 + x (1 - s(x)))                                                       (x) */
    SDLF_HARD_SWISH,   /* x h(x), h(x) = min(max(x / 6 + 1/2, 0), 1); x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 1/2     (x) */
    SDLF_ELU,          /* x > 0 ? x : alpha (exp(x) - 1), alpha >= 0; y > 0 ? 1 : y + alpha */
    SDLF_SELU,         /* beta elu(x), beta > 0; y > 0 ? beta : y + alpha beta */
    SDLF_CELU,         /* x > 0 ? x : alpha (exp(x / alpha) - 1), alpha > 0; y > 0 ? 1 : y / alpha + 1 */
    SDLF_GELU,         /* x P(x), P(x) = (1 + erf(x / sqrt 2)) / 2; P(x) + x exp(-x^2 / 2) / sqrt(2 pi)          (x) */
    SDLF_GELU_TANH,    /* x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)                               (x) */
    SDLF_MISH,         /* x t, t = tanh(softplus(x)); t + x (1 - t^2) s(x)                                       (x) */
    SDLF_SOFTPLUS,     /* log(1 + exp(x)); 1 - exp(-y) */
    SDLF_SOFTSIGN,     /* x / (1 + |x|); (1 - |y|)^2 */
    SDLF_HARD_SIGMOID, /* min(max(alpha x + beta, 0), 1); 0 < y < 1 ? alpha : 0 */
    SDLF_ERF,          /* 2 / sqrt(pi) exp(-x^2)                                                                 (x) */
    SDLF_SQRT,         /* 1 / (2 y) */
    SDLF_EXP,          /* y */
    SDLF_LOG,          /* 1 / x                                                                                  (x) */
    SDLF_ABS,          /* sign(x), 0 at 0                                                                        (x) */
    SDLF_NEGATE,       /* -1 */
    SDLF_RECIPROCAL,   /* -y^2 */
    SDLF_FLOOR,        /* 0 */
    SDLF_CEIL,         /* 0 */
    SDLF_ROUND,        /* to the nearest integer, ties to even; 0 */
    SDLF_SIN,          /* cos(x)                                                                                 (x) */
    SDLF_COS,          /* -sin(x)                                                                                (x) */
    SDLF_TAN,          /* 1 + y^2 */
    SDLF_ASIN,         /* 1 / sqrt(1 - x^2)                                                                      (x) */
    SDLF_ACOS,         /* -1 / sqrt(1 - x^2)                                                                     (x) */
    SDLF_ATAN,         /* 1 / (1 + x^2)                                                                          (x) */
    SDLF_SINH,         /* cosh(x)                                                                                (x) */
    SDLF_COSH,         /* sinh(x)                                                                                (x) */
    SDLF_ASINH,        /* 1 / sqrt(x^2 + 1)                                                                      (x) */
    SDLF_ACOSH,        /* 1 / sqrt(x^2 - 1)                                                                      (x) */
    SDLF_ATANH,        /* 1 / (1 - x^2)                                                                          (x) */
    SDLF_SIGN,         /* -1, 0 or 1; 0 */
    SDLF_ACTIVATION_FUNCTION_COUNT
} sdlf_activation_function;

typedef struct sdlf_activation {
    sdlf_activation_function function;
    float low, high;   /* clip */
    float slope;       /* leaky_relu; in general the slope >= 0 of the negative side */
    float alpha, beta; /* elu, selu, celu, hard_sigmoid */
} sdlf_activation;

/* True if f' is computed from x, so that activation_backward's operand v is x; otherwise it is y. */
static inline bool sdlf_activation_reads_input(sdlf_activation_function function)
{
    switch (function) {
    case SDLF_SILU:
    case SDLF_HARD_SWISH:
    case SDLF_GELU:
    case SDLF_GELU_TANH:
    case SDLF_MISH:
    case SDLF_ERF:
    case SDLF_LOG:
    case SDLF_ABS:
    case SDLF_SIN:
    case SDLF_COS:
    case SDLF_ASIN:
    case SDLF_ACOS:
    case SDLF_ATAN:
    case SDLF_SINH:
    case SDLF_COSH:
    case SDLF_ASINH:
    case SDLF_ACOSH:
    case SDLF_ATANH: return true;
    default: return false;
    }
}

/* Functions of two elements of one type. Integers wrap around. Integer division truncates toward zero, and division by
 * 0 gives 0; so does a negative power, except of 1 and -1. Then the derivatives with respect to a and b, by which
 * binary_backward multiplies dy. */
typedef enum sdlf_binary_function {
    SDLF_BINARY_ADD,       /* a + b;          1, 1 */
    SDLF_BINARY_SUBTRACT,  /* a - b;          1, -1 */
    SDLF_BINARY_MULTIPLY,  /* a b;            b, a */
    SDLF_BINARY_DIVIDE,    /* a / b;          1 / b, -a / b^2 */
    SDLF_BINARY_POWER,     /* a^b;            b a^(b - 1), a^b log a (0 where a = 0) */
    SDLF_BINARY_MINIMUM,   /* NaN propagates; 1 for the smaller, 1/2 each if they are equal */
    SDLF_BINARY_MAXIMUM,   /* NaN propagates; 1 for the larger, 1/2 each if they are equal */
    SDLF_BINARY_PRELU,     /* a < 0 ? b a : a; a < 0 ? b : 1, a < 0 ? a : 0. Only floats */
    SDLF_BINARY_REMAINDER, /* a - b trunc(a / b), has a's sign; 1, -trunc(a / b). Integers: 0 if b is 0 */
    SDLF_BINARY_MODULO,    /* a - b floor(a / b), has b's sign; 1, -floor(a / b). Integers: 0 if b is 0 */
    SDLF_BINARY_BIT_AND,   /* up to shift_right: only for integers */
    SDLF_BINARY_BIT_OR,
    SDLF_BINARY_BIT_XOR,
    SDLF_BINARY_SHIFT_LEFT,  /* a 2^b, of which the low bits are kept; 0 unless 0 <= b < 64 */
    SDLF_BINARY_SHIFT_RIGHT, /* floor(a / 2^b); b counts as 63 unless 0 <= b < 64 */
    SDLF_BINARY_EQUAL,       /* from here on y is bool, and there is no derivative */
    SDLF_BINARY_LESS,        /* a < b */
    SDLF_BINARY_LESS_EQUAL,  /* a <= b */
    SDLF_BINARY_AND,         /* from here on a and b are bool too */
    SDLF_BINARY_OR,
    SDLF_BINARY_XOR,
    SDLF_BINARY_FUNCTION_COUNT
} sdlf_binary_function;

typedef struct sdlf_binary_options {
    sdlf_binary_function function;
    double scalar; /* replaces an absent a or b, converted to the other's type */
} sdlf_binary_options;

#ifdef __cplusplus
}
#endif
#endif
