/* SPDX-License-Identifier: MIT */
/* Running sdlf as several processes from a test. A build without MPI skips such tests. */
#ifndef SDLF_TESTS_APPS_MPIRUN_H
#define SDLF_TESTS_APPS_MPIRUN_H

#include "apps/shell.h"

#ifndef SDLF_MPIRUN
#define SDLF_MPIRUN "" /* the build has no MPI */
#endif

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
    if (SDLF_MPIRUN[0] == '\0') {
        RUN(needs_mpi);
        return false;
    }
    if (TEST_SANITIZED) setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI's own: what it keeps to its end */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return shell_begin(name);
}

#endif
