/* SPDX-License-Identifier: MIT */
/* Arithmetic that must give the same bits on every calculator: no product may be contracted with a following sum (FMA).
 *
 * GCC does not contract under -std=c11; Clang does if the machine has FMA instructions, and SDLF_EXACT forbids it
 * there. A function that needs this begins its body with SDLF_EXACT. Compilers with other rules (-ffp-contract=fast,
 * -ffast-math, nvcc) must have them switched off for the file. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_EXACT_H
#define SDLF_FRAMEWORK_OPERATIONS_EXACT_H

#if defined(__clang__)
#define SDLF_EXACT _Pragma("STDC FP_CONTRACT OFF")
#else
#define SDLF_EXACT
#endif

#endif
