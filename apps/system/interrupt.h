/* Ctrl-C during long work: the first one asks it to stop, the second one ends the program at once. SIGTERM and SIGHUP do the
 * same. So does SIGPIPE, which says that nobody reads the output any more, but that any number of it only ask. */
#ifndef SDLF_APPS_SYSTEM_INTERRUPT_H
#define SDLF_APPS_SYSTEM_INTERRUPT_H

#include <sdlf/trainer.h>

/* From now on signals stop this trainer; with NULL they end the program again. */
void interrupt_stops(sdlf_trainer *trainer);

/* From now on the first signal is kept, for work that asks interrupt_signal() from time to time. */
void interrupt_waits(void);

/* The signal that came; 0: none did. */
int interrupt_signal(void);
/* What to call it: "Ctrl-C", "Terminated". */
const char *interrupt_name(void);

#endif
