/* SPDX-License-Identifier: MIT */
/* The registry of layer classes: built-in ones, then those that programs register. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/registered.h"
#include "framework/require.h"

static registered others;

static int builtin_count(void)
{
    int count = 0;
    while (sdlf_builtin_layers[count] != NULL) count++;
    return count;
}

const sdlf_layer_class *sdlf_layer_class_at(int index)
{
    int count = builtin_count();
    if (index < 0) return NULL;
    return index < count ? sdlf_builtin_layers[index] : registered_at(&others, index - count);
}

const sdlf_layer_class *sdlf_layer_class_find(const char *name)
{
    const sdlf_layer_class *type;
    if (name == NULL) return NULL;
    for (int index = 0; (type = sdlf_builtin_layers[index]) != NULL; index++)
        if (strcmp(type->name, name) == 0) return type;
    for (int index = 0; (type = registered_at(&others, index)) != NULL; index++)
        if (strcmp(type->name, name) == 0) return type;
    return NULL;
}

static size_t field_size(sdlf_field_type type)
{
    switch (type) {
    case SDLF_FIELD_INT:
    case SDLF_FIELD_CHOICE: return sizeof(int);
    case SDLF_FIELD_PAIR: return 2 * sizeof(int);
    case SDLF_FIELD_FLOAT: return sizeof(float);
    case SDLF_FIELD_BOOL: return sizeof(bool);
    case SDLF_FIELD_SHAPE: return sizeof(sdlf_shape);
    case SDLF_FIELD_DOUBLE: return sizeof(double);
    }
    return 0;
}

/* Describes what is wrong with a field; NULL: nothing. */
static const char *field_fault(const sdlf_layer_class *type, const sdlf_field *field)
{
    size_t size = field_size(field->type);
    if (size == 0) return "there is no such type";
    if (field->offset < sizeof(const char *)) return "it overlaps the layer's name, the first member of the options";
    if (field->offset > type->options_size || size > type->options_size - field->offset)
        return "it is outside the options (options_size)";
    if (field->type == SDLF_FIELD_CHOICE && (field->choices == NULL || field->choices[0] == NULL))
        return "there are no choices";
    return NULL;
}

/* Describes what is wrong with the table of `size` bytes as a whole; NULL: nothing. */
static const char *class_fault(const sdlf_layer_class *type, size_t size)
{
    if (type->summary == NULL) return "summary is NULL";
    if (type->options_size < sizeof(const char *)) return "options_size has no room for the layer's name";
    if (type->fields == NULL) return "fields is NULL (a table of none is one row whose name is NULL)";
    if (type->minimum_inputs < 0 || type->maximum_inputs > SDLF_MAX_LAYER_INPUTS ||
        type->maximum_inputs < type->minimum_inputs)
        return "minimum_inputs and maximum_inputs must be a range within 0 to 16";
    if (type->infer == NULL) return "infer is NULL";
    if (type->forward == NULL && type->backward != NULL) return "there is a backward but no forward";
    size_t reserved = (size - offsetof(sdlf_layer_class, reserved)) / sizeof type->reserved[0];
    if (reserved > sizeof type->reserved / sizeof type->reserved[0])
        reserved = sizeof type->reserved / sizeof type->reserved[0];
    for (size_t i = 0; i < reserved; i++)
        if (type->reserved[i] != NULL) return "reserved members must be zero";
    return NULL;
}

static bool same_name(const void *a, const void *b)
{
    return strcmp(((const sdlf_layer_class *)a)->name, ((const sdlf_layer_class *)b)->name) == 0;
}

/* Appends a table of `size` bytes to the list or, if it is shorter than tables are now, a copy with the missing members
 * zero. *there is the table of that name in the list; NULL: the list is full. */
static sdlf_status append(const sdlf_layer_class *type, size_t size, const void **there)
{
    if (size == sizeof *type) {
        *there = registered_add(&others, type, same_name);
        return SDLF_OK;
    }
    sdlf_layer_class *full = calloc(1, sizeof *full);
    if (full == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "sdlf_register_layer: out of memory");
    memcpy(full, type, size);
    *there = registered_add(&others, full, same_name);
    if (*there == full || (*there != NULL && memcmp(*there, full, sizeof *full) == 0)) {
        if (*there != full) free(full); /* the same table was registered before */
        *there = type;
        return SDLF_OK;
    }
    free(full);
    return SDLF_OK;
}

sdlf_status sdlf_register_layer_sized(const sdlf_layer_class *type, size_t size)
{
    SDLF_REQUIRE(type);
    if (size > sizeof *type)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "sdlf_register_layer: '%s' has a table of %zu bytes, and this library's has %zu: it was "
                         "compiled for a newer one than " SDLF_VERSION,
                         type->name != NULL ? type->name : "(NULL)", size, sizeof *type);
    if (size < offsetof(sdlf_layer_class, reserved))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_register_layer: a table of %zu bytes, smaller than the smallest valid table", size);
    if (!registered_name_is_sound(type->name) || strcmp(type->name, "input") == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_register_layer: the name '%s', expected lower-case letters, digits and underscores, "
                         "a letter first, at most 40, and not 'input'",
                         type->name != NULL ? type->name : "(NULL)");
    const char *fault = class_fault(type, size);
    if (fault != NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_layer: '%s': %s", type->name, fault);
    for (const sdlf_field *field = type->fields; field->name != NULL; field++)
        if ((fault = field_fault(type, field)) != NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_layer: '%s', field '%s': %s", type->name, field->name,
                             fault);
    const void *there = NULL;
    for (int i = 0; sdlf_builtin_layers[i] != NULL && there == NULL; i++)
        if (same_name(sdlf_builtin_layers[i], type)) there = sdlf_builtin_layers[i];
    if (there == NULL) {
        sdlf_status status = append(type, size, &there);
        if (status != SDLF_OK) return status;
    }
    if (there == type) return SDLF_OK;
    if (there == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "sdlf_register_layer: '%s' is one more than the %d that can be registered",
                         type->name, REGISTERED_MAX);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_layer: there is a layer '%s' already", type->name);
}
