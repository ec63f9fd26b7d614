/* Memory of the program itself: small texts and tables. When it runs out the program says so and ends with code 1. */
#ifndef SDLF_APPS_SYSTEM_MEMORY_H
#define SDLF_APPS_SYSTEM_MEMORY_H

#include <stddef.h>

void *memory_allocate(size_t bytes); /* zeroed */
void *memory_resize(void *memory, size_t bytes);
char *memory_copy_text(const char *text);

/* printf into a fresh text, the caller's to free. */
char *memory_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
