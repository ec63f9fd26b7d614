/* SPDX-License-Identifier: MIT */
/* A short pause for a thread that polls in a spin loop. */
#ifndef SDLF_CALCULATORS_CPU_PAUSE_H
#define SDLF_CALCULATORS_CPU_PAUSE_H

#if defined(__aarch64__)
static inline void cpu_pause(void)
{
    __asm__ volatile("yield");
}
#elif defined(__x86_64__) || defined(__i386__)
static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}
#else
static inline void cpu_pause(void)
{
}
#endif

#endif
