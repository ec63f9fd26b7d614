/* How threads wait. */
#include "apps/system/waiting.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifdef SDLF_LIBGOMP

/* Rounds of spinning, some ten microseconds: as long as the gaps between the parallel parts of a step. */
static const char *const spin_count = "5000";

/* libgomp gives the thread that begins a processor of its own before main: started again, the program would have that one alone. */
static bool threads_are_bound(void)
{
    return getenv("OMP_PROC_BIND") || getenv("OMP_PLACES") || getenv("GOMP_CPU_AFFINITY");
}

/* By its path, not as /proc/self/exe, which would be the process's name from then on. */
void waiting_settle(char **words)
{
    char path[4096];
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || threads_are_bound()) return;
    if (getauxval(AT_BASE) == 0) return; /* the dynamic loader was started with the program as its argument */
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0 || length == (ssize_t)sizeof path - 1) return;
    path[length] = 0;
    if (setenv("GOMP_SPINCOUNT", spin_count, 1) == 0) execv(path, words);
}

#else

void waiting_settle(char **words)
{
    (void)words;
}

#endif
