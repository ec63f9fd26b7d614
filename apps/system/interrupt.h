/* SPDX-License-Identifier: MIT */
/* Ctrl-C during long work: the first one requests a stop, the second one ends the program at once. SIGTERM and SIGHUP
 * do the same. SIGPIPE (nobody reads the output any more) only requests a stop, however often it comes.
 *
 * Before interrupt_stops or interrupt_waits, and after interrupt_stops(NULL), when there is nothing to keep, a signal
 * ends the program. A command calls interrupt_waits when its measuring begins, polls interrupt_goes_on, shows partial
 * results, reports with interrupt_say what is missing, and lets command_conclude compute the exit code.
 * docs/reference/program.md describes each command. */
#ifndef SDLF_APPS_SYSTEM_INTERRUPT_H
#define SDLF_APPS_SYSTEM_INTERRUPT_H

#include <stdio.h>

#include <sdlf/trainer.h>

/* From now on signals stop this trainer; with NULL they end the program again. */
void interrupt_stops(sdlf_trainer *trainer);

/* From now on the first signal is recorded, for work that polls interrupt_signal() from time to time. */
void interrupt_waits(void);

/* Record a stop request from another thread, such as a page's button, like Ctrl-C; the caller stops the trainer. */
void interrupt_ask(void);

/* The signal that came; 0: none did. */
int interrupt_signal(void);
/* True if no signal came: an sdlf_go_on, whose argument is ignored. */
bool interrupt_goes_on(void *user);
/* Its name for messages: "Ctrl-C", "Terminated", "the page". */
const char *interrupt_name(void);

/* If one came, print the line "stopped by Ctrl-C" followed by the given text: with `text`, on standard output below a
 * table; else, as that is for programs, on standard error. */
void interrupt_say(bool text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
