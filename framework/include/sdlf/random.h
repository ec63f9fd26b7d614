/* SPDX-License-Identifier: MIT */
/* Philox4x32-10: counter-based random numbers (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3,
 * SC 2011). A number depends only on the key and on its position, so every calculator draws the same numbers, with any
 * number of threads.
 *
 * Convention of every random operation: the key is the 64-bit seed; the counter is (index low, index high, stream,
 * step): `index` counts groups of four numbers within a tensor (element e uses word e % 4 of group e / 4), `stream`
 * separates the users of one seed (each parameter, each dropout layer, the shuffle, the augmentation), `step` is the
 * training step or epoch.
 *
 * cuRAND's Philox is the same function: these are the words of curand4 after curand_init(seed, stream + 2^32 step, 4
 * index). Kernels do not call it: one implementation serves every calculator, with and without CUDA, and cuRAND
 * converts the words to floats differently, depending on the hardware: its uniform numbers are in (0, 1], and its
 * normal numbers use a library's logarithm.
 *
 * Threads: pure functions, for any thread.
 * Ownership: values.
 * Errors: none. */
#ifndef SDLF_RANDOM_H
#define SDLF_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Small functions shared by host code and CUDA kernels. */
#ifdef __CUDACC__
#define SDLF_INLINE static __host__ __device__ inline
#else
#define SDLF_INLINE static inline
#endif

typedef struct sdlf_philox {
    uint32_t word[4];
} sdlf_philox;

SDLF_INLINE sdlf_philox sdlf_philox4x32(uint64_t seed, uint64_t index, uint32_t stream, uint32_t step)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = stream, c3 = step;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    sdlf_philox result = {{c0, c1, c2, c3}};
    return result;
}

/* Uniform in [0, 1) on the grid of 2^-24: the upper 24 bits, exact in float32. */
SDLF_INLINE float sdlf_uniform_from_word(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216);
}

/* Streams of one seed. Parameters and dropout layers have streams above these bases: a parameter by its index in the
 * model, see sdlf_parameter_stream, a dropout layer by the index of its node. */
enum {
    SDLF_STREAM_SHUFFLE = 1,
    SDLF_STREAM_AUGMENT = 2,
    SDLF_STREAM_DATASET = 3,
    SDLF_STREAM_MIX = 4,
    SDLF_STREAM_PARAMETER = 0x10000,
    SDLF_STREAM_DROPOUT = 0x20000,
    SDLF_STREAM_LATE_PARAMETER = 0x40000000,
};

/* The stream of the initial values of a model's parameter `index`. Indices from 0x10000 on would collide with the
 * streams of dropout layers, and have a separate range. */
SDLF_INLINE uint32_t sdlf_parameter_stream(int index)
{
    int room = SDLF_STREAM_DROPOUT - SDLF_STREAM_PARAMETER;
    return (uint32_t)(index < room ? SDLF_STREAM_PARAMETER : SDLF_STREAM_LATE_PARAMETER) + (uint32_t)index;
}

#ifdef __cplusplus
}
#endif
#endif
