/* SPDX-License-Identifier: MIT */
/* Running a benchmark inside the test, where the pretended device can be opened: what it prints is kept. */
#ifndef SDLF_TESTS_APPS_CAPTURE_H
#define SDLF_TESTS_APPS_CAPTURE_H

#include <jansson.h>

/* Call run(count, words) with standard output (and errors, which go to the same text) kept. The words are copied and
 * end with NULL. Returns its exit code; `text` is the caller's to free. */
int capture_run(int (*run)(int count, char **words), const char *const *words, char **text);

/* The same, checked to end with 0 and to print JSON, which is the caller's to json_decref; NULL after a failed
 * check. */
#define CAPTURE_JSON(run, ...) capture_json(__FILE__, __LINE__, (run), (const char *const[]){__VA_ARGS__, NULL})
json_t *capture_json(const char *file, int line, int (*run)(int count, char **words), const char *const *words);

#endif
