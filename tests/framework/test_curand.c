/* SPDX-License-Identifier: MIT */
/* The correspondence between our Philox words and cuRAND's. Its device functions are compiled for the host here
 * (curand_words.cu), and its library draws on the host, so the test needs the toolkit but no GPU.
 *
 *   sdlf_philox4x32(seed, index, stream, step) = curand4 after curand_init(seed, stream + 2^32 step, 4 index)
 *
 * The library's generator cycles through 65,536 subsequences, so its output does not correspond to a single one of our
 * streams. */
#include "testing.h"

#include <sdlf/random.h>

#ifdef SDLF_TEST_CURAND

#include <curand.h>
#include <stdlib.h>

void curand_words(uint64_t seed, uint64_t subsequence, uint64_t offset, int count, uint32_t *words);
float curand_number(uint64_t seed, uint64_t subsequence, uint64_t offset);

static const uint64_t seeds[] = {0, 1, UINT64_C(0x123456789abcdef), UINT64_MAX};

static void a_counter_is_a_subsequence_and_an_offset(void)
{
    static const uint64_t indices[] = {
        0, 1, 65535, UINT64_C(0xffffffff), UINT64_C(0x100000000), UINT64_C(0x123456789ab)};
    static const uint32_t streams[] = {0, 1, SDLF_STREAM_PARAMETER, UINT32_MAX}, steps[] = {0, 1, 999, UINT32_MAX};
    enum { GROUPS = 3 };
    for (int i = 0; i < 4 * 6 * 4 * 4; i++) {
        uint64_t seed = seeds[i % 4], index = indices[i / 4 % 6];
        uint32_t stream = streams[i / 24 % 4], step = steps[i / 96];
        uint32_t words[4 * GROUPS] = {0};
        curand_words(seed, stream | (uint64_t)step << 32, 4 * index, GROUPS, words);
        for (int group = 0; group < GROUPS; group++) {
            sdlf_philox own = sdlf_philox4x32(seed, index + (uint64_t)group, stream, step);
            for (int word = 0; word < 4; word++) CHECK_EQUAL(own.word[word], words[4 * group + word]);
        }
    }
}

/* Therefore it cannot reproduce a tensor's numbers, which are a single stream. */
static void the_library_deals_subsequences_out(void)
{
    enum { SUBSEQUENCES = 65536, COUNT = 4 * SUBSEQUENCES * 2 };
    unsigned *words = malloc(COUNT * sizeof *words);
    curandGenerator_t generator = NULL;
    if (!CHECK(words != NULL)) return;
    if (CHECK_EQUAL(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_SUCCESS)) {
        CHECK_EQUAL(curandSetPseudoRandomGeneratorSeed(generator, seeds[2]), CURAND_STATUS_SUCCESS);
        CHECK_EQUAL(curandGenerate(generator, words, COUNT), CURAND_STATUS_SUCCESS);
        int64_t wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            sdlf_philox own =
                sdlf_philox4x32(seeds[2], (uint64_t)i / 4 / SUBSEQUENCES, (uint32_t)i / 4 % SUBSEQUENCES, 0);
            wrong += own.word[i % 4] != words[i];
        }
        CHECK_EQUAL(wrong, 0);
        curandDestroyGenerator(generator);
    }
    free(words);
}

/* The same word is converted differently: to x 2^-32 + 2^-33 in float32, which can be 1; ours are the upper 24 bits and
 * cannot be 1. */
static void its_uniform_numbers_are_others(void)
{
    int same = 0, close = 0;
    enum { COUNT = 1000 };
    for (uint64_t i = 0; i < COUNT; i++) {
        float own = sdlf_uniform_from_word(sdlf_philox4x32(1, i, 2, 3).word[0]);
        float other = curand_number(1, 2 | UINT64_C(3) << 32, 4 * i);
        same += own == other;
        close += other - own > -0x1p-23f && other - own < 0x1p-23f;
    }
    CHECK_EQUAL(close, COUNT);
    CHECK(same < COUNT * 3 / 4);
}

int main(void)
{
    RUN(a_counter_is_a_subsequence_and_an_offset);
    RUN(the_library_deals_subsequences_out);
    RUN(its_uniform_numbers_are_others);
    return test_summary();
}

#else

static void same_words(void)
{
    test_skip("this build has no CUDA Toolkit with cuRAND to compare with");
}

int main(void)
{
    RUN(same_words);
    return test_summary();
}

#endif
