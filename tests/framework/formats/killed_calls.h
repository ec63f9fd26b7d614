/* SPDX-License-Identifier: MIT */
/* A process that is killed before one of its calls of the system that change files. A program that has this is linked
 * so that its own functions stand before the system's (--wrap). */
#ifndef SDLF_TESTS_KILLED_CALLS_H
#define SDLF_TESTS_KILLED_CALLS_H

/* From now on count write, fsync, fchmod, fchown, flock, rename, unlink and unlinkat, and die of SIGKILL before the
 * n-th; 0: of none. */
void killed_calls_begin(int n);

#endif
