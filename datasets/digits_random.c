/* SPDX-License-Identifier: MIT */
/* The random numbers of one image of `digits`. */
#include "datasets/digits.h"

digit_random digit_random_start(uint64_t seed, sdlf_split split, int64_t image)
{
    return (digit_random){.seed = seed, .image = (uint64_t)image, .split = (uint32_t)split};
}

uint32_t digit_random_word(digit_random *random)
{
    uint32_t place = random->drawn++;
    /* 2^16 blocks are reserved for an image; it uses about a hundred */
    if (place % 4 == 0)
        random->block =
            sdlf_philox4x32(random->seed, random->image << 16 | place / 4, SDLF_STREAM_DATASET, random->split);
    return random->block.word[place % 4];
}

float digit_random_uniform(digit_random *random, float low, float high)
{
    return low + (high - low) * sdlf_uniform_from_word(digit_random_word(random));
}

float digit_random_bell(digit_random *random, float sigma)
{
    /* the four uniform numbers are the halves of two words */
    uint32_t a = digit_random_word(random), b = digit_random_word(random);
    uint32_t sum = (a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16);
    /* mean 2 * 65535, variance 4 * 65536^2 / 12 */
    return sigma * ((float)((int32_t)sum - 131070) * (1.7320508f / 65536.0f));
}
