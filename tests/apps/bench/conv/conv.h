/* SPDX-License-Identifier: MIT */
/* What the tests of `sdlf bench conv` share: arguments for a quick run, and rows of its JSON by their names. */
#ifndef SDLF_TESTS_APPS_BENCH_CONV_CONV_H
#define SDLF_TESTS_APPS_BENCH_CONV_CONV_H

#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#define QUICK "--repeats", "3", "--seconds", "0.001", "--copy-size", "64kB"
#define SMALL "--shape", "2x3x9x8", "--kernel", "5x3x3", "--padding", "1", QUICK

static inline const json_t *find(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, key)), name) == 0) return row;
    }
    CHECK(!name);
    return NULL;
}

static inline double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static inline int64_t whole(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static inline const char *read_text(const char *path)
{
    static char text[1 << 17];
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (!CHECK(file != NULL)) return text;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

#endif
