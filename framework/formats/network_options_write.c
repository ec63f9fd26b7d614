/* SPDX-License-Identifier: MIT */
#include "framework/formats/network_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "framework/field.h"

/* The shortest decimal number that reads back as this float. */
static json_t *float_json(float value)
{
    char text[40];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) break;
    }
    return json_real(strtod(text, NULL));
}

static json_t *pair_json(const int *pair)
{
    if (pair[0] == pair[1]) return json_integer(pair[0]);
    json_t *list = json_array();
    if (json_array_append_new(list, json_integer(pair[0])) == 0 &&
        json_array_append_new(list, json_integer(pair[1])) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *shape_json(const sdlf_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank && list != NULL; i++) {
        if (json_array_append_new(list, json_integer(shape->dim[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *value_json(const sdlf_field *field, const void *member)
{
    switch (field->type) {
    case SDLF_FIELD_INT: return json_integer(*(const int *)member);
    case SDLF_FIELD_PAIR: return pair_json(member);
    case SDLF_FIELD_FLOAT: return float_json(*(const float *)member);
    case SDLF_FIELD_DOUBLE: return json_real(*(const double *)member);
    case SDLF_FIELD_BOOL: return json_boolean(*(const bool *)member);
    case SDLF_FIELD_CHOICE: return json_string(field->choices[*(const int *)member]);
    case SDLF_FIELD_SHAPE: return shape_json(member);
    }
    return NULL;
}

/* True if the field can be omitted. A shape has no default, unless it may be empty. */
static bool is_default(const sdlf_field *field, const void *options, const void *defaults)
{
    const sdlf_field table[] = {*field, {.name = NULL}};
    if (field->type == SDLF_FIELD_SHAPE && !field->zero_means_default) return false;
    return sdlf_fields_difference(table, options, defaults) == NULL;
}

bool network_write_options(json_t *object, const sdlf_layer_class *type, const void *options)
{
    void *defaults = calloc(1, type->options_size);
    if (defaults == NULL) return false;
    network_default_options(defaults, type);
    bool ok = true;
    for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL && ok; field++) {
        if (is_default(field, options, defaults)) continue;
        json_t *value = value_json(field, (const char *)options + field->offset);
        ok = json_object_set_new(object, field->name, value) == 0;
    }
    free(defaults);
    return ok;
}
