/* SPDX-License-Identifier: MIT */
#include "framework/formats/network_options.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

#include "framework/input_layer.h"

static bool is_number(const sdlf_field *field)
{
    return field->type == SDLF_FIELD_INT || field->type == SDLF_FIELD_PAIR || field->type == SDLF_FIELD_FLOAT ||
           field->type == SDLF_FIELD_DOUBLE;
}

void network_default_options(void *options, const sdlf_layer_class *type)
{
    for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
        void *member = (char *)options + field->offset;
        if (!is_number(field) || !field->zero_means_default) continue;
        if (field->type == SDLF_FIELD_FLOAT)
            *(float *)member = (float)field->fallback;
        else if (field->type == SDLF_FIELD_DOUBLE)
            *(double *)member = field->fallback;
        else
            for (int i = 0; i < (field->type == SDLF_FIELD_PAIR ? 2 : 1); i++)
                ((int *)member)[i] = (int)field->fallback;
    }
    if (type == &sdlf_input_layer_class) ((sdlf_input_options *)options)->dtype = SDLF_FLOAT32;
}

/* ---- what is expected, for messages ---- */

typedef struct expectation {
    char text[320];
} expectation;

/* "a, b, c" */
static void list_choices(char *text, size_t size, const char *const *choices)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; choices[i] != NULL && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "", choices[i]);
}

static expectation expect(const sdlf_field *field)
{
    expectation e;
    char choices[256];
    const char *zero = field->zero_means_default && field->minimum <= 0 ? ", but not 0" : "";
    switch (field->type) {
    case SDLF_FIELD_INT:
        snprintf(e.text, sizeof e.text, "an integer from %.0f to %.0f%s", field->minimum, field->maximum, zero);
        break;
    case SDLF_FIELD_PAIR:
        snprintf(e.text, sizeof e.text, "an integer from %.0f to %.0f%s, or two of them: [vertical, horizontal]",
                 field->minimum, field->maximum, zero);
        break;
    case SDLF_FIELD_FLOAT:
    case SDLF_FIELD_DOUBLE:
        snprintf(e.text, sizeof e.text, "a number from %.9g to %.9g%s", field->minimum, field->maximum, zero);
        break;
    case SDLF_FIELD_BOOL: snprintf(e.text, sizeof e.text, "true or false"); break;
    case SDLF_FIELD_CHOICE:
        list_choices(choices, sizeof choices, field->choices);
        snprintf(e.text, sizeof e.text, "one of %s", choices);
        break;
    case SDLF_FIELD_SHAPE:
        snprintf(e.text, sizeof e.text, "a list of at most %d integers from %.0f to %.0f", SDLF_MAX_RANK - 1,
                 field->minimum, field->maximum);
        break;
    }
    return e;
}

/* ---- one value ---- */

static bool in_range(const sdlf_field *field, double value)
{
    if (value == 0 && field->zero_means_default) return false; /* it would not mean 0 */
    return value >= field->minimum && value <= field->maximum;
}

static bool read_int(const sdlf_field *field, const json_t *value, int *number)
{
    if (!json_is_integer(value) || !in_range(field, (double)json_integer_value(value))) return false;
    *number = (int)json_integer_value(value);
    return true;
}

static bool read_pair(const sdlf_field *field, const json_t *value, int *pair)
{
    if (json_is_array(value))
        return json_array_size(value) == 2 && read_int(field, json_array_get(value, 0), &pair[0]) &&
               read_int(field, json_array_get(value, 1), &pair[1]);
    if (!read_int(field, value, &pair[0])) return false;
    pair[1] = pair[0];
    return true;
}

static bool read_float(const sdlf_field *field, const json_t *value, float *number)
{
    if (!json_is_number(value) || !in_range(field, json_number_value(value))) return false;
    *number = (float)json_number_value(value);
    return *number != 0 || !field->zero_means_default;
}

static bool read_double(const sdlf_field *field, const json_t *value, double *number)
{
    if (!json_is_number(value) || !in_range(field, json_number_value(value))) return false;
    *number = json_number_value(value);
    return true;
}

