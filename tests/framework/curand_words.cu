/* SPDX-License-Identifier: MIT */
/* The words drawn by cuRAND's device functions, on the host: its header's functions are compiled for both. */
#define QUALIFIERS static inline __host__ __device__
#include <curand_kernel.h>

#include <stdint.h>

/* words[0 .. 4 count - 1]: what a thread draws with curand4 after curand_init(seed, subsequence, offset). */
extern "C" void curand_words(uint64_t seed, uint64_t subsequence, uint64_t offset, int count, uint32_t *words)
{
    curandStatePhilox4_32_10_t state;
    curand_init(seed, subsequence, offset, &state);
    for (int i = 0; i < count; i++) {
        uint4 group = curand4(&state);
        words[4 * i] = group.x;
        words[4 * i + 1] = group.y;
        words[4 * i + 2] = group.z;
        words[4 * i + 3] = group.w;
    }
}

/* What curand_uniform makes of the first of these words. */
extern "C" float curand_number(uint64_t seed, uint64_t subsequence, uint64_t offset)
{
    curandStatePhilox4_32_10_t state;
    curand_init(seed, subsequence, offset, &state);
    return curand_uniform(&state);
}
