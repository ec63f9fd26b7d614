/* SPDX-License-Identifier: MIT */
/* unary: y = f(x) for the functions of <sdlf/operations/elementwise.h> that have no layer of their own; dx = dy
 * f'(x).
 *
 * If alpha and beta are zero, they get the usual values of the function: a sigmoid of slope 0 or an elu without a
 * negative side would be useless. */
#include "layers/activation.h"

/* In the order of sdlf_unary_function, which is that of sdlf_activation_function from silu on. */
static const char *const functions[] = {"silu", "hard_swish", "elu",      "selu",         "celu",  "gelu", "gelu_tanh",
                                        "mish", "softplus",   "softsign", "hard_sigmoid", "erf",   "sqrt", "exp",
                                        "log",  "abs",        "negate",   "reciprocal",   "floor", "ceil", "round",
                                        "sin",  "cos",        "tan",      "asin",         "acos",  "atan", "sinh",
                                        "cosh", "asinh",      "acosh",    "atanh",        "sign",  NULL};
_Static_assert((int)SDLF_ACTIVATION_FUNCTION_COUNT - (int)SDLF_SILU == (int)SDLF_UNARY_FUNCTION_COUNT,
               "a function is missing");

static const sdlf_field fields[] = {
    {.name = "function",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_unary_options, function),
     .choices = functions,
     .help = "function of each element"},
    {.name = "alpha",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_unary_options, alpha),
     .minimum = -1e30,
     .maximum = 1e30,
     .help = "for elu, celu (1), selu (1.6732632), hard_sigmoid (0.2); 0 means these"},
    {.name = "beta",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_unary_options, beta),
     .minimum = -1e30,
     .maximum = 1e30,
     .help = "for selu (1.050701), hard_sigmoid (0.5); 0 means these"},
    {.name = NULL},
};

static sdlf_activation activation_of(const sdlf_layer *layer)
{
    const sdlf_unary_options *options = layer->options;
    sdlf_activation activation = {.function = (sdlf_activation_function)(options->function + SDLF_SILU)};
    float alpha = 0, beta = 0;
    switch (activation.function) {
    case SDLF_ELU:
    case SDLF_CELU: alpha = 1; break;
    case SDLF_SELU: alpha = 1.67326319217681884765625f, beta = 1.05070102214813232421875f; break;
    case SDLF_HARD_SIGMOID: alpha = 0.2f, beta = 0.5f; break;
    default: return activation;
    }
    activation.alpha = options->alpha != 0 ? options->alpha : alpha;
    activation.beta = options->beta != 0 ? options->beta : beta;
    return activation;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_forward(context, activation_of(layer));
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_backward(context, activation_of(layer));
}

const sdlf_layer_class sdlf_unary_class = {
    .name = "unary",
    .summary = "a function of each element",
    .options_size = sizeof(sdlf_unary_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_unary(sdlf_model *model, sdlf_node x, const sdlf_unary_options *options)
{
    return sdlf_model_add(model, &sdlf_unary_class, options, &x, 1);
}
