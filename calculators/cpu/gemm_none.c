/* SPDX-License-Identifier: MIT */
/* A build without an external GEMM library. */
#include "calculators/cpu/cpu.h"

const cpu_gemm_library *cpu_gemm_library_of_build(void)
{
    return NULL;
}
