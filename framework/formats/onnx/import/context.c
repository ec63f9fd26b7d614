/* SPDX-License-Identifier: MIT */
/* Failures, attributes and inputs of the node being converted. See import.h. */
#include "framework/formats/onnx/import/import.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "framework/formats/text.h"

/* ---- failing ---- */

bool onnx_ok(const onnx_context *c)
{
    return c->status == SDLF_OK;
}

static void record_failure(onnx_context *c, sdlf_status status, const char *format, va_list arguments)
{
    if (c->status != SDLF_OK) return;
    char text[400];
    vsnprintf(text, sizeof text, format, arguments);
    c->status = sdlf_fail(status, "%s", text);
}

void onnx_unsupported(onnx_context *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_failure(c, SDLF_ERROR_UNSUPPORTED, format, arguments);
    va_end(arguments);
}

void onnx_wrong(onnx_context *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_failure(c, SDLF_ERROR_FORMAT, format, arguments);
    va_end(arguments);
}

void onnx_no_memory(onnx_context *c)
{
    if (c->status == SDLF_OK) c->status = read_budget_fail(&c->import->file->budget);
}

/* ---- attributes ---- */

enum attribute_type { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_FLOATS = 6, TYPE_INTS = 7 };

const Onnx__AttributeProto *onnx_attribute(const onnx_context *c, const char *name)
{
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = c->node->attribute[i];
        if (attribute->name != NULL && strcmp(attribute->name, name) == 0) return attribute;
    }
    return NULL;
}

bool onnx_has_attribute(onnx_context *c, const char *name)
{
    return onnx_attribute(c, name) != NULL;
}

/* The attribute, of that type (which very old files omit), or NULL. */
static const Onnx__AttributeProto *typed(onnx_context *c, const char *name, int type)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, name);
    if (attribute == NULL || !attribute->has_type || attribute->type == type) return attribute;
    onnx_wrong(c, "attribute '%s' has type %d; %d was expected", name, (int)attribute->type, type);
    return NULL;
}

int64_t onnx_integer(onnx_context *c, const char *name, int64_t fallback)
{
    const Onnx__AttributeProto *attribute = typed(c, name, TYPE_INT);
    return attribute != NULL ? attribute->i : fallback;
}

bool onnx_flag(onnx_context *c, const char *name, bool fallback)
{
    int64_t value = onnx_integer(c, name, fallback);
    if (value != 0 && value != 1) onnx_wrong(c, "attribute '%s' is %lld; 0 or 1 was expected", name, (long long)value);
    return value == 1;
}

float onnx_real(onnx_context *c, const char *name, float fallback)
{
    const Onnx__AttributeProto *attribute = typed(c, name, TYPE_FLOAT);
    return attribute != NULL ? attribute->f : fallback;
}

