/* Memory of the program itself. */
#include "apps/system/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (memory) return memory;
    fputs("sdlf: out of memory\n", stderr);
    exit(EXIT_FAILURE);
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
