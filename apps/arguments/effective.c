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

/* False for a number outside its range, such as a 0 that means none: it was not given. */
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

/* True if the value is the option's default. */
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

/* Prints the fewest digits that read back as the same number: as a float, if it is one. */
static void put_number(FILE *file, double value)
{
    char text[40];
    bool whole = fabs(value) < 1e15 && value == floor(value), single = value == (double)(float)value;
    snprintf(text, sizeof text, "%.0f", value);
    for (int digits = 1; !whole && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    }
    fputs(text, file);
}

/* Prints `between`, then the value, if the option has one. */
static void put_value(FILE *file, const char *between, const json_t *value, bool quoted)
{
    if (json_is_boolean(value)) return;
    fputs(between, file);
    if (json_is_integer(value)) fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) put_number(file, json_real_value(value));
    if (!json_is_string(value)) return;
    char *word = quoted ? quote_word(json_string_value(value)) : memory_copy_text(json_string_value(value));
    fputs(word, file);
    free(word);
}

static void put_option(FILE *file, const argument *row, const json_t *value)
{
    fprintf(file, " --%s", row->name);
    put_value(file, " ", value, true);
}

static void put_line(FILE *file, const argument *row, const json_t *value)
{
    if (json_is_null(value) || json_is_false(value)) return;
    fputs(row->name, file);
    put_value(file, " = ", value, false);
    fputc('\n', file);
}

/* Prints every option by `put`, or only those that differ from their defaults. */
static char *put_all(const char *head, const command_usage *usage, const void *settings, bool defaults,
                     void (*put)(FILE *, const argument *, const json_t *))
{
    memory_text text;
    if (!memory_text_open(&text)) memory_exhausted();
    fputs(head, text.file);
    const argument *row;
    size_t offset;
    for (int i = 0; (row = arguments_row(usage, i, &offset)); i++) {
        if (row->type == ARGUMENT_HEADING) continue;
        json_t *value = option_json(row, (const char *)settings + offset + row->offset), *item;
        size_t k;
        if (!json_is_array(value) && (defaults || !is_default(row, value))) put(text.file, row, value);
        json_array_foreach(value, k, item) put(text.file, row, item);
        json_decref(value);
    }
    if (!memory_text_close(&text)) memory_exhausted();
    return text.text;
}

char *arguments_command(const command_usage *usage, const void *settings)
{
    char *head = memory_print("sdlf %s", usage->command);
    char *command = put_all(head, usage, settings, false, put_option);
    free(head);
    return command;
}

char *arguments_lines(const command_usage *usage, const void *settings)
{
    return put_all("", usage, settings, true, put_line);
}
