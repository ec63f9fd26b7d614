/* SPDX-License-Identifier: MIT */
/* Cases of reduce, add, activations and dropout.
 *
 * Tolerances: a sum of n values up to 1, n rounding errors; functions with an exponential, 16; additions, maxima and
 * the other activations are rounded once or not at all, 4. */
#include "kernels.h"

static bool has_exponential(int activation)
{
    bool rare = activation >= SDLF_SIN && activation < SDLF_SIGN;
    return rare || (activation >= SDLF_SIGMOID && activation != SDLF_HARD_SWISH && activation < SDLF_ABS);
}

/* Positive inputs for functions that require them or are steep near zero, else any. */
static kernel_values values_for(int activation)
{
    bool positive = activation == SDLF_SQRT || activation == SDLF_LOG || activation == SDLF_RECIPROCAL;
    if (activation == SDLF_ACOSH) return VALUES_OFFSET;
    return positive ? VALUES_POSITIVE : VALUES_UNIFORM;
}

static void reduce_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const char *const names[] = {"sum", "mean", "max", "sum of squares", "min", "product"};
    const sdlf_shape shapes[] = {sdlf_shape(1), sdlf_shape(1037), sdlf_shape(17, 33), sdlf_shape(5, 7, 9),
                                 sdlf_shape(2, 3, 1, 65)};
    for (int i = 0; i < 5; i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int function = 0; function < SDLF_REDUCTION_COUNT; function++) {
                sdlf_shape kept = shapes[i];
                kept.dim[axis] = 1;
                kernel_case made = {.operation = {.kind = SDLF_REDUCE, .in = {kernel_tensor(t, shapes[i])}}};
                made.operation.out[0] = kernel_tensor(t, function % 2 ? kept : sdlf_shape_without(kept, axis));
                made.operation.reduce.function = (sdlf_reduction)function;
                made.operation.reduce.axis = axis;
                bool exact = function == SDLF_REDUCE_MAX || function == SDLF_REDUCE_MIN;
                made.tolerance = exact ? 0 : (double)shapes[i].dim[axis] + 4;
                kernel_emit(sink, &made, "%s of %s axis %d", names[function], sdlf_shape_print(shapes[i]).text, axis);
            }
        }
    }
    kernel_case nan = {.operation = {.kind = SDLF_REDUCE, .in = {kernel_tensor(t, sdlf_shape(9, 4))}}};
    nan.in[0].values = VALUES_GRID_NAN;
    nan.operation.out[0] = kernel_tensor(t, sdlf_shape(9));
    nan.operation.reduce.axis = 1;
    nan.operation.reduce.function = SDLF_REDUCE_MAX;
    kernel_emit(sink, &nan, "max with NaN");
    nan.operation.reduce.function = SDLF_REDUCE_MIN;
    kernel_emit(sink, &nan, "min with NaN");
}

static void add_cases(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape)
{
    for (int activation = 0; activation < KERNEL_EPILOGUES; activation++) {
        for (int alias = 0; alias < 3; alias++) {
            sdlf_tensor x = kernel_tensor(t, shape);
            kernel_case made = {.operation = {.kind = SDLF_ADD, .in = {x, x}, .out = {x}}};
            made.operation.add.activation = kernel_activation[activation];
            made.aliased = alias > 0;
            made.alias = alias - 1;
            made.tolerance = has_exponential(activation) ? 16 : 4;
            kernel_emit(sink, &made, "%s%s%s", sdlf_shape_print(shape).text, kernel_activation_name[activation],
                        alias == 2 ? " of b" : "");
        }
    }
}

/* Compute with the forward pass the y that the backward pass reads, if it reads y instead of x. */
static void activate_first(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_activation_reads_input(operation->activation.function)) return;
    sdlf_operation forward = {.kind = SDLF_ACTIVATION_FORWARD, .in = {operation->in[0]}, .out = {operation->in[0]}};
    forward.activation = operation->activation;
    kernel_prepare(calculator, &forward);
}

static void activation_cases(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape)
{
    for (int activation = 0; activation < KERNEL_ACTIVATIONS; activation++) {
        for (int aliased = 0; aliased < 2; aliased++) {
            sdlf_tensor x = kernel_tensor(t, shape);
            kernel_case made = {.operation = {.kind = SDLF_ACTIVATION_FORWARD, .in = {x}, .out = {x}}};
            made.operation.activation = kernel_activation[activation];
            made.aliased = aliased;
            made.tolerance = has_exponential(activation) ? 16 : 4;
            made.in[0].values = values_for(activation);
            kernel_emit(sink, &made, "%s%s", sdlf_shape_print(shape).text, kernel_activation_name[activation]);
            made.in[0].values = VALUES_WIDE;
            kernel_emit(sink, &made, "%s%s wide", sdlf_shape_print(shape).text, kernel_activation_name[activation]);

            made.operation.kind = SDLF_ACTIVATION_BACKWARD;
            made.operation.in[1] = x;
            made.in[0].values = values_for(activation);
            made.alias = 1;
            made.prepare = activate_first;
            kernel_emit(sink, &made, "%s%s", sdlf_shape_print(shape).text, kernel_activation_name[activation]);
        }
    }
}

