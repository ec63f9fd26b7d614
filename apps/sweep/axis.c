/* SPDX-License-Identifier: MIT */
/* See axis.h. */
#include "apps/sweep/axis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

static sdlf_status read_range(axis *a, const char *text, const char *low)
{
    a->logarithmic = strncmp(low, "log:", 4) == 0;
    if (a->logarithmic) low += 4;
    const char *dots = strstr(low, ".."), *high = dots + 2;
    char *lower = memory_print("%.*s", (int)(dots - low), low), *end, *last;
    a->least = strtod(lower, &end);
    a->greatest = strtod(high, &last);
    bool good = end != lower && *end == '\0' && last != high && *last == '\0' && isfinite(a->least) &&
                isfinite(a->greatest) && a->least < a->greatest;
    a->whole = !a->logarithmic && !strpbrk(lower, ".eE") && !strpbrk(high, ".eE");
    free(lower);
    if (!good || (a->logarithmic && a->least <= 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--try %s: expected NAME=LOW..HIGH with LOW below HIGH%s", text,
                         a->logarithmic ? ", and above 0" : "");
    return SDLF_OK;
}

sdlf_status axis_read(axis *a, const char *text)
{
    *a = (axis){.option = memory_copy_text(strncmp(text, "--", 2) == 0 ? text + 2 : text)};
    char *equals = strchr(a->option, '=');
    if (!equals || equals == a->option || equals[1] == '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "--try %s: expected NAME=VALUE,VALUE,... or NAME=LOW..HIGH, with an option of 'sdlf train'",
                         text);
    *equals = '\0';
    if (strstr(equals + 1, "..") && !strchr(equals + 1, '/')) return read_range(a, text, equals + 1);
    char *rest = NULL;
    for (char *value = strtok_r(equals + 1, ",", &rest); value; value = strtok_r(NULL, ",", &rest)) {
        if (a->count == AXIS_VALUES)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--try %s: expected at most %d values", text, AXIS_VALUES);
        a->value[a->count++] = value;
    }
    return a->count > 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_ARGUMENT, "--try %s: expected values", text);
}

void axis_release(axis *a)
{
    free(a->option);
    *a = (axis){.option = NULL};
}

/* A number in [0, 1): SplitMix64 of the draw's indices. */
static double draw(uint64_t seed, uint64_t trial, uint64_t index)
{
    uint64_t z =
        seed * 0x9e3779b97f4a7c15 + trial * 0xd1342543de82ef95 + index * 0x2545f4914f6cdd1d + 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

char *axis_draw(const axis *a, int index, int64_t trial, uint64_t seed)
{
    double part = draw(seed, (uint64_t)trial, (uint64_t)index);
    if (a->count > 0) return memory_copy_text(a->value[(int)(part * a->count)]);
    if (a->whole) return memory_print("%.0f", floor(a->least + part * (a->greatest - a->least + 1)));
    double value =
        a->logarithmic ? a->least * pow(a->greatest / a->least, part) : a->least + part * (a->greatest - a->least);
    return memory_print("%.4g", value);
}
