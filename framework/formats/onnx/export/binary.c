/* Functions of two elements: add, binary, select. Broadcasting means the same in both, but for PRelu. */
#include "framework/formats/onnx/export/export.h"

void export_add(onnx_export *e)
{
    export_node(e, "Add", (const char *const[]){export_in(e, 0), export_in(e, 1), NULL}, NULL);
}

void export_select(onnx_export *e)
{
    export_node(e, "Where", (const char *const[]){export_in(e, 0), export_in(e, 1), export_in(e, 2), NULL}, NULL);
}

/* a, or b a where a is negative. The operator PRelu wants a slope that does not stretch its input. */
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

void export_binary(onnx_export *e)
{
    static const char *const types[SDLF_LAYER_FUNCTION_COUNT] = {
        [SDLF_LAYER_ADD] = "Add",         [SDLF_LAYER_SUBTRACT] = "Sub",
        [SDLF_LAYER_MULTIPLY] = "Mul",    [SDLF_LAYER_DIVIDE] = "Div",
        [SDLF_LAYER_POWER] = "Pow",       [SDLF_LAYER_MINIMUM] = "Min",
        [SDLF_LAYER_MAXIMUM] = "Max",     [SDLF_LAYER_EQUAL] = "Equal",
        [SDLF_LAYER_LESS] = "Less",       [SDLF_LAYER_LESS_EQUAL] = "LessOrEqual",
        [SDLF_LAYER_GREATER] = "Greater", [SDLF_LAYER_GREATER_EQUAL] = "GreaterOrEqual",
        [SDLF_LAYER_AND] = "And",         [SDLF_LAYER_OR] = "Or",
        [SDLF_LAYER_XOR] = "Xor",
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
    if (options->function == SDLF_LAYER_PRELU)
        prelu(e, operand[0], operand[1], stretches);
    else
        export_node(e, types[options->function], (const char *const[]){operand[0], operand[1], NULL}, NULL);
}
