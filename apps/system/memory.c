/* SPDX-License-Identifier: MIT */
/* Memory of the program itself. */
#include "apps/system/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/portable.h"

_Noreturn void memory_exhausted(void)
{
    fputs("sdlf: error: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}

static void *checked(void *memory)
{
    if (!memory) memory_exhausted();
    return memory;
}

void *memory_allocate(size_t bytes)
{
    return checked(calloc(1, bytes ? bytes : 1));
}

void *memory_resize(void *memory, size_t bytes)
{
    return checked(realloc(memory, bytes ? bytes : 1));
}

char *memory_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(memory_allocate(bytes), text, bytes);
}

char *memory_print(const char *format, ...)
{
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, format, values);
    va_end(values);
    size_t bytes = length < 0 ? 1 : (size_t)length + 1;
    char *text = memory_allocate(bytes);
    vsnprintf(text, bytes, format, again);
    va_end(again);
    return text;
}

/* ---- a stream into memory ---- */

static ssize_t append(void *cookie, const char *bytes, size_t count)
{
    memory_text *text = cookie;
    if (text->failed) return 0;
    if (text->length + count + 1 > text->capacity) {
        size_t capacity = 2 * (text->length + count + 1);
        char *larger = realloc(text->text, capacity);
        text->failed = !larger;
        if (!larger) return 0;
        text->text = larger;
        text->capacity = capacity;
    }
    memcpy(text->text + text->length, bytes, count);
    text->length += count;
    text->text[text->length] = '\0';
    return (ssize_t)count;
}

bool memory_text_open(memory_text *text)
{
    *text = (memory_text){.length = 0};
    text->file = system_open_writer(text, append);
    return text->file;
}

bool memory_text_close(memory_text *text)
{
    bool closed = fclose(text->file) == 0;
    append(text, "", 0); /* nothing may have been printed */
    text->file = NULL;
    if (closed && !text->failed) return true;
    free(text->text);
    text->text = NULL;
    return false;
}
