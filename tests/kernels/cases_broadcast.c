/* SPDX-License-Identifier: MIT */
/* Cases of binary, binary_backward and select: every function, with every way of broadcasting operands.
 *
 * Tolerances: one rounding, 4; powers and divisions by squares, 64, because an error in an exponent grows. */
#include "kernels.h"

static const char *const names[SDLF_BINARY_FUNCTION_COUNT] = {
    "add",         "subtract",  "multiply", "divide",     "power",  "minimum", "maximum",
    "prelu",       "remainder", "modulo",   "bit_and",    "bit_or", "bit_xor", "shift_left",
    "shift_right", "equal",     "less",     "less_equal", "and",    "or",      "xor",
};

typedef enum way { WHOLE, ROWS, COLUMNS, SCALAR, TURNED, NUMBER_SECOND, NUMBER_FIRST, WAYS } way;
static const char *const way_names[WAYS] = {"whole", "rows", "columns", "one", "turned", "number", "number first"};

static const sdlf_shape shape = {4, {3, 5, 7, 11}};

/* The second operand for that way of broadcasting; absent if it is a scalar option. */
static sdlf_tensor second(sdlf_dtype dtype, way how)
{
    switch (how) {
    case ROWS: return sdlf_tensor_broadcast(kernel_tensor(dtype, sdlf_shape(5, 1, 1)), shape);
    case COLUMNS: return sdlf_tensor_broadcast(kernel_tensor(dtype, sdlf_shape(3, 1, 1, 11)), shape);
    case SCALAR: return sdlf_tensor_broadcast(kernel_tensor(dtype, SDLF_SCALAR), shape);
    case TURNED: return sdlf_tensor_transpose(kernel_tensor(dtype, sdlf_shape(11, 5, 7, 3)), 0, 3);
    case NUMBER_SECOND:
    case NUMBER_FIRST: return (sdlf_tensor){.dtype = SDLF_NONE};
    default: return kernel_tensor(dtype, shape);
    }
}

static kernel_case of(sdlf_binary_function function, sdlf_dtype dtype, way how)
{
    bool truth = function >= SDLF_BINARY_EQUAL;
    kernel_case made = {.operation = {.kind = SDLF_BINARY, .binary = {.function = function, .scalar = 2}}};
    made.operation.in[how == NUMBER_FIRST ? 1 : 0] = kernel_tensor(dtype, shape);
    made.operation.in[how == NUMBER_FIRST ? 0 : 1] = second(dtype, how);
    made.operation.out[0] = kernel_tensor(truth ? SDLF_BOOL : dtype, shape);
    made.tolerance = truth ? 0 : function == SDLF_BINARY_POWER ? 64 : 4;
    for (int i = 0; i < 2; i++) {
        made.in[i].values = function == SDLF_BINARY_POWER ? VALUES_POSITIVE : VALUES_UNIFORM;
        if (truth || function == SDLF_BINARY_MINIMUM || function == SDLF_BINARY_MAXIMUM)
            made.in[i].values = VALUES_GRID_NAN;
        if (!sdlf_dtype_is_float(dtype)) made.in[i] = (kernel_fill){VALUES_INTEGERS, dtype == SDLF_BOOL ? 2 : 100};
    }
    if (!sdlf_dtype_is_float(dtype)) made.tolerance = 0;
    return made;
}

static void binary_cases(kernel_sink *sink, sdlf_dtype t)
{
    for (int function = 0; function < SDLF_BINARY_AND; function++) {
        if (function >= SDLF_BINARY_BIT_AND && function < SDLF_BINARY_EQUAL) continue; /* integers only */
        for (int how = 0; how < WAYS; how++) {
            kernel_case made = of((sdlf_binary_function)function, t, (way)how);
            const char *type = sdlf_dtype_name(t);
            kernel_emit(sink, &made, "%s of %s, %s", names[function], type, way_names[how]);
            if (function >= SDLF_BINARY_EQUAL || how == NUMBER_FIRST) continue;
            made.aliased = true;
            kernel_emit(sink, &made, "%s of %s, %s", names[function], type, way_names[how]);
        }
    }
    kernel_case cubes = of(SDLF_BINARY_POWER, t, NUMBER_SECOND);
    cubes.operation.binary.scalar = 3;
    cubes.in[0].values = VALUES_UNIFORM;
    kernel_emit(sink, &cubes, "cubes of %s", sdlf_dtype_name(t));
}

