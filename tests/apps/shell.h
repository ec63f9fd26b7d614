/* SPDX-License-Identifier: MIT */
/* Shell commands from a test, and what they say. */
#ifndef SDLF_TESTS_APPS_SHELL_H
#define SDLF_TESTS_APPS_SHELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/program.h"
#include "testing.h"

static char output[1 << 18];

/* Run a shell command, with its output and errors in `output`. Returns its exit code. */
static int shell(const char *format, ...)
{
    char command[4096];
    va_list words;
    va_start(words, format);
    vsnprintf(command, sizeof command, format, words);
    va_end(words);
    strncat(command, " 2>&1", sizeof command - strlen(command) - 1);
    FILE *stream = popen(command, "r");
    if (stream == NULL) return -1;
    size_t used = 0, read;
    while ((read = fread(output + used, 1, sizeof output - 1 - used, stream)) > 0) used += read;
    output[used] = '\0';
    int status = pclose(stream);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define SAYS(text)                                                                                                     \
    do {                                                                                                               \
        if (!CHECK(strstr(output, text) != NULL)) printf("expected '%s' in:\n%s\n", text, output);                     \
    } while (0)

/* Go to the folder of the test of that name. */
static bool shell_begin(const char *name)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", test_path(name));
    *strrchr(folder, '/') = '\0';
    return CHECK(chdir(folder) == 0);
}

#endif
