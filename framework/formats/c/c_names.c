/* SPDX-License-Identifier: MIT */
/* Names and numbers in C syntax. */
#include "framework/formats/c/c_export.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

c_name c_identifier(const char *name)
{
    c_name id;
    size_t used = 0;
    if (!((unsigned char)name[0] < 128 && (isalpha((unsigned char)name[0]) || name[0] == '_'))) id.text[used++] = 'n';
    for (; *name != '\0' && used < 60; name++) {
        bool fits = (unsigned char)*name < 128 && isalnum((unsigned char)*name);
        id.text[used++] = fits ? *name : '_';
    }
    id.text[used] = '\0';
    return id;
}

static c_name with_parameter(const c_export *e, int layer, const char *parameter)
{
    c_name name;
    snprintf(name.text, sizeof name.text, "%.80s_%.40s", c_identifier(c_at(e, layer)->layer.name).text, parameter);
    return name;
}

static int by_name(const void *a, const void *b)
{
    const c_array *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->layer > y->layer) - (x->layer < y->layer);
}

static void add_array(c_export *e, int layer, const char *parameter)
{
    c_array *array = &e->array[e->array_count++];
    snprintf(array->name, sizeof array->name, "%.127s", with_parameter(e, layer, parameter).text);
    array->layer = layer;
}

/* Besides its parameters, a layer may have arrays derived from batch normalisations. */
void c_list_arrays(c_export *e)
{
    static const char *const made[] = {"scale", "shift", "bias"};
    enum { MADE = sizeof made / sizeof made[0] };
    size_t most = (size_t)e->model->parameter_count + (size_t)e->model->layer_count * MADE;
    e->array = malloc((most + 1) * sizeof *e->array);
    if (e->array == NULL) {
        c_no_memory(e);
        return;
    }
    for (int i = 0; i < e->model->layer_count; i++) {
        int count = e->state[i].live ? c_at(e, i)->parameter_count : 0;
        for (int p = 0; p < count; p++)
            add_array(e, i, e->model->parameters[c_at(e, i)->first_parameter + p].spec.name);
        for (int m = 0; m < MADE && count > 0; m++) add_array(e, i, made[m]);
    }
    qsort(e->array, (size_t)e->array_count, sizeof *e->array, by_name);
    int kept = 0;
    for (int i = 0; i < e->array_count; i++)
        if (kept == 0 || by_name(&e->array[kept - 1], &e->array[i]) != 0) e->array[kept++] = e->array[i];
    e->array_count = kept;
}

