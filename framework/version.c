/* SPDX-License-Identifier: MIT */
/* The version of the library that runs. */
#include <sdlf/version.h>

const char *sdlf_version(void)
{
    return SDLF_VERSION;
}
