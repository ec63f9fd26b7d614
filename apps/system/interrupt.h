/* SPDX-License-Identifier: MIT */
/* Ctrl-C during long work: the first one asks it to stop, the second one ends the program at once. SIGTERM and SIGHUP
 * do the same. So does SIGPIPE, which says that nobody reads the output any more, but that any number of it only ask.
 *
 * Before interrupt_stops or interrupt_waits, and after interrupt_stops(NULL), a signal ends the program: while there is
 * nothing to keep. A command calls interrupt_waits when its measuring begins, has interrupt_goes_on asked, shows what
 * there is, says with interrupt_say what is missing, and lets command_conclude make the exit code.
 * docs/reference/program.md says what each command does. */
#ifndef SDLF_APPS_SYSTEM_INTERRUPT_H
#define SDLF_APPS_SYSTEM_INTERRUPT_H

#include <stdio.h>

#include <sdlf/trainer.h>

/* From now on signals stop this trainer; with NULL they end the program again. */
void interrupt_stops(sdlf_trainer *trainer);

/* From now on the first signal is kept, for work that asks interrupt_signal() from time to time. */
void interrupt_waits(void);

/* Note that another thread, a page's button, asks for what Ctrl-C does; to stop a trainer is left to the caller. */
void interrupt_ask(void);

/* The signal that came; 0: none did. */
int interrupt_signal(void);
/* None came: an sdlf_go_on, whose argument is not looked at. */
bool interrupt_goes_on(void *user);
/* What to call it: "Ctrl-C", "Terminated", "the page". */
const char *interrupt_name(void);

/* If one came, the line "stopped by Ctrl-C" with what is said behind it: on standard output below a table, else, where
 * that is for programs, on standard error. */
void interrupt_say(bool text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
