/* SPDX-License-Identifier: MIT */
/* The version of SDLF: of the header, and of the library that is loaded. It is defined here only; CMake and the Python
 * package read it from this file.
 *
 * Before 1.0 a change of SDLF_VERSION_MINOR may change the interface.
 *
 * Threads: any thread may call sdlf_version.
 * Ownership: the text belongs to the library.
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

/* The SDLF_VERSION of the loaded library; a shared library may be newer than the header. */
const char *sdlf_version(void);

#ifdef __cplusplus
}
#endif

#endif