static bool read_choice(const sdlf_field *field, const json_t *value, int *choice)
{
    if (!json_is_string(value)) return false;
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(json_string_value(value), field->choices[i]) != 0) continue;
        *choice = i;
        return true;
    }
    return false;
}

static bool read_shape(const sdlf_field *field, const json_t *value, sdlf_shape *shape)
{
    if (!json_is_array(value) || json_array_size(value) > SDLF_MAX_RANK - 1) return false;
    *shape = (sdlf_shape){.rank = (int)json_array_size(value)};
    for (int i = 0; i < shape->rank; i++) {
        const json_t *dim = json_array_get(value, (size_t)i);
        double size = (double)json_integer_value(dim);
        if (!json_is_integer(dim) || size < field->minimum || size > field->maximum) return false;
        shape->dim[i] = json_integer_value(dim);
    }
    return true;
}

static bool read_value(const sdlf_field *field, const json_t *value, void *member)
{
    switch (field->type) {
    case SDLF_FIELD_INT: return read_int(field, value, member);
    case SDLF_FIELD_PAIR: return read_pair(field, value, member);
    case SDLF_FIELD_FLOAT: return read_float(field, value, member);
    case SDLF_FIELD_DOUBLE: return read_double(field, value, member);
    case SDLF_FIELD_BOOL: *(bool *)member = json_is_true(value); return json_is_boolean(value);
    case SDLF_FIELD_CHOICE: return read_choice(field, value, member);
    case SDLF_FIELD_SHAPE: return read_shape(field, value, member);
    }
    return false;
}

/* ---- all of them ---- */

static bool is_keyword(const char *key, const char *const *keywords)
{
    for (; *keywords != NULL; keywords++)
        if (strcmp(key, *keywords) == 0) return true;
    return false;
}

static const sdlf_field *find_field(const sdlf_field *fields, const char *name)
{
    for (; fields != NULL && fields->name != NULL; fields++)
        if (strcmp(fields->name, name) == 0) return fields;
    return NULL;
}

static sdlf_status check_keys(const sdlf_layer_class *type, const network_object *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object->json, key, value)
    {
        if (is_keyword(key, object->keywords) || find_field(type->fields, key) != NULL) continue;
        char known[400];
        sdlf_suggestion near = {.word = key};
        list_choices(known, sizeof known, object->keywords);
        for (int i = 0; object->keywords[i] != NULL; i++) sdlf_suggest(&near, object->keywords[i]);
        for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
            size_t length = strlen(known);
            snprintf(known + length, sizeof known - length, ", %s", field->name);
            sdlf_suggest(&near, field->name);
        }
        return network_fail(object->file, &(json_place){object->place, key, 0}, "%s: unknown field '%s'%s; it has %s",
                            object->label, text_show(key).text, sdlf_suggestion_print(&near).text, known);
    }
    return SDLF_OK;
}

/* True for a number that has no default and a minimum above 0, and for a shape that must not be omitted. */
static bool is_required(const sdlf_field *field)
{
    if (field->zero_means_default) return false;
    return field->type == SDLF_FIELD_SHAPE || (is_number(field) && field->minimum > 0);
}

sdlf_status network_read_options(void *options, const sdlf_layer_class *type, const network_object *object)
{
    sdlf_status status = check_keys(type, object);
    if (status != SDLF_OK) return status;
    for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
        const json_t *value = json_object_get(object->json, field->name);
        if (value == NULL && is_required(field))
            return network_fail(object->file, object->place, "%s: '%s' is missing; it must be %s", object->label,
                                field->name, expect(field).text);
        if (value != NULL && !read_value(field, value, (char *)options + field->offset))
            return network_fail(object->file, &(json_place){object->place, field->name, 0},
                                "%s: '%s' must be %s, found %s", object->label, field->name, expect(field).text,
                                network_show(value).text);
    }
    return SDLF_OK;
}