onnx_word onnx_text(onnx_context *c, const char *name, const char *fallback)
{
    onnx_word word;
    const Onnx__AttributeProto *attribute = typed(c, name, TYPE_STRING);
    const char *text = attribute != NULL ? (const char *)attribute->s.data : fallback;
    size_t length = attribute != NULL ? attribute->s.len : strlen(fallback);
    if (length >= sizeof word.text) {
        onnx_wrong(c, "attribute '%s' has %zu bytes of text", name, length);
        length = 0;
    }
    for (size_t i = 0; i < length; i++) /* the text may appear in a message */
        word.text[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    word.text[length] = '\0';
    return word;
}

onnx_list onnx_integers(onnx_context *c, const char *name)
{
    const Onnx__AttributeProto *attribute = typed(c, name, TYPE_INTS);
    if (attribute == NULL) return (onnx_list){NULL, -1};
    if (attribute->n_ints > 4096) {
        onnx_wrong(c, "attribute '%s' has %zu numbers", name, attribute->n_ints);
        return (onnx_list){NULL, -1};
    }
    return (onnx_list){attribute->ints, (int)attribute->n_ints};
}

/* ---- inputs ---- */

bool onnx_has(const onnx_context *c, int input)
{
    return input < c->input_count && c->input[input] != NULL;
}

bool onnx_is_constant(const onnx_context *c, int input)
{
    return onnx_has(c, input) && c->input[input]->kind == ONNX_CONSTANT;
}

bool onnx_has_trainable_input(const onnx_context *c)
{
    for (int i = 0; i < c->output_count; i++)
        if (c->output[i] != NULL && c->output[i]->must_be_known) return false;
    for (int i = 0; i < c->input_count; i++)
        if (onnx_is_constant(c, i) && c->input[i]->tensor.learned) return true;
    return false;
}

static const onnx_flow no_flow = {.node = {-1, 0}, .dtype = SDLF_FLOAT32};

onnx_flow onnx_in(onnx_context *c, int input)
{
    if (!onnx_ok(c)) return no_flow;
    if (!onnx_has(c, input)) {
        onnx_wrong(c, "input %d is missing", input);
        return no_flow;
    }
    onnx_value *value = c->input[input];
    if (value->kind == ONNX_CONSTANT && value->flow.node.layer < 0)
        value->flow = onnx_constant_layer(c, &value->tensor);
    return value->flow;
}

sdlf_shape onnx_shape(onnx_context *c, int input)
{
    if (!onnx_has(c, input)) return SDLF_SCALAR;
    const onnx_value *value = c->input[input];
    return value->kind == ONNX_CONSTANT ? value->tensor.shape : value->flow.shape;
}

const onnx_tensor *onnx_known(onnx_context *c, int input)
{
    static const double zero = 0;
    static const onnx_tensor nothing = {.name = "", .type = ONNX_FLOAT, .data = &zero};
    if (!onnx_ok(c)) return &nothing;
    if (onnx_is_constant(c, input)) return &c->input[input]->tensor;
    if (onnx_has(c, input))
        onnx_unsupported(c, "input %d, '%s', must be known when the model is made, and is computed", input,
                         text_show(c->input[input]->name).text);
    else
        onnx_wrong(c, "input %d is missing", input);
    return &nothing;
}

onnx_list onnx_known_integers(onnx_context *c, int input)
{
    const onnx_tensor *tensor = onnx_known(c, input);
    if (!onnx_ok(c)) return (onnx_list){NULL, -1};
    if (tensor->count > 4096) {
        onnx_wrong(c, "input %d: a short list of integers was expected, found %s", input,
                   sdlf_shape_print(tensor->shape).text);
        return (onnx_list){NULL, -1};
    }
    if (c->input[input]->integers != NULL) return (onnx_list){c->input[input]->integers, (int)tensor->count};
    int64_t *item = onnx_arena_array(&c->import->file->arena, (size_t)tensor->count, sizeof *item);
    if (item == NULL) {
        onnx_no_memory(c);
        return (onnx_list){NULL, -1};
    }
    onnx_tensor_convert(tensor, 0, tensor->count, SDLF_INT64, item);
    c->input[input]->integers = item;
    return (onnx_list){item, (int)tensor->count};
}

double onnx_known_number(onnx_context *c, int input, double fallback)
{
    if (!onnx_has(c, input)) return fallback;
    const onnx_tensor *tensor = onnx_known(c, input);
    double number = fallback;
    if (!onnx_ok(c)) return fallback;
    if (tensor->count != 1) {
        onnx_wrong(c, "input %d: one number was expected, found %s", input, sdlf_shape_print(tensor->shape).text);
        return fallback;
    }
    onnx_tensor_convert(tensor, 0, 1, SDLF_FLOAT64, &number);
    return number;
}

bool onnx_is_exact_number(onnx_context *c, int input)
{
    if (!onnx_has(c, input) || sdlf_dtype_is_float(onnx_type_dtype(onnx_known(c, input)->type))) return true;
    onnx_list list = onnx_known_integers(c, input);
    double number = list.count == 1 ? (double)(float)list.item[0] : NAN;
    int64_t back;
    sdlf_convert(SDLF_INT64, &back, SDLF_FLOAT64, &number, 1);
    return list.count == 1 && back == list.item[0];
}

int onnx_axis(onnx_context *c, int64_t axis, int rank)
{
    if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
    onnx_wrong(c, "axis %" PRId64 " is not one of %d dimensions", axis, rank);
    return 0;
}

bool onnx_keeps_rows(const onnx_context *c)
{
    const onnx_value *from = c->input_count > 0 ? c->input[0] : NULL;
    return c->import->options->keep_rows && from != NULL && from->kind == ONNX_CONSTANT &&
           from->tensor.shape.rank > 1 && sdlf_dtype_is_float(onnx_type_dtype((int)from->tensor.type));
}
