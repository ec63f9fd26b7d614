/* SPDX-License-Identifier: MIT */
/* Shared by the case generators: the activations to try, and case names. */
#include "kernels.h"

#include <stdarg.h>
#include <stdio.h>

const sdlf_activation kernel_activation[KERNEL_ACTIVATIONS] = {
    {.function = SDLF_IDENTITY},
    {.function = SDLF_RELU},
    {.function = SDLF_CLIP, .low = -0.3f, .high = 0.4f},
    {.function = SDLF_LEAKY_RELU, .slope = 0.1f},
    {.function = SDLF_SIGMOID},
    {.function = SDLF_TANH},
    {.function = SDLF_SILU},
    {.function = SDLF_HARD_SWISH},
    {.function = SDLF_ELU, .alpha = 1.5f},
    {.function = SDLF_SELU, .alpha = 1.67f, .beta = 1.05f},
    {.function = SDLF_CELU, .alpha = 0.7f},
    {.function = SDLF_GELU},
    {.function = SDLF_GELU_TANH},
    {.function = SDLF_MISH},
    {.function = SDLF_SOFTPLUS},
    {.function = SDLF_SOFTSIGN},
    {.function = SDLF_HARD_SIGMOID, .alpha = 0.8f, .beta = 0.5f},
    {.function = SDLF_ERF},
    {.function = SDLF_SQRT},
    {.function = SDLF_EXP},
    {.function = SDLF_LOG},
    {.function = SDLF_ABS},
    {.function = SDLF_NEGATE},
    {.function = SDLF_RECIPROCAL},
    {.function = SDLF_FLOOR},
    {.function = SDLF_CEIL},
    {.function = SDLF_ROUND},
    {.function = SDLF_SIN},
    {.function = SDLF_COS},
    {.function = SDLF_TAN},
    {.function = SDLF_ASIN},
    {.function = SDLF_ACOS},
    {.function = SDLF_ATAN},
    {.function = SDLF_SINH},
    {.function = SDLF_COSH},
    {.function = SDLF_ASINH},
    {.function = SDLF_ACOSH},
    {.function = SDLF_ATANH},
    {.function = SDLF_SIGN},
};
const char *const kernel_activation_name[KERNEL_ACTIVATIONS] = {
    "",       " relu",  " clip", " leaky_relu", " sigmoid", " tanh",       " silu",     " hard_swish",   " elu",
    " selu",  " celu",  " gelu", " gelu_tanh",  " mish",    " softplus",   " softsign", " hard_sigmoid", " erf",
    " sqrt",  " exp",   " log",  " abs",        " negate",  " reciprocal", " floor",    " ceil",         " round",
    " sin",   " cos",   " tan",  " asin",       " acos",    " atan",       " sinh",     " cosh",         " asinh",
    " acosh", " atanh", " sign",
};

sdlf_dtype kernel_dtype(const sdlf_operation *operation)
{
    int first = 0;
    while (first < SDLF_MAX_OUTPUTS - 1 && !sdlf_tensor_present(&operation->out[first])) first++;
    return operation->out[first].dtype;
}

void kernel_emit(kernel_sink *sink, const kernel_case *made, const char *format, ...)
{
    kernel_case named = *made;
    char text[120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(named.name, sizeof named.name, "%s %s%s %s", sdlf_operation_type(&made->operation)->name, text,
             made->aliased ? " in place" : "", sdlf_dtype_name(kernel_dtype(&made->operation)));
    sink->take(sink, &named);
}
