/* SPDX-License-Identifier: MIT */
/* Memory of the program itself: small texts and tables. When it runs out the program reports it and exits with code 1,
 * except in functions that return whether they succeeded. */
#ifndef SDLF_APPS_SYSTEM_MEMORY_H
#define SDLF_APPS_SYSTEM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void *memory_allocate(size_t bytes); /* zeroed */
void *memory_resize(void *memory, size_t bytes);
char *memory_copy_text(const char *text);

/* printf into a new string, which the caller frees. */
char *memory_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Report that memory ran out, and end the program. */
_Noreturn void memory_exhausted(void);

/* Text printed to memory. (open_memstream is not used: when memory runs out it drops the output without an
 * error.) */
typedef struct memory_text {
    FILE *file; /* to print to */
    char *text; /* once closed; free() it */
    size_t length, capacity;
    bool failed;
} memory_text;
bool memory_text_open(memory_text *text);  /* in place: do not move it before it is closed. False: out of memory */
bool memory_text_close(memory_text *text); /* false: memory ran out, and there is no text */

#endif
