/* SPDX-License-Identifier: MIT */
/* The version of the loaded library. */
#include <sdlf/version.h>

const char *sdlf_version(void)
{
    return SDLF_VERSION;
}
