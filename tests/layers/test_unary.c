/* SPDX-License-Identifier: MIT */
/* unary: values of every function, rejected inputs, gradients, and fusion as an epilogue of the preceding layer. */
#include "layers/gradients.h"

#include <string.h>

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_unary(model, x[0], options);
}

enum { COUNT = 6 };
static const float x[COUNT] = {-4, -1.5f, -0.25f, 0.5f, 2.5f, 5};

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static double expected(const sdlf_unary_options *options, double v)
{
    double positive = fmax(v, 0), softplus = log1p(exp(v));
    switch ((sdlf_unary_function)options->function) {
    case SDLF_UNARY_SILU: return v * sigmoid(v);
    case SDLF_UNARY_HARD_SWISH: return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    case SDLF_UNARY_ELU: return v > 0 ? v : (options->alpha != 0 ? (double)options->alpha : 1) * (exp(v) - 1);
    case SDLF_UNARY_SELU: return 1.05070098735548 * (v > 0 ? v : 1.67326324235437 * (exp(v) - 1));
    case SDLF_UNARY_CELU: return positive + fmin(0, exp(v) - 1);
    case SDLF_UNARY_GELU: return v / 2 * (1 + erf(v / sqrt(2)));
    case SDLF_UNARY_GELU_TANH: return v / 2 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case SDLF_UNARY_MISH: return v * tanh(softplus);
    case SDLF_UNARY_SOFTPLUS: return softplus;
    case SDLF_UNARY_SOFTSIGN: return v / (1 + fabs(v));
    case SDLF_UNARY_HARD_SIGMOID: return fmin(fmax(0.2 * v + 0.5, 0), 1);
    case SDLF_UNARY_ERF: return erf(v);
    case SDLF_UNARY_SQRT: return sqrt(v);
    case SDLF_UNARY_EXP: return exp(v);
    case SDLF_UNARY_LOG: return log(v);
    case SDLF_UNARY_ABS: return fabs(v);
    case SDLF_UNARY_NEGATE: return -v;
    case SDLF_UNARY_RECIPROCAL: return 1 / v;
    case SDLF_UNARY_FLOOR: return floor(v);
    case SDLF_UNARY_CEIL: return ceil(v);
    case SDLF_UNARY_SIN: return sin(v);
    case SDLF_UNARY_COS: return cos(v);
    case SDLF_UNARY_TAN: return tan(v);
    case SDLF_UNARY_ASIN: return asin(v);
    case SDLF_UNARY_ACOS: return acos(v);
    case SDLF_UNARY_ATAN: return atan(v);
    case SDLF_UNARY_SINH: return sinh(v);
    case SDLF_UNARY_COSH: return cosh(v);
    case SDLF_UNARY_ASINH: return asinh(v);
    case SDLF_UNARY_ACOSH: return acosh(v);
    case SDLF_UNARY_ATANH: return atanh(v);
    case SDLF_UNARY_SIGN: return v > 0 ? 1 : -1;
    default: return v == 2.5 ? 2 : v == -1.5 ? -2 : v == 0.5 ? 0 : round(v); /* to even */
    }
}

static void check_values(sdlf_calculator *calculator, const sdlf_unary_options *options)
{
    sdlf_plan *plan = NULL;
    float y[COUNT];
    sdlf_model *model = sdlf_model_create("values");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(COUNT));
    sdlf_output(model, "y", sdlf_unary(model, in, options));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    for (int e = 0; e < COUNT; e++) {
        double wanted = expected(options, (double)x[e]);
        if (isnan(wanted))
            CHECK(isnan(y[e]));
        else
            CHECK_CLOSE(y[e], wanted, 2e-6 * (1 + fabs(wanted)));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

static void values_match(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        for (int function = 0; function < SDLF_UNARY_FUNCTION_COUNT; function++)
            check_values(calculator, &(sdlf_unary_options){.function = function});
        check_values(calculator, &(sdlf_unary_options){.function = SDLF_UNARY_ELU, .alpha = 2.5f});
        sdlf_calculator_close(calculator);
    }
}

/* The steep ones are tried in test_kernels_gradients, where x may be kept from 0. */
static void gradients_match(void)
{
    static const int functions[] = {SDLF_UNARY_SILU,     SDLF_UNARY_HARD_SWISH, SDLF_UNARY_ELU,       SDLF_UNARY_GELU,
                                    SDLF_UNARY_SOFTPLUS, SDLF_UNARY_SOFTSIGN,   SDLF_UNARY_GELU_TANH, SDLF_UNARY_MISH,
                                    SDLF_UNARY_ERF,      SDLF_UNARY_EXP,        SDLF_UNARY_ABS};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        sdlf_unary_options options = {.function = functions[i]};
        check_gradients(&(layer_case){
            .what = "unary", .build = build, .options = &options, .input = {sdlf_shape(3, 7)}, .unit = 0.125});
    }
}

static void options_are_checked(void)
{
    check_output(build, NULL, sdlf_shape(2, 3), sdlf_shape(2, 3));
    check_integers_refused(build, NULL, sdlf_shape(2, 3));
    check_refused(build, &(sdlf_unary_options){.function = SDLF_UNARY_FUNCTION_COUNT}, sdlf_shape(3),
                  SDLF_ERROR_ARGUMENT, "function: expected 0 to 32");
}

/* In inference the convolution applies it; while training x must stay, and so the two stay apart. */
static void follows_a_convolution(void)
{
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    sdlf_model *model = sdlf_model_create("epilogue");
    sdlf_node y = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3, 8, 8));
    y = sdlf_conv2d(model, y, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}});
    y = sdlf_unary(model, y, &(sdlf_unary_options){.function = SDLF_UNARY_HARD_SWISH});
    sdlf_output(model, "y", sdlf_flatten(model, y));
    for (int training = 0; training < 2; training++) {
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(
            &plan, model,
            &(sdlf_plan_options){.batch = 2, .mode = training ? SDLF_TRAIN : SDLF_INFER, .forward = calculator}));
        int forward = 0, unary = 0;
        for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
            const sdlf_step_info step = sdlf_plan_step_info(plan, i);
            if (step.phase != SDLF_PHASE_FORWARD || strncmp(step.operation, "copy", 4) == 0) continue;
            forward++;
            unary += strcmp(step.layer, "unary") == 0;
        }
        CHECK_EQUAL(forward, training ? 3 : 1); /* the loss too */
        CHECK_EQUAL(unary, training ? 1 : 0);
        sdlf_plan_free(plan);
    }
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(values_match);
    RUN(gradients_match);
    RUN(options_are_checked);
    RUN(follows_a_convolution);
    return test_summary();
}
