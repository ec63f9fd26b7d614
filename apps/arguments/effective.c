/* SPDX-License-Identifier: MIT */
/* See effective.h. */
#include "apps/arguments/effective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/arguments/value.h"
#include "apps/output/json.h"
#include "apps/output/quote.h"
#include "apps/system/memory.h"

/* A number outside of its range was not given: a 0 that means none. */
static bool is_given(const argument *row, double value)
{
    return value >= row->minimum && value <= row->maximum && !(row->above && value == row->minimum);
}

static json_t *list_json(const argument_list *list)
{
    json_t *array = json_array();
    for (int i = 0; i < list->count; i++) json_array_append_new(array, json_text(list->item[i]));
    return array;
}

static json_t *option_json(const argument *row, const void *member)
{
    switch (row->type) {
    case ARGUMENT_FLAG: return json_boolean(*(const bool *)member);
    case ARGUMENT_INT:
    case ARGUMENT_SIZE: {
        int64_t value = *(const int64_t *)member;
        return is_given(row, (double)value) ? json_integer((json_int_t)value) : json_null();
    }
    case ARGUMENT_FLOAT: {
        double value = *(const double *)member;
        return is_given(row, value) ? json_number(value) : json_null();
    }
    case ARGUMENT_NAME:
    case ARGUMENT_TEXT: return json_text(*(const char *const *)member);
    case ARGUMENT_CHOICE: return json_text(row->choices[*(const int *)member]);
    case ARGUMENT_LIST: return list_json(member);
    case ARGUMENT_HEADING: break;
    }
    return json_null();
}

void arguments_add_json(json_t *object, const command_usage *usage, const void *settings)
{
    const argument *row;
    size_t offset;
    for (int i = 0; (row = arguments_row(usage, i, &offset)); i++) {
        char key[64];
        snprintf(key, sizeof key, "%s", row->name);
        for (char *c = key; *c; c++) *c = *c == '-' ? '_' : *c;
        if (row->type == ARGUMENT_HEADING || json_object_get(object, key)) continue;
        json_object_set_new(object, key, option_json(row, (const char *)settings + offset + row->offset));
    }
}

/* Is the value that of an option which was not given? */
static bool is_default(const argument *row, const json_t *value)
{
    union {
        bool flag;
        int64_t integer;
        double number;
        const char *text;
        int choice;
        argument_list list;
    } fallback;
    memset(&fallback, 0, sizeof fallback);
    if (row->fallback) argument_store(row, row->fallback, &fallback);
    json_t *other = option_json(row, &fallback);
    bool same = json_is_null(value) || json_equal(value, other);
    json_decref(other);
    return same;
}

/* As few digits as bring the same number back: of a float, where it is one. */
static void put_number(FILE *file, double value)
{
    char text[40];
    bool whole = fabs(value) < 1e15 && value == floor(value), single = value == (double)(float)value;
    snprintf(text, sizeof text, "%.0f", value);
    for (int digits = 1; !whole && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    }
    fprintf(file, " %s", text);
}

static void put_option(FILE *file, const argument *row, const json_t *value)
{
    fprintf(file, " --%s", row->name);
    if (json_is_integer(value)) fprintf(file, " %" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) put_number(file, json_real_value(value));
    if (!json_is_string(value)) return;
    char *word = quote_word(json_string_value(value));
    fprintf(file, " %s", word);
    free(word);
}

char *arguments_command(const command_usage *usage, const void *settings)
{
    memory_text text;
    if (!memory_text_open(&text)) memory_exhausted();
    fprintf(text.file, "sdlf %s", usage->command);
    const argument *row;
    size_t offset;
    for (int i = 0; (row = arguments_row(usage, i, &offset)); i++) {
        if (row->type == ARGUMENT_HEADING) continue;
        json_t *value = option_json(row, (const char *)settings + offset + row->offset), *item;
        size_t k;
        if (!is_default(row, value) && !json_is_array(value)) put_option(text.file, row, value);
        json_array_foreach(value, k, item) put_option(text.file, row, item);
        json_decref(value);
    }
    if (!memory_text_close(&text)) memory_exhausted();
    return text.text;
}
