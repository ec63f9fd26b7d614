/* SPDX-License-Identifier: MIT */
/* JSON output for programs. */
#include "apps/output/json.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) memory_exhausted();
    return memory;
}

void json_watch_memory(void)
{
    json_set_alloc_funcs(allocate, free);
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_shape(sdlf_shape shape)
{
    json_t *array = json_array();
    for (int i = 0; i < shape.rank; i++) json_array_append_new(array, json_integer(shape.dim[i]));
    return array;
}

json_t *json_text(const char *text)
{
    if (!text) return json_null();
    json_t *value = json_string(text);
    if (value) return value;
    char *ascii = memory_copy_text(text);
    for (char *c = ascii; *c; c++) {
        if ((unsigned char)*c >= 0x80) *c = '?';
    }
    value = json_string(ascii);
    free(ascii);
    return value;
}

static bool print(json_t *value, FILE *file, size_t flags)
{
    char *text = value ? json_dumps(value, flags | JSON_REAL_PRECISION(9)) : NULL;
    if (!text) memory_exhausted();
    json_decref(value);
    bool written = fputs(text, file) != EOF && fputc('\n', file) != EOF;
    free(text);
    return written;
}

bool json_print(json_t *value, FILE *file)
{
    return print(value, file, JSON_INDENT(2));
}

sdlf_status json_print_result(json_t *value)
{
    bool printed = json_print(value, stdout);
    if (printed || interrupt_signal() == SIGPIPE) return SDLF_OK; /* the exit code reports a closed pipe */
    return sdlf_fail(SDLF_ERROR_IO, "the output could not be written");
}

sdlf_status json_print_measured(json_t *object)
{
    if (object) json_object_set_new(object, "interrupted", json_boolean(interrupt_signal() != 0));
    return json_print_result(object);
}

bool json_print_line(json_t *value, FILE *file)
{
    bool printed = print(value, file, JSON_COMPACT);
    return fflush(file) == 0 && printed;
}
