/* SPDX-License-Identifier: MIT */
/* Killing a process before one of its system calls that change files. Programs that use this are linked with --wrap, so
 * that its functions replace the system's. */
#ifndef SDLF_TESTS_KILLED_CALLS_H
#define SDLF_TESTS_KILLED_CALLS_H

/* From now on, count write, fsync, fchmod, fchown, flock, rename, unlink and unlinkat, and die of SIGKILL before the
 * n-th call; 0: never. */
void killed_calls_begin(int n);

#endif
