/* How threads wait for work: for a moment at full speed, then asleep. */
#ifndef SDLF_APPS_SYSTEM_WAITING_H
#define SDLF_APPS_SYSTEM_WAITING_H

/* libgomp, GCC's OpenMP runtime, lets a thread that waits spin for milliseconds unless its environment says otherwise. Where
 * other programs want the processors too, every hand-over then takes a scheduler's turn: training may become twenty times slower.
 * libgomp reads the environment before main begins, so that this sets GOMP_SPINCOUNT and starts the program again with
 * `words`, main's own, which costs two milliseconds. Nothing happens where the user has said how threads wait (OMP_WAIT_POLICY,
 * GOMP_SPINCOUNT) or where they run (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY: the program started again would keep one
 * thread's processor), with another runtime, or where the program cannot be started again. */
void waiting_settle(char **words);

#endif
