/* Running sdlf as several processes from a test. A build without MPI skips such tests. */
#ifndef SDLF_TESTS_APPS_MPIRUN_H
#define SDLF_TESTS_APPS_MPIRUN_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/program.h"
#include "testing.h"

#ifndef SDLF_MPIRUN
#define SDLF_MPIRUN "" /* the build has no MPI */
#endif

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

/* The words before a rank's own: `ranks` processes, however few processors there are, of sdlf with these. */
static const char *mpirun_words(int ranks, const char *words)
{
    static char text[512];
    snprintf(text, sizeof text, "%s --oversubscribe -n %d %s %s", SDLF_MPIRUN, ranks, program_path, words);
    return text;
}

static void needs_mpi(void)
{
    test_skip("this build has no MPI");
}

/* Go to the folder of the test of that name. False: there is no MPI, or no folder; all that is left is test_summary. */
static bool mpirun_begin(const char *name)
{
    char folder[1024];
    if (SDLF_MPIRUN[0] == '\0') {
        RUN(needs_mpi);
        return false;
    }
    if (TEST_SANITIZED) setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI's own: what it keeps to its end */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    snprintf(folder, sizeof folder, "%s", test_path(name));
    *strrchr(folder, '/') = '\0';
    return CHECK(chdir(folder) == 0);
}

#endif
