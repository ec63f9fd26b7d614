/* SPDX-License-Identifier: MIT */
/* Reduces several sums over the lanes of a warp at once, with fewer shuffles than one reduction after another. */
#ifndef SDLF_CALCULATORS_CUDA_LANES_CUH
#define SDLF_CALCULATORS_CUDA_LANES_CUH

/* Lanes whose indices differ in the bits FIRST, FIRST / 2, ... LAST add up their values, always in the same order: in each step a lane
 * gives half of its values to its partner, and keeps the sums of the other half. It ends up with COUNT LAST / (2 FIRST) sums, in numbers[0]
 * and following; the result is the index of the first of them. HALF: half of the values left; it must be an integer at every step. */
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
