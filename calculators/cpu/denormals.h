/* SPDX-License-Identifier: MIT */
/* Flushing of denormals to zero, for the calling thread.
 *
 * On most processors an operation on a denormal costs a hundred times one on a normal number, and training produces
 * them: the velocity of a weight that no longer gets a gradient (behind a pixel that is always black, for example)
 * shrinks by the momentum each step, and is denormal after some hundred steps. Nothing of value is lost below 1e-38. */
#ifndef SDLF_CALCULATORS_CPU_DENORMALS_H
#define SDLF_CALCULATORS_CPU_DENORMALS_H

#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>

/* Flushes results and operands (FTZ and DAZ); returns the state for cpu_denormals_restore. */
static inline uint64_t cpu_denormals_to_zero(void)
{
    uint32_t before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u);
    return before;
}

static inline void cpu_denormals_restore(uint64_t before)
{
    _mm_setcsr((uint32_t)before);
}

#elif defined(__aarch64__)

static inline uint64_t cpu_denormals_to_zero(void)
{
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | UINT64_C(1) << 24));
    return before;
}

static inline void cpu_denormals_restore(uint64_t before)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
}

#else

static inline uint64_t cpu_denormals_to_zero(void)
{
    return 0;
}

static inline void cpu_denormals_restore(uint64_t before)
{
    (void)before;
}

#endif
#endif
