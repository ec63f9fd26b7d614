/* SPDX-License-Identifier: MIT */
/* The version of SDLF: of the header, and of the library that runs. This file is where it is written; CMake and the
 * Python package read it.
 *
 * Before 1.0 a change of SDLF_VERSION_MINOR may change the interface.
 *
 * Threads: any thread may call sdlf_version.
 * Ownership: its text is the library's.
 * Errors: none. */
#ifndef SDLF_VERSION_H
#define SDLF_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

#define SDLF_VERSION_MAJOR 0
#define SDLF_VERSION_MINOR 2
#define SDLF_VERSION_PATCH 0
#define SDLF_VERSION       "0.2.0"

/* The SDLF_VERSION of the library that the program runs with, which a shared library may have newer than the header. */
const char *sdlf_version(void);

#ifdef __cplusplus
}
#endif

#endif
