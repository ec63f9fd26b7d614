/* SPDX-License-Identifier: MIT */
/* Arithmetic that must give the same bits on every calculator: no product may be contracted with the sum behind it.
 *
 * GCC does not contract under -std=c11; Clang does where the machine has such an instruction, and is told here. A
 * function that uses it begins its body with SDLF_EXACT. Whoever compiles with other rules (-ffp-contract=fast,
 * -ffast-math, nvcc) must switch them off for the file. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_EXACT_H
#define SDLF_FRAMEWORK_OPERATIONS_EXACT_H

#if defined(__clang__)
#define SDLF_EXACT _Pragma("STDC FP_CONTRACT OFF")
#else
#define SDLF_EXACT
#endif

#endif