/* Far from 0, where squares and cubes of x overflow while f and f' do not: f tends to 0, to x or to a constant. */
static void huge_cases(kernel_sink *sink, sdlf_dtype t)
{
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(523));
    int64_t limit = t == SDLF_FLOAT32 ? 120 : 1000;
    for (int activation = 0; activation < KERNEL_ACTIVATIONS; activation++) {
        kernel_case made = {.operation = {.kind = SDLF_ACTIVATION_FORWARD, .in = {x}, .out = {x}}};
        made.operation.activation = kernel_activation[activation];
        made.tolerance = has_exponential(activation) ? 16 : 4;
        made.in[0] = (kernel_fill){VALUES_HUGE, limit};
        kernel_emit(sink, &made, "523%s huge", kernel_activation_name[activation]);
        if (!sdlf_activation_reads_input(kernel_activation[activation].function)) continue;
        made.operation.kind = SDLF_ACTIVATION_BACKWARD;
        made.operation.in[1] = x;
        kernel_emit(sink, &made, "523%s huge", kernel_activation_name[activation]);
    }
}

static void dropout_cases(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape)
{
    static const float probabilities[] = {0, 0.25f, 0.5f, 0.999f};
    static const int64_t firsts[] = {0, 4, 1023, (INT64_C(1) << 34) + 2}; /* at the start of a group and inside it */
    for (int i = 0; i < 4; i++) {
        for (int variant = 0; variant < 4; variant++) {
            sdlf_tensor x = kernel_tensor(t, shape);
            kernel_case made = {.operation = {.kind = variant & 1 ? SDLF_DROPOUT_BACKWARD : SDLF_DROPOUT_FORWARD}};
            made.operation.in[0] = made.operation.out[0] = x;
            made.operation.in[1] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
            made.in[1] = (kernel_fill){VALUES_INTEGERS, INT64_C(1) << 40};
            made.operation.dropout.probability = probabilities[i];
            made.operation.dropout.seed = UINT64_C(0xfedcba9876543210);
            made.operation.dropout.stream = SDLF_INT64 + 7;
            made.operation.dropout.first = firsts[i];
            made.aliased = variant & 2;
            made.tolerance = 4;
            kernel_emit(sink, &made, "%s p %g", sdlf_shape_print(shape).text, (double)probabilities[i]);
        }
    }
}

void elementwise_cases(kernel_sink *sink, sdlf_dtype t)
{
    const sdlf_shape shapes[] = {sdlf_shape(1), sdlf_shape(3, 5, 7), sdlf_shape(2, 8, 8, 8), sdlf_shape(4099)};
    reduce_cases(sink, t);
    for (int i = 0; i < 4; i++) {
        add_cases(sink, t, shapes[i]);
        activation_cases(sink, t, shapes[i]);
        dropout_cases(sink, t, shapes[i]);
    }
    huge_cases(sink, t);
}

void elementwise_bench(kernel_sink *sink, sdlf_dtype t)
{
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(64, 32, 28, 28)), step = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    kernel_case add = {.operation = {.kind = SDLF_ADD, .in = {x, x}, .out = {x}}};
    kernel_emit(sink, &add, "64x32x28x28");
    kernel_case sum = {.operation = {.kind = SDLF_REDUCE, .in = {kernel_tensor(t, sdlf_shape(64, 1024))}}};
    sum.operation.out[0] = kernel_tensor(t, sdlf_shape(1024));
    kernel_emit(sink, &sum, "sum of 64x1024 axis 0");
    for (int activation = 1; activation < KERNEL_ACTIVATIONS; activation++) {
        kernel_case made = {.operation = {.kind = SDLF_ACTIVATION_FORWARD, .in = {x}, .out = {x}}};
        made.operation.activation = kernel_activation[activation];
        kernel_emit(sink, &made, "64x32x28x28%s", kernel_activation_name[activation]);
        made.operation.kind = SDLF_ACTIVATION_BACKWARD;
        made.operation.in[1] = x;
        kernel_emit(sink, &made, "64x32x28x28%s", kernel_activation_name[activation]);
    }
    kernel_case drop = {.operation = {.kind = SDLF_DROPOUT_FORWARD, .in = {x, step}, .out = {x}}};
    drop.in[1] = (kernel_fill){VALUES_INTEGERS, 9};
    drop.operation.dropout.probability = 0.5f;
    kernel_emit(sink, &drop, "64x32x28x28 p 0.5");
}
