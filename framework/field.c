/* SPDX-License-Identifier: MIT */
/* Completing an options struct with its field table. See field.h. */
#include "framework/field.h"

#include <stdio.h>

static sdlf_status out_of_range(const sdlf_field *field, const char *part, double found)
{
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s%s: expected %.9g to %.9g, found %.9g", field->name, part, field->minimum,
                     field->maximum, found);
}

/* The same for integers, with all their digits. */
static sdlf_status whole_out_of_range(const sdlf_field *field, const char *part, long long found)
{
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s%s: expected %.0f to %.0f, found %lld", field->name, part, field->minimum,
                     field->maximum, found);
}

static sdlf_status complete_int(const sdlf_field *field, const char *part, int *value)
{
    if (*value == 0 && field->zero_means_default) *value = (int)field->fallback;
    return *value >= field->minimum && *value <= field->maximum ? SDLF_OK : whole_out_of_range(field, part, *value);
}

static sdlf_status complete_pair(const sdlf_field *field, int *pair)
{
    sdlf_status status = complete_int(field, " (vertical)", &pair[0]);
    return status == SDLF_OK ? complete_int(field, " (horizontal)", &pair[1]) : status;
}

static sdlf_status complete_float(const sdlf_field *field, float *value)
{
    if (*value == 0 && field->zero_means_default) *value = (float)field->fallback;
    /* compare with the bounds in the member's own type, so that the float nearest to a bound is inside */
    bool inside = *value >= (float)field->minimum && *value <= (float)field->maximum;
    return inside ? SDLF_OK : out_of_range(field, "", (double)*value);
}

static sdlf_status complete_double(const sdlf_field *field, double *value)
{
    if (*value == 0 && field->zero_means_default) *value = field->fallback;
    return *value >= field->minimum && *value <= field->maximum ? SDLF_OK : out_of_range(field, "", *value);
}

static sdlf_status complete_choice(const sdlf_field *field, const int *value)
{
    char names[256] = "";
    int count = 0;
    size_t length = 0;
    for (; field->choices[count] != NULL; count++) {
        int added =
            snprintf(names + length, sizeof names - length, "%s%s", count > 0 ? ", " : "", field->choices[count]);
        if (added > 0) length += (size_t)added;
        if (length >= sizeof names) length = sizeof names - 1;
    }
    if (*value >= 0 && *value < count) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected 0 to %d (%s), found %d", field->name, count - 1, names, *value);
}

static sdlf_status complete_shape(const sdlf_field *field, const sdlf_shape *shape)
{
    if (shape->rank < 0 || shape->rank > SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected at most %d dimensions, found %d", field->name,
                         SDLF_MAX_RANK, shape->rank);
    for (int axis = 0; axis < shape->rank; axis++)
        if ((double)shape->dim[axis] < field->minimum || (double)shape->dim[axis] > field->maximum)
            return whole_out_of_range(field, " (a dimension)", (long long)shape->dim[axis]);
    return SDLF_OK;
}

sdlf_status sdlf_fields_complete(const sdlf_field *fields, void *options)
{
    sdlf_status status = SDLF_OK;
    for (const sdlf_field *field = fields; field->name != NULL && status == SDLF_OK; field++) {
        void *member = (char *)options + field->offset;
        switch (field->type) {
        case SDLF_FIELD_INT: status = complete_int(field, "", member); break;
        case SDLF_FIELD_PAIR: status = complete_pair(field, member); break;
        case SDLF_FIELD_FLOAT: status = complete_float(field, member); break;
        case SDLF_FIELD_DOUBLE: status = complete_double(field, member); break;
        case SDLF_FIELD_BOOL: break;
        case SDLF_FIELD_CHOICE: status = complete_choice(field, member); break;
        case SDLF_FIELD_SHAPE: status = complete_shape(field, member); break;
        }
    }
    return status;
}

static bool equal(sdlf_field_type type, const void *a, const void *b)
{
    const int *ints[] = {a, b};
    switch (type) {
    case SDLF_FIELD_INT:
    case SDLF_FIELD_CHOICE: return ints[0][0] == ints[1][0];
    case SDLF_FIELD_PAIR: return ints[0][0] == ints[1][0] && ints[0][1] == ints[1][1];
    case SDLF_FIELD_FLOAT: return *(const float *)a == *(const float *)b;
    case SDLF_FIELD_DOUBLE: return *(const double *)a == *(const double *)b;
    case SDLF_FIELD_BOOL: return *(const bool *)a == *(const bool *)b;
    case SDLF_FIELD_SHAPE: return sdlf_shape_equal(*(const sdlf_shape *)a, *(const sdlf_shape *)b);
    }
    return false;
}

const sdlf_field *sdlf_fields_difference(const sdlf_field *fields, const void *a, const void *b)
{
    for (const sdlf_field *field = fields; field->name != NULL; field++)
        if (!equal(field->type, (const char *)a + field->offset, (const char *)b + field->offset)) return field;
    return NULL;
}
