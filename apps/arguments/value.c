/* SPDX-License-Identifier: MIT */
/* Parsing one option's value. */
#include "apps/arguments/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/suggest.h>

#include "apps/output/number.h"

const char *argument_choice(const argument *row, int index)
{
    return row->type == ARGUMENT_CHOICE ? row->choices[index] : row->names(index);
}

/* True if two words are equal; one-cycle and one_cycle are the same word. */
static bool same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b))) return false;
    }
    return *a == *b;
}

static int find_choice(const argument *row, const char *text)
{
    const char *word;
    for (int i = 0; (word = argument_choice(row, i)); i++) {
        if (same_word(word, text)) return i;
    }
    return -1;
}

static bool in_range(const argument *row, double value)
{
    return value >= row->minimum && value <= row->maximum && !(row->above && value == row->minimum);
}

static bool read_int(const argument *row, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || *text == ' ' || !in_range(row, (double)number)) return false;
    *value = number;
    return true;
}

static bool read_size(const argument *row, const char *text, int64_t *value)
{
    static const struct {
        const char *name;
        double bytes;
    } unit[] = {{"", 1},         {"B", 1},        {"kB", 1e3},     {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
                {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"k", 1e3},  {"K", 1e3},  {"M", 1e6},  {"G", 1e9}};
    char *end;
    double number = strtod(text, &end);
    if (end == text || *text == ' ') return false;
    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++) {
        if (strcmp(end, unit[i].name) != 0) continue;
        double bytes = number * unit[i].bytes;
        if (!in_range(row, bytes) || bytes >= 0x1p63) return false; /* NaN is in no range */
        *value = (int64_t)bytes;
        return true;
    }
    return false;
}

static bool read_float(const argument *row, const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || *text == ' ' || !isfinite(number) || !in_range(row, number)) return false;
    *value = number;
    return true;
}

bool argument_store(const argument *row, const char *text, void *member)
{
    switch (row->type) {
    case ARGUMENT_HEADING:
    case ARGUMENT_FLAG: return false;
    case ARGUMENT_INT: return read_int(row, text, (int64_t *)member);
    case ARGUMENT_SIZE: return read_size(row, text, (int64_t *)member);
    case ARGUMENT_FLOAT: return read_float(row, text, (double *)member);
    case ARGUMENT_TEXT:
        if (*text == '\0' && !row->may_be_empty) return false;
        *(const char **)member = text;
        return true;
    case ARGUMENT_NAME:
    case ARGUMENT_CHOICE: {
        int index = find_choice(row, text);
        if (index < 0) return false;
        if (row->type == ARGUMENT_CHOICE) {
            *(int *)member = index;
        } else {
            *(const char **)member = row->names(index);
        }
        return true;
    }
    case ARGUMENT_LIST: {
        argument_list *list = (argument_list *)member;
        if (*text == '\0' || list->count == ARGUMENT_LIST_MAX) return false;
        list->item[list->count++] = text;
        return true;
    }
    }
    return false;
}

/* Prints "from A to B", or only one bound if the other is very far. */
static void print_range(const argument *row, char *text, size_t size)
{
    const char *low = row->above ? "above" : "at least";
    if (row->maximum >= 1e15) {
        snprintf(text, size, "%s %g", low, row->minimum);
    } else if (row->above) {
        snprintf(text, size, "above %g, at most %g", row->minimum, row->maximum);
    } else if (row->type == ARGUMENT_FLOAT) {
        snprintf(text, size, "from %g to %g", row->minimum, row->maximum);
    } else {
        snprintf(text, size, "from %s to %s", number_count((int64_t)row->minimum).text,
                 number_count((int64_t)row->maximum).text);
    }
}

argument_text argument_expected(const argument *row)
{
    argument_text result = {""};
    char range[96] = "";
    switch (row->type) {
    case ARGUMENT_HEADING:
    case ARGUMENT_FLAG: break;
    case ARGUMENT_INT:
        print_range(row, range, sizeof range);
        snprintf(result.text, sizeof result.text, "a whole number %s", range);
        break;
    case ARGUMENT_SIZE:
        snprintf(result.text, sizeof result.text, "bytes such as 64MB or 1GiB, from %s to %s",
                 number_bytes((int64_t)row->minimum).text, number_bytes((int64_t)row->maximum).text);
        break;
    case ARGUMENT_FLOAT:
        print_range(row, range, sizeof range);
        snprintf(result.text, sizeof result.text, "a number %s", range);
        break;
    case ARGUMENT_TEXT:
    case ARGUMENT_LIST: snprintf(result.text, sizeof result.text, "%s", row->value); break;
    case ARGUMENT_NAME:
    case ARGUMENT_CHOICE: {
        const char *word;
        size_t used = (size_t)snprintf(result.text, sizeof result.text, "one of");
        for (int i = 0; (word = argument_choice(row, i)) && used < sizeof result.text; i++) {
            used += (size_t)snprintf(result.text + used, sizeof result.text - used, "%s %s", i ? "," : "", word);
        }
        break;
    }
    }
    return result;
}
