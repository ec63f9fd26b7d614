/* SPDX-License-Identifier: MIT */
/* Instruction sets: those that were built, and those that this CPU supports. */
#include "calculators/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

extern const cpu_instance instance_cpu_plain_float, instance_cpu_plain_double;

static bool always(void)
{
    return true;
}

#if defined(SDLF_X86_LEVELS) /* CMakeLists.txt */
extern const cpu_instance instance_cpu_avx2_float, instance_cpu_avx2_double;
extern const cpu_instance instance_cpu_avx512_float, instance_cpu_avx512_double;

/* The features of x86-64-v3 and -v4, for which these instances are compiled. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_vnni(void)
{
    return __builtin_cpu_supports("avx512vnni");
}
#endif

static bool never(void)
{
    return false;
}

/* The widest first. */
static const cpu_level levels[] = {
#if defined(SDLF_X86_LEVELS)
    {"avx512", &instance_cpu_avx512_float, &instance_cpu_avx512_double, has_avx512, has_vnni},
    {"avx512-no-vnni", &instance_cpu_avx512_float, &instance_cpu_avx512_double, has_avx512, never},
    {"avx2", &instance_cpu_avx2_float, &instance_cpu_avx2_double, has_avx2, never},
#endif
#if defined(__aarch64__) /* 16-byte vectors are part of the architecture */
    {"neon", &instance_cpu_plain_float, &instance_cpu_plain_double, always, never},
#else
    {"plain", &instance_cpu_plain_float, &instance_cpu_plain_double, always, never},
#endif
};

sdlf_status cpu_level_choose(const cpu_level **level, const char *name)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (name && strcmp(name, levels[i].name) != 0) continue;
        if (levels[i].available()) {
            *level = &levels[i];
            return SDLF_OK;
        }
        if (name) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF_SIMD is '%s', which this machine lacks", name);
    }
    char names[64] = "";
    for (size_t i = sizeof levels / sizeof levels[0]; i > 0; i--)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " or " : "", levels[i - 1].name);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "SDLF_SIMD is '%s', expected %s (those built for this machine)", name, names);
}
