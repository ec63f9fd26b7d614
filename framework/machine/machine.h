/* SPDX-License-Identifier: MIT */
/* What sdlf_machine_look puts together, for tests. */
#ifndef SDLF_FRAMEWORK_MACHINE_MACHINE_H
#define SDLF_FRAMEWORK_MACHINE_MACHINE_H

#include <sdlf/machine.h>

/* As sdlf_machine_look, with `root` before every path ("" but in tests) and `asked` for SDLF_MEMORY (NULL: not set). */
sdlf_status machine_look(sdlf_machine *machine, const char *root, const char *asked);

#endif
