/* SPDX-License-Identifier: MIT */
/* Memory of the program itself: small texts and tables. When it runs out the program says so and ends with code 1, but
 * where a function returns whether. */
#ifndef SDLF_APPS_SYSTEM_MEMORY_H
#define SDLF_APPS_SYSTEM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void *memory_allocate(size_t bytes); /* zeroed */
void *memory_resize(void *memory, size_t bytes);
char *memory_copy_text(const char *text);

/* printf into a fresh text, the caller's to free. */
char *memory_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Say that memory has run out, and end the program. */
_Noreturn void memory_exhausted(void);

/* Text that is printed into memory. (Not open_memstream's: where memory runs out it drops what was printed, and reports
 * nothing.) */
typedef struct memory_text {
    FILE *file; /* to print to */
    char *text; /* once closed; free() it */
    size_t length, capacity;
    bool failed;
} memory_text;
bool memory_text_open(memory_text *text);  /* in place: it is not to be moved before it is closed. False: no memory */
bool memory_text_close(memory_text *text); /* false: memory ran out, and there is no text */

#endif
