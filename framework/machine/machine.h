/* SPDX-License-Identifier: MIT */
/* The part of sdlf_machine_look that tests call. */
#ifndef SDLF_FRAMEWORK_MACHINE_MACHINE_H
#define SDLF_FRAMEWORK_MACHINE_MACHINE_H

#include <sdlf/machine.h>

/* As sdlf_machine_look, with `root` prepended to every path ("" except in tests) and `asked` as SDLF_MEMORY. */
sdlf_status machine_look(sdlf_machine *machine, const char *root, const char *asked);

#endif
