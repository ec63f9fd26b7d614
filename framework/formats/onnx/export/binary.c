/* SPDX-License-Identifier: MIT */
/* Binary functions: add, binary, select. Broadcasting is the same as in ONNX, except for PRelu. */
#include "framework/formats/onnx/export/export.h"

void export_add(onnx_export *e)
{
    export_node(e, "Add", (const char *const[]){export_in(e, 0), export_in(e, 1), NULL}, NULL);
}

void export_select(onnx_export *e)
{
    export_node(e, "Where", (const char *const[]){export_in(e, 0), export_in(e, 1), export_in(e, 2), NULL}, NULL);
}

/* a, or b a where a is negative. The operator PRelu requires a slope that does not expand its input. */
static void prelu(onnx_export *e, const char *a, const char *b, bool stretches)
{
    if (!stretches) {
        export_node(e, "PRelu", (const char *const[]){a, b, NULL}, NULL);
        return;
    }
    const char *negative = export_step2(e, "Less", a, export_number(e, 0, SDLF_FLOAT32));
    const char *scaled = export_step2(e, "Mul", b, a);
    export_node(e, "Where", (const char *const[]){negative, scaled, a, NULL}, NULL);
}

/* For floats the operator Mod computes only remainders: a result whose sign differs from b's is increased by b. */
static void modulo(onnx_export *e, const char *a, const char *b)
{
    sdlf_dtype dtype = export_in_dtype(e, 0);
    export_attribute fmod[] = {export_integer("fmod", sdlf_dtype_is_float(dtype)), {0}};
    const char *const operands[] = {a, b, NULL}, *zero = export_number(e, 0, dtype);
    bool remainder = ((const sdlf_binary_layer_options *)export_options(e))->function == SDLF_LAYER_REMAINDER;
    if (remainder) fmod[0] = export_integer("fmod", 1);
    if (remainder || !sdlf_dtype_is_float(dtype)) {
        export_node(e, "Mod", operands, fmod);
        return;
    }
    const char *rest = export_step(e, "Mod", operands, fmod);
    const char *other = export_step2(
        e, "Less", export_step2(e, "Mul", export_step1(e, "Sign", rest), export_step1(e, "Sign", b)), zero);
    export_node(e, "Where", (const char *const[]){other, export_step2(e, "Add", rest, b), rest, NULL}, NULL);
}

/* The operator BitShift supports only unsigned integers. */
static void shift(onnx_export *e, const char *a, const char *b, bool left)
{
    if (export_in_dtype(e, 0) != SDLF_UINT8)
        export_refuse(e, "ONNX shifts only unsigned integers, but it is of %s", sdlf_dtype_name(export_in_dtype(e, 0)));
    export_node(e, "BitShift", (const char *const[]){a, b, NULL},
                (const export_attribute[]){export_word("direction", left ? "LEFT" : "RIGHT"), {0}});
}

void export_binary(onnx_export *e)
{
    static const char *const types[SDLF_LAYER_FUNCTION_COUNT] = {
        [SDLF_LAYER_ADD] = "Add",          [SDLF_LAYER_SUBTRACT] = "Sub",
        [SDLF_LAYER_MULTIPLY] = "Mul",     [SDLF_LAYER_DIVIDE] = "Div",
        [SDLF_LAYER_POWER] = "Pow",        [SDLF_LAYER_MINIMUM] = "Min",
        [SDLF_LAYER_MAXIMUM] = "Max",      [SDLF_LAYER_EQUAL] = "Equal",
        [SDLF_LAYER_LESS] = "Less",        [SDLF_LAYER_LESS_EQUAL] = "LessOrEqual",
        [SDLF_LAYER_GREATER] = "Greater",  [SDLF_LAYER_GREATER_EQUAL] = "GreaterOrEqual",
        [SDLF_LAYER_AND] = "And",          [SDLF_LAYER_OR] = "Or",
        [SDLF_LAYER_XOR] = "Xor",          [SDLF_LAYER_BIT_AND] = "BitwiseAnd",
        [SDLF_LAYER_BIT_OR] = "BitwiseOr", [SDLF_LAYER_BIT_XOR] = "BitwiseXor",
    };
    const sdlf_binary_layer_options *options = export_options(e);
    const char *operand[2] = {export_in(e, 0), NULL};
    bool stretches = false;
    if (e->now->input_count == 2) {
        operand[1] = export_in(e, 1);
        stretches = !sdlf_shape_equal(export_in_shape(e, 0), export_out_shape(e));
    } else {
        operand[1] = export_number(e, (double)options->scalar, export_in_dtype(e, 0));
        if (options->scalar_first) {
            const char *first = operand[1];
            operand[1] = operand[0];
            operand[0] = first;
            stretches = true;
        }
    }
    if (options->function >= SDLF_LAYER_BIT_AND && options->function < SDLF_LAYER_EQUAL) export_needs(e, 18, "it");
    if (options->function == SDLF_LAYER_SHIFT_LEFT || options->function == SDLF_LAYER_SHIFT_RIGHT)
        shift(e, operand[0], operand[1], options->function == SDLF_LAYER_SHIFT_LEFT);
    else if (options->function == SDLF_LAYER_REMAINDER || options->function == SDLF_LAYER_MODULO)
        modulo(e, operand[0], operand[1]);
    else if (options->function == SDLF_LAYER_PRELU)
        prelu(e, operand[0], operand[1], stretches);
    else
        export_node(e, types[options->function], (const char *const[]){operand[0], operand[1], NULL}, NULL);
}
