/* SPDX-License-Identifier: MIT */
/* The threads of a cpu calculator: started when it is opened, ended when it is closed. Between two parallel regions
 * they spin for some 200 microseconds, longer than the gaps between the regions of most plans, and then sleep.
 *
 * OMP_NUM_THREADS, OMP_WAIT_POLICY (passive: sleep at once; active: never) and OMP_PROC_BIND (anything but false: each
 * thread, including the calling one, is bound to a core of its own) have their OpenMP meaning. */
#ifndef SDLF_CALCULATORS_CPU_THREADS_H
#define SDLF_CALCULATORS_CPU_THREADS_H

#include <stdbool.h>

#include <sdlf/status.h>

typedef struct cpu_threads cpu_threads;

/* Starts `wanted` threads, including the calling one, or as many as the system permits: cpu_threads_count returns the
 * number. Errors: SDLF_ERROR_MEMORY. */
sdlf_status cpu_threads_create(cpu_threads **threads, int wanted);
void cpu_threads_free(cpu_threads *threads); /* accepts NULL */
int cpu_threads_count(const cpu_threads *threads);
/* How many pauses (pause.h) a thread waits for another one before it yields the core. */
int cpu_threads_patience(const cpu_threads *threads);

/* Calls work(context, t) for each t in [0, count), count at most cpu_threads_count, each on a thread of its own, 0 on
 * the calling one; returns true when all have returned. Returns false, with nothing called, if the threads are busy (a
 * nested call, or another thread of the program) or absent: a child of fork() has only the thread that called it. */
typedef void cpu_work(void *context, int thread);
bool cpu_threads_run(cpu_threads *threads, int count, cpu_work *work, void *context);

/* The number of threads for a request of `wanted` (0: OMP_NUM_THREADS, or the cores available to this process). */
int cpu_threads_choose(int wanted);

#endif
