/* SPDX-License-Identifier: MIT */
/* Many sums over the lanes of a warp, in fewer exchanges than one after the other would take. */
#ifndef SDLF_CALCULATORS_CUDA_LANES_CUH
#define SDLF_CALCULATORS_CUDA_LANES_CUH

/* Lanes that differ by FIRST, FIRST / 2, ... LAST add up their numbers, always in the same order: each gives half of those it has left to
 * the other, and keeps the sums of the rest. It ends up with COUNT LAST / (2 FIRST) sums, in numbers[0] and what follows; which ones
 * they are, from the result on. HALF: of what is left; it must come out even. */
template <int FIRST, int LAST, int COUNT, int HALF = COUNT / 2>
static __device__ __forceinline__ int add_lanes(float (&numbers)[COUNT])
{
    const bool upper = (threadIdx.x & FIRST) != 0;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        float given = upper ? numbers[i] : numbers[i + HALF], held = upper ? numbers[i + HALF] : numbers[i];
        numbers[i] = held + __shfl_xor_sync(0xffffffffu, given, FIRST);
    }
    int kept = upper ? HALF : 0;
    if constexpr (FIRST > LAST) kept += add_lanes<FIRST / 2, LAST, COUNT, HALF / 2>(numbers);
    return kept;
}

#endif