static void integer_cases(kernel_sink *sink)
{
    static const sdlf_dtype types[] = {SDLF_INT32, SDLF_INT64, SDLF_UINT8, SDLF_INT8, SDLF_BOOL};
    for (int i = 0; i < 5; i++) {
        for (int function = 0; function < SDLF_BINARY_FUNCTION_COUNT; function++) {
            bool logic = function >= SDLF_BINARY_AND, truth = function >= SDLF_BINARY_EQUAL;
            if (function == SDLF_BINARY_PRELU || (types[i] == SDLF_BOOL ? !truth : logic)) continue;
            for (int how = 0; how < WAYS; how++) {
                kernel_case made = of((sdlf_binary_function)function, types[i], (way)how);
                kernel_emit(sink, &made, "%s of %s, %s", names[function], sdlf_dtype_name(types[i]), way_names[how]);
            }
        }
    }
}

static void backward_cases(kernel_sink *sink, sdlf_dtype t)
{
    for (int function = 0; function < SDLF_BINARY_BIT_AND; function++) {
        for (int how = 0; how < WAYS; how++) {
            for (int wanted = 1; wanted < 4; wanted++) {
                kernel_case made = of((sdlf_binary_function)function, t, (way)how);
                sdlf_operation *o = &made.operation;
                o->kind = SDLF_BINARY_BACKWARD;
                o->in[2] = kernel_tensor(t, shape);
                o->out[0] = (sdlf_tensor){.dtype = SDLF_NONE};
                for (int i = 0; i < 2; i++) {
                    if (wanted >> i & 1) o->out[i] = kernel_tensor(t, shape);
                    if (made.in[i].values == VALUES_GRID_NAN) made.in[i].values = VALUES_GRID;
                    if (function == SDLF_BINARY_DIVIDE) made.in[i].values = VALUES_POSITIVE;
                }
                made.tolerance = function == SDLF_BINARY_POWER || function == SDLF_BINARY_DIVIDE ? 256 : 4;
                bool of_a_number = (how == NUMBER_SECOND && wanted & 2) || (how == NUMBER_FIRST && wanted & 1);
                if (!of_a_number) kernel_emit(sink, &made, "%s, %s, %d", names[function], way_names[how], wanted);
            }
        }
    }
}

static void select_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sdlf_dtype types[] = {SDLF_FLOAT16, SDLF_UINT8, SDLF_INT32, SDLF_INT64, SDLF_BOOL};
    for (int i = 0; i < (t == SDLF_FLOAT32 ? 6 : 1); i++) {
        sdlf_dtype dtype = i == 0 ? t : types[i - 1];
        for (int how = 0; how <= NUMBER_SECOND; how++) {
            for (int swapped = 0; swapped < 2; swapped++) {
                kernel_case made = {.operation = {.kind = SDLF_SELECT}};
                made.operation.in[0] = second(SDLF_BOOL, how == NUMBER_SECOND ? WHOLE : (way)(how + swapped) % SCALAR);
                made.operation.in[1 + swapped] = kernel_tensor(dtype, shape);
                made.operation.in[2 - swapped] = second(dtype, (way)how);
                made.operation.out[0] = kernel_tensor(dtype, shape);
                made.in[0] = (kernel_fill){VALUES_INTEGERS, 2};
                made.in[1].values = made.in[2].values = VALUES_ANYTHING;
                kernel_emit(sink, &made, "%s%s", way_names[how], swapped ? " swapped" : "");
            }
        }
    }
}

void broadcast_cases(kernel_sink *sink, sdlf_dtype t)
{
    binary_cases(sink, t);
    backward_cases(sink, t);
    select_cases(sink, t);
    if (t == SDLF_FLOAT32) integer_cases(sink);
}

void broadcast_bench(kernel_sink *sink, sdlf_dtype t)
{
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(64, 32, 28, 28));
    kernel_case made = {.operation = {.kind = SDLF_BINARY, .in = {x, x}, .out = {x}}};
    made.operation.binary.function = SDLF_BINARY_MULTIPLY;
    kernel_emit(sink, &made, "64x32x28x28");
    made.operation.in[1] = sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(32, 1, 1)), x.shape);
    kernel_emit(sink, &made, "64x32x28x28 channels");
    made.operation.in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    kernel_emit(sink, &made, "64x32x28x28 number");
}
