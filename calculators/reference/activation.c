/* SPDX-License-Identifier: MIT */
/* Activations: y = f(x) and dx = dy f'(x), where f' is computed from y, or from x if y does not determine it. */
#include "calculators/reference/reference.h"

#include <math.h>

static const double root_of_half = 0.70710678118654752440; /* 1 / sqrt(2) */
static const double root_of_2_by_pi = 0.79788456080286535588;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* The probability that a normal variable is below x. */
static double normal(double x)
{
    return 0.5 * (1 + erf(x * root_of_half));
}

static double gelu_argument(double x)
{
    return root_of_2_by_pi * (x + 0.044715 * x * x * x);
}

/* All of them propagate NaN. */
double activate_reference(const sdlf_activation *activation, double x)
{
    double alpha = (double)activation->alpha, beta = (double)activation->beta;
    switch (activation->function) {
    case SDLF_RELU: return x < 0 ? 0 : x;
    case SDLF_CLIP: return clamp(x, (double)activation->low, (double)activation->high);
    case SDLF_LEAKY_RELU: return x < 0 ? (double)activation->slope * x : x;
    case SDLF_SIGMOID: return sigmoid(x);
    case SDLF_TANH: return tanh(x);
    case SDLF_SILU: return x * sigmoid(x);
    case SDLF_HARD_SWISH: return x * clamp(x / 6 + 0.5, 0, 1);
    case SDLF_ELU: return x > 0 ? x : alpha * expm1(x);
    case SDLF_SELU: return beta * (x > 0 ? x : alpha * expm1(x));
    case SDLF_CELU: return x > 0 ? x : alpha * expm1(x / alpha);
    case SDLF_GELU: return x * normal(x);
    case SDLF_GELU_TANH: return 0.5 * x * (1 + tanh(gelu_argument(x)));
    case SDLF_MISH: return x * tanh(softplus(x));
    case SDLF_SOFTPLUS: return softplus(x);
    case SDLF_SOFTSIGN: return x / (1 + fabs(x));
    case SDLF_HARD_SIGMOID: return clamp(alpha * x + beta, 0, 1);
    case SDLF_ERF: return erf(x);
    case SDLF_SQRT: return sqrt(x);
    case SDLF_EXP: return exp(x);
    case SDLF_LOG: return log(x);
    case SDLF_ABS: return fabs(x);
    case SDLF_NEGATE: return -x;
    case SDLF_RECIPROCAL: return 1 / x;
    case SDLF_FLOOR: return floor(x);
    case SDLF_CEIL: return ceil(x);
    case SDLF_ROUND: return rint(x); /* in the default rounding mode: ties to even */
    case SDLF_SIN: return sin(x);
    case SDLF_COS: return cos(x);
    case SDLF_TAN: return tan(x);
    case SDLF_ASIN: return asin(x);
    case SDLF_ACOS: return acos(x);
    case SDLF_ATAN: return atan(x);
    case SDLF_SINH: return sinh(x);
    case SDLF_COSH: return cosh(x);
    case SDLF_ASINH: return asinh(x);
    case SDLF_ACOSH: return acosh(x);
    case SDLF_ATANH: return atanh(x);
    case SDLF_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x; /* NaN is preserved */
    default: return x;
    }
}

/* Derivatives that are computed from x. */
static double derivative_from_input(sdlf_activation_function function, double x)
{
    double s = sigmoid(x), t;
    switch (function) {
    case SDLF_SILU: return s * (1 + x * (1 - s));
    case SDLF_HARD_SWISH: return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case SDLF_GELU: return normal(x) + x * exp(-x * x / 2) * root_of_half * root_of_2_by_pi * root_of_half;
    case SDLF_GELU_TANH:
        t = tanh(gelu_argument(x));
        if (t == 1 || t == -1) return t > 0 ? 1 : 0; /* x^2 may overflow */
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root_of_2_by_pi * (1 + 3 * 0.044715 * x * x);
    case SDLF_MISH: t = tanh(softplus(x)); return t + x * (1 - t * t) * s;
    case SDLF_ERF: return root_of_2_by_pi * 2 * root_of_half * exp(-x * x);
    case SDLF_LOG: return 1 / x;
    case SDLF_SIN: return cos(x);
    case SDLF_COS: return -sin(x);
    case SDLF_ASIN: return 1 / sqrt((1 - x) * (1 + x));
    case SDLF_ACOS: return -1 / sqrt((1 - x) * (1 + x));
    case SDLF_ATAN: return 1 / (1 + x * x);
    case SDLF_SINH: return cosh(x);
    case SDLF_COSH: return sinh(x);
    case SDLF_ASINH: return 1 / sqrt(x * x + 1);
    case SDLF_ACOSH: return 1 / sqrt((x - 1) * (x + 1));
    case SDLF_ATANH: return 1 / ((1 - x) * (1 + x));
    default: return x > 0 ? 1 : x < 0 ? -1 : 0; /* abs */
    }
}

/* v is y, or x if the function requires that. */
double activation_slope_reference(const sdlf_activation *activation, double v)
{
    double alpha = (double)activation->alpha, beta = (double)activation->beta;
    if (sdlf_activation_reads_input(activation->function)) return derivative_from_input(activation->function, v);
    switch (activation->function) {
    case SDLF_RELU: return v > 0 ? 1 : 0;
    case SDLF_CLIP: return v > (double)activation->low && v < (double)activation->high ? 1 : 0;
    case SDLF_LEAKY_RELU: return v > 0 ? 1 : (double)activation->slope;
    case SDLF_SIGMOID: return v * (1 - v);
    case SDLF_TANH: return 1 - v * v;
    case SDLF_ELU: return v > 0 ? 1 : v + alpha;
    case SDLF_SELU: return v > 0 ? beta : v + alpha * beta;
    case SDLF_CELU: return v > 0 ? 1 : v / alpha + 1;
    case SDLF_SOFTPLUS: return 1 - exp(-v);
    case SDLF_SOFTSIGN: return (1 - fabs(v)) * (1 - fabs(v));
    case SDLF_HARD_SIGMOID: return v > 0 && v < 1 ? alpha : 0;
    case SDLF_SQRT: return 1 / (2 * v);
    case SDLF_EXP: return v;
    case SDLF_NEGATE: return -1;
    case SDLF_RECIPROCAL: return -v * v;
    case SDLF_TAN: return 1 + v * v;
    case SDLF_FLOOR:
    case SDLF_CEIL:
    case SDLF_ROUND:
    case SDLF_SIGN: return 0;
    default: return 1;
    }
}

sdlf_status activation_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) put(y, e, activate_reference(&operation->activation, get(x, e)));
    return SDLF_OK;
}

sdlf_status activation_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *v = &operation->in[0], *dy = &operation->in[1], *dx = &operation->out[0];
    int64_t count = sdlf_tensor_count(dx);
    for (int64_t e = 0; e < count; e++)
        put(dx, e, get(dy, e) * activation_slope_reference(&operation->activation, get(v, e)));
    return SDLF_OK;
}
