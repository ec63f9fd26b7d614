/* SPDX-License-Identifier: MIT */
/* Runs a benchmark inside the test process. */
#include "apps/capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing.h"

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    enum { MOST = 1 << 20 };
    char *text = calloc(1, MOST);
    if (file && text && fread(text, 1, MOST - 1, file) == 0) text[0] = '\0';
    if (file) fclose(file);
    return text;
}

int capture_run(int (*run)(int count, char **words), const char *const *words, char **text)
{
    char *copy[64] = {NULL};
    int count = 0;
    for (; words[count] && count < 63; count++) copy[count] = strdup(words[count]);
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("captured"));
    fflush(NULL);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    char *moved[64]; /* the program's operands are moved to the front */
    memcpy(moved, copy, sizeof moved);
    int code = run(count, moved);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(file);
    close(out);
    close(err);
    for (int i = 0; i < count; i++) free(copy[i]);
    *text = read_all(path);
    return code;
}

json_t *capture_json(const char *file, int line, int (*run)(int count, char **words), const char *const *words)
{
    char *text = NULL;
    int code = capture_run(run, words, &text);
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!test_check_equal(code, 0, file, line, "exit code") || !test_check(json != NULL, file, line, "JSON"))
        fprintf(stderr, "---- printed:\n%s----\n", text);
    free(text);
    return json;
}
