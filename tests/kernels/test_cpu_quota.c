/* SPDX-License-Identifier: MIT */
/* The default number of threads of the cpu calculator: at most the CPU cores available to the process, of which
 * container quotas may leave fewer than the machine has. */
#include <stdlib.h>

#include <sdlf/machine.h>

#include "calculators/cpu/cpu.h"
#include "testing.h"

int __wrap_sdlf_machine_processors(void);

/* As in a container with a quota of one. */
int __wrap_sdlf_machine_processors(void)
{
    return 1;
}

static int threads_of(int wanted)
{
    sdlf_calculator *cpu = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = wanted}))) return 0;
    int threads = cpu_from(cpu)->threads;
    sdlf_calculator_close(cpu);
    return threads;
}

static void a_quota_counts(void)
{
    CHECK_EQUAL(threads_of(0), 1);
}

static void what_the_user_says_counts_more(void)
{
    CHECK_EQUAL(threads_of(0), atoi(getenv("OMP_NUM_THREADS")));
}

int main(void)
{
    if (getenv("OMP_NUM_THREADS") != NULL)
        RUN(what_the_user_says_counts_more);
    else
        RUN(a_quota_counts);
    return test_summary();
}
