/* SPDX-License-Identifier: MIT */
/* Reading of tests/fixtures/torch_*.json, written by scripts/make-torch-fixtures.py. SDLF_FIXTURES is their folder. */
#ifndef SDLF_TESTS_TORCH_FIXTURES_H
#define SDLF_TESTS_TORCH_FIXTURES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sdlf/sdlf.h>

#include "framework/field.h"
#include "testing.h"

/* The file's content; "cases" is an array. The caller releases it with json_decref. */
static inline json_t *fixtures_open(const char *name)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", SDLF_FIXTURES, name);
    json_t *root = json_load_file(path, 0, &error);
    if (!CHECK(root != NULL)) printf("  %s: %s\n", path, error.text);
    CHECK(json_array_size(json_object_get(root, "cases")) > 0);
    return root;
}

static inline double fixture_number(const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL ? json_number_value(value) : missing;
}

static inline const char *fixture_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* Copy the values of an array, at most `room`. Returns their number. */
static inline int64_t fixture_floats(const json_t *array, float *to, int64_t room)
{
    int64_t count = (int64_t)json_array_size(array);
    CHECK(count <= room);
    for (int64_t index = 0; index < count && index < room; index++)
        to[index] = (float)json_number_value(json_array_get(array, (size_t)index));
    return count;
}

/* True if `count` floats are within absolute + relative |expected| of the array's; reports the first that is not. */
static inline bool fixture_close(const json_t *array, const float *found, int64_t count, double absolute,
                                 double relative, const char *what, const char *part)
{
    if (!CHECK((int64_t)json_array_size(array) == count)) {
        printf("  %s: %s has %lld numbers, expected %zu\n", what, part, (long long)count, json_array_size(array));
        return false;
    }
    for (int64_t index = 0; index < count; index++) {
        double expected = json_number_value(json_array_get(array, (size_t)index));
        if (CHECK(fabs((double)found[index] - expected) <= absolute + relative * fabs(expected))) continue;
        printf("  %s: %s[%lld] is %.9g, PyTorch has %.9g\n", what, part, (long long)index, (double)found[index],
               expected);
        return false;
    }
    return true;
}

/* Set the members of an options struct that the object names; every key must be the name of a field. */
static inline void fixture_options(const json_t *object, const sdlf_field *fields, void *options)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        const sdlf_field *field = fields;
        while (field->name != NULL && strcmp(field->name, key) != 0) field++;
        if (!CHECK(field->name != NULL)) continue;
        void *member = (char *)options + field->offset;
        if (field->type == SDLF_FIELD_FLOAT) *(float *)member = (float)json_number_value(value);
        if (field->type == SDLF_FIELD_DOUBLE) *(double *)member = json_number_value(value);
        if (field->type == SDLF_FIELD_INT) *(int *)member = (int)json_integer_value(value);
        if (field->type == SDLF_FIELD_BOOL) *(bool *)member = json_is_true(value);
    }
}

#endif
