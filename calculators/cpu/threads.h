/* SPDX-License-Identifier: MIT */
/* The threads of a cpu calculator: made when it is opened, ended when it is closed. Between two pieces of work they spin for some ten
 * microseconds, as long as the gaps between the parallel parts of a step, and then sleep.
 *
 * Three variables of the environment mean what they mean to OpenMP: OMP_NUM_THREADS, OMP_WAIT_POLICY (passive: sleep at once; active:
 * never), OMP_PROC_BIND (anything but false: each thread, the calling one too, stays on a processor of its own). */
#ifndef SDLF_CALCULATORS_CPU_THREADS_H
#define SDLF_CALCULATORS_CPU_THREADS_H

#include <stdbool.h>

#include <sdlf/status.h>

typedef struct cpu_threads cpu_threads;

/* `wanted` threads, the calling one counted, or as many as the system lets us make: cpu_threads_count says how many came of it.
 * Errors: SDLF_ERROR_MEMORY. */
sdlf_status cpu_threads_create(cpu_threads **threads, int wanted);
void cpu_threads_free(cpu_threads *threads); /* accepts NULL */
int cpu_threads_count(const cpu_threads *threads);
/* How many pauses (pause.h) a thread is to wait for another one before it leaves the processor to others. */
int cpu_threads_patience(const cpu_threads *threads);

/* Call work(context, t) for each t of [0, count), at most cpu_threads_count, each on a thread of its own, 0 on the calling one;
 * returns true when all have returned. False, and nothing has been called, where the threads are busy (work that asks for them
 * again, another thread of the program) or are not there: a child of fork() has one thread, the one that called it. */
typedef void cpu_work(void *context, int thread);
bool cpu_threads_run(cpu_threads *threads, int count, cpu_work *work, void *context);

/* How many threads to ask for where `wanted` were (0: OMP_NUM_THREADS, or the processors that this process may run on). */
int cpu_threads_choose(int wanted);

#endif