/* True if another layer may have an array of that name. Equal names are adjacent, each layer once. */
static bool is_shared(const c_export *e, int layer, const char *name)
{
    int low = 0, high = e->array_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(e->array[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low; i < low + 2 && i < e->array_count && strcmp(e->array[i].name, name) == 0; i++)
        if (e->array[i].layer != layer) return true;
    return false;
}

c_name c_weights(const c_export *e, int layer, const char *parameter)
{
    c_name wanted = with_parameter(e, layer, parameter), all;
    bool alone = strstr(wanted.text, "__") == NULL; /* like names with a number */
    for (const c_kernel *kernel = c_kernels; kernel->name != NULL; kernel++)
        if (strcmp(kernel->name, wanted.text) == 0) alone = false;
    if (alone && !is_shared(e, layer, wanted.text)) return wanted;
    snprintf(all.text, sizeof all.text, "%.80s__%d_%.40s", c_identifier(c_at(e, layer)->layer.name).text, layer,
             parameter);
    return all;
}

c_name c_number(float value)
{
    c_name text;
    if (isnan(value))
        snprintf(text.text, sizeof text.text, "NAN");
    else if (isinf(value))
        snprintf(text.text, sizeof text.text, value < 0 ? "-INFINITY" : "INFINITY");
    else
        snprintf(text.text, sizeof text.text, "%.9g", (double)value);
    char *comma = strchr(text.text, ','); /* in locales that write one */
    if (comma != NULL) *comma = '.';
    bool whole = strspn(text.text, "-0123456789") == strlen(text.text);
    if (isfinite(value)) strcat(text.text, whole ? ".0f" : "f");
    return text;
}

c_name c_argument(const c_export *e, bool input, int index)
{
    c_name name;
    int count = input ? e->input_count : e->output_count;
    if (count == 1)
        snprintf(name.text, sizeof name.text, "%s", input ? "input" : "output");
    else
        snprintf(name.text, sizeof name.text, "%s%d", input ? "input" : "output", index + 1);
    return name;
}

c_name c_integer(sdlf_dtype dtype, int64_t value)
{
    c_name text;
    if (dtype == SDLF_BOOL)
        snprintf(text.text, sizeof text.text, "%s", value != 0 ? "true" : "false");
    else if (dtype == SDLF_INT64 && value == INT64_MIN)
        snprintf(text.text, sizeof text.text, "INT64_MIN");
    else if (dtype == SDLF_INT64)
        snprintf(text.text, sizeof text.text, "INT64_C(%lld)", (long long)value);
    else if (dtype == SDLF_INT32 && value == INT32_MIN)
        snprintf(text.text, sizeof text.text, "INT32_MIN");
    else
        snprintf(text.text, sizeof text.text, "%lld", (long long)value);
    return text;
}

c_name c_constant(sdlf_dtype dtype, double value)
{
    unsigned char element[8];
    int64_t integer = 0;
    if (dtype == SDLF_FLOAT32) return c_number((float)value);
    sdlf_convert(dtype, element, SDLF_FLOAT64, &value, 1);
    sdlf_convert(SDLF_INT64, &integer, dtype, element, 1);
    return c_integer(dtype, integer);
}

const char *c_type(sdlf_dtype dtype)
{
    switch (dtype) {
    case SDLF_UINT8: return "uint8_t";
    case SDLF_INT8: return "int8_t";
    case SDLF_INT32: return "int32_t";
    case SDLF_INT64: return "int64_t";
    case SDLF_BOOL: return "bool";
    default: return "float";
    }
}

const char *c_scratch_name(sdlf_dtype dtype)
{
    switch (dtype) {
    case SDLF_UINT8: return "scratch_uint8";
    case SDLF_INT8: return "scratch_int8";
    case SDLF_INT32: return "scratch_int32";
    case SDLF_INT64: return "scratch_int64";
    case SDLF_BOOL: return "scratch_bool";
    default: return "scratch";
    }
}

/* The array that holds a value. */
static c_name array_of(const c_export *e, const c_value *value)
{
    c_name name;
    if (value->kind == C_WEIGHTS) {
        const sdlf_parameter *parameter = &e->model->parameters[value->index];
        return c_weights(e, parameter->layer, parameter->spec.name);
    }
    if (value->kind != C_SCRATCH) return c_argument(e, value->kind == C_INPUT, value->index);
    snprintf(name.text, sizeof name.text, "%s", c_scratch_name(value->dtype));
    return name;
}

/* The tensor's position in its array, offset by `index`. */
static c_name place_of(const c_export *e, const sdlf_tensor *tensor, const char *index, bool element)
{
    const c_value *value = &e->value[c_root(e, tensor->buffer)];
    long long first = (long long)(value->offset + tensor->offset / (int64_t)sdlf_dtype_size(tensor->dtype));
    c_name base = array_of(e, value), at, name;
    if (strcmp(index, "0") == 0 || (first != 0 && index[0] == '\0'))
        snprintf(at.text, sizeof at.text, "%lld", first);
    else if (first == 0)
        snprintf(at.text, sizeof at.text, "%.200s", index);
    else
        snprintf(at.text, sizeof at.text, "%lld %s%.200s", first, index[0] == '-' ? "" : "+ ", index);
    if (element)
        snprintf(name.text, sizeof name.text, "%.100s[%.140s]", base.text, at.text);
    else
        snprintf(name.text, sizeof name.text, "%.100s%s%.140s", base.text,
                 at.text[0] == '\0' || at.text[0] == '-' ? "" : " + ", at.text);
    return name;
}

c_name c_address(const c_export *e, const sdlf_tensor *tensor, const char *index)
{
    if (!sdlf_tensor_present(tensor) || e->value[c_root(e, tensor->buffer)].kind == C_NOWHERE) return (c_name){"NULL"};
    return place_of(e, tensor, index, false);
}

c_name c_element(const c_export *e, const sdlf_tensor *tensor, const char *index)
{
    return place_of(e, tensor, index[0] == '\0' ? "0" : index, true);
}
