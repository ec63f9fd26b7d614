/* SPDX-License-Identifier: MIT */
/* The exit codes of the subcommands. */
#include "apps/command.h"

#include "apps/output/terminal.h"
#include "apps/system/interrupt.h"

int command_conclude(const char *name, sdlf_status status)
{
    if (status == SDLF_OK) return interrupt_signal() == 0 ? COMMAND_OK : COMMAND_SIGNAL + interrupt_signal();
    if (status == SDLF_ERROR_INTERRUPTED && interrupt_signal() != 0) {
        interrupt_say(false, "; %s", sdlf_error_message());
        return COMMAND_SIGNAL + interrupt_signal();
    }
    terminal_error(name, "%s", sdlf_error_message());
    return status == SDLF_ERROR_ARGUMENT ? COMMAND_USAGE : COMMAND_FAILED;
}
