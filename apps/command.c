/* What the subcommands return. */
#include "apps/command.h"

#include "apps/output/terminal.h"

int command_conclude(const char *name, sdlf_status status)
{
    if (status == SDLF_OK) return COMMAND_OK;
    terminal_error(name, "%s", sdlf_error_message());
    return status == SDLF_ERROR_ARGUMENT ? COMMAND_USAGE : COMMAND_FAILED;
}
