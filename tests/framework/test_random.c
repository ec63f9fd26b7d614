/* SPDX-License-Identifier: MIT */
/* Philox4x32-10 against its authors' known answers, and the random numbers derived from its words. */
#include "testing.h"

#include <sdlf/random.h>

#include "framework/operations/draws.h"

#include <limits.h>
#include <math.h>

static void known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const uint32_t *counter = vectors[i].counter, *key = vectors[i].key;
        sdlf_philox found = sdlf_philox4x32((uint64_t)key[1] << 32 | key[0], (uint64_t)counter[1] << 32 | counter[0],
                                            counter[2], counter[3]);
        for (int w = 0; w < 4; w++) CHECK_EQUAL(found.word[w], vectors[i].expected[w]);
    }
}

static void uniform_numbers_lie_on_their_grid(void)
{
    CHECK_CLOSE((double)sdlf_uniform_from_word(0), 0, 0);
    CHECK_CLOSE((double)sdlf_uniform_from_word(0xff), 0, 0);
    CHECK_CLOSE((double)sdlf_uniform_from_word(0x100), 0x1p-24, 0);
    CHECK_CLOSE((double)sdlf_uniform_from_word(UINT32_MAX), 1 - 0x1p-24, 0);
    CHECK(sdlf_uniform_from_word(UINT32_MAX) < 1.0f);
}

static void uniform_numbers_have_their_moments(void)
{
    enum { GROUPS = 50000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < GROUPS; i++) {
        sdlf_philox group = sdlf_philox4x32(1, i, 0, 0);
        for (int w = 0; w < 4; w++) {
            double u = (double)sdlf_uniform_from_word(group.word[w]);
            sum += u;
            squares += u * u;
        }
    }
    double n = 4.0 * GROUPS, mean = sum / n;
    CHECK_CLOSE(mean, 0.5, 0.003); /* 4.6 deviations of the mean */
    CHECK_CLOSE(squares / n - mean * mean, 1.0 / 12, 0.001);
}

/* The integer comparison is the same decision as u < p. */
static void dropout_threshold_decides_as_the_number_does(void)
{
    const float probabilities[] = {0.0f, 0x1p-24f, 0x1p-30f, 0.1f, 0.25f, 0.5f, 0.999f, 0x1.fffffep-1f};
    int wrong = 0;
    for (size_t i = 0; i < sizeof probabilities / sizeof probabilities[0]; i++) {
        uint32_t threshold = sdlf_dropout_threshold(probabilities[i]);
        for (int64_t near = -2; near <= 2; near++) {
            int64_t top = (int64_t)threshold + near;
            if (top < 0 || top >= 1 << 24) continue;
            uint32_t word = (uint32_t)top << 8 | 0x5a;
            bool dropped = sdlf_uniform_from_word(word) < probabilities[i];
            if (dropped == sdlf_dropout_keeps(word, threshold)) wrong++;
        }
    }
    CHECK_EQUAL(wrong, 0);
    CHECK(sdlf_dropout_keeps(0, sdlf_dropout_threshold(0)));
}

static void normal_numbers_have_their_moments(void)
{
    enum { PAIRS = 100000 };
    double sum = 0, squares = 0, fourth = 0, product = 0;
    for (uint64_t i = 0; i < PAIRS; i++) {
        sdlf_philox group = sdlf_philox4x32(2, i, 0, 0);
        double value[2];
        sdlf_random_normal_pair(group.word[0], group.word[1], 3, 2, value);
        double a = (value[0] - 3) / 2, b = (value[1] - 3) / 2;
        sum += a + b;
        squares += a * a + b * b;
        fourth += a * a * a * a + b * b * b * b;
        product += a * b;
    }
    CHECK_CLOSE(sum / (2.0 * PAIRS), 0, 0.01);
    CHECK_CLOSE(squares / (2.0 * PAIRS), 1, 0.015);
    CHECK_CLOSE(fourth / (2.0 * PAIRS), 3, 0.12);
    CHECK_CLOSE(product / PAIRS, 0, 0.015);
    double extreme[2]; /* the largest possible: u1 = 2^-32 */
    sdlf_random_normal_pair(0, 0, 0, 1, extreme);
    CHECK_CLOSE(extreme[0], sqrt(64 * log(2)), 1e-12);
    CHECK_CLOSE(extreme[1], 0, 0);
}

/* Logarithm, sine and cosine compared with the library's where they are hardest: at both ends, and around multiples of
 * a right angle. */
static void series_are_what_they_stand_for(void)
{
    const double pi = 3.14159265358979323846;
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t word = sdlf_philox4x32(3, i, 0, 0).word[0] >> (i % 32);
        if (i % 3 == 1) word = ~word;
        if (i % 3 == 2) word += (uint32_t)(i % 4) << 30;
        double sine, cosine, angle = 2 * pi * ((double)word * 0x1p-32),
                             log_found = sdlf_log_of_fraction(word + UINT64_C(1));
        double expected = log(((double)word + 1) * 0x1p-32);
        sdlf_sine_and_cosine(word, &sine, &cosine);
        CHECK_CLOSE(log_found, expected, 4e-16 * fabs(expected));
        CHECK_CLOSE(sine, sin(angle), 2e-15); /* the angle itself is rounded here */
        CHECK_CLOSE(cosine, cos(angle), 2e-15);
    }
    CHECK_CLOSE(sdlf_log_of_fraction(UINT64_C(1) << 32), 0, 0);
    for (uint32_t quarter = 0; quarter < 4; quarter++) {
        double sine, cosine;
        sdlf_sine_and_cosine(quarter << 30, &sine, &cosine);
        CHECK_CLOSE(sine, quarter % 2 == 0 ? 0 : 2 - (double)quarter, 0);
        CHECK_CLOSE(cosine, quarter % 2 == 1 ? 0 : 1 - (double)quarter, 0);
    }
}

/* Fixed, so that they are the same on every machine and with every compiler. */
static void normal_numbers_are_these(void)
{
    static const struct {
        uint32_t w0, w1;
        double expected[2];
    } known[] = {
        {0x00000000, 0x00000001, {0x1.ba4499161cd47p+3, 0x1.000000a765212p-1}},
        {0x6627e8d5, 0xe169c58d, {0x1.3dbb32ed8db24p+1, -0x1.596d5ff0aec98p+0}},
        {0xbc57ac4c, 0x9b00dbd8, {-0x1.786e7badb2abp-1, -0x1.db46c679b2e24p-2}},
        {0xffffffff, 0x12345678, {0x1p-1, 0x1p-1}},
        {0xfffffffe, 0x40000001, {0x1.ffffffffffb8fp-2, 0x1.0005a82799a14p-1}},
        {0x243f6a88, 0xbfffffff, {0x1.ffffff9c9c8b6p-2, -0x1.ba2e7464b194p+1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double value[2];
        sdlf_random_normal_pair(known[i].w0, known[i].w1, 0.5, 2, value);
        for (int k = 0; k < 2; k++) CHECK_CLOSE(value[k], known[i].expected[k], 0);
    }
}

/* Those of parameters and of dropout layers, of networks of any size. */
static void streams_stay_apart(void)
{
    CHECK_EQUAL(sdlf_parameter_stream(0), 0x10000);
    CHECK_EQUAL(sdlf_parameter_stream(0xffff), 0x1ffff);
    CHECK_EQUAL(sdlf_parameter_stream(0x10000), 0x40010000);
    CHECK(sdlf_parameter_stream(0x10000) > SDLF_STREAM_DROPOUT + 10000000u);
    CHECK_EQUAL(sdlf_parameter_stream(INT_MAX), 0xbfffffff);
}

int main(void)
{
    RUN(series_are_what_they_stand_for);
    RUN(normal_numbers_are_these);
    RUN(known_answers);
    RUN(streams_stay_apart);
    RUN(uniform_numbers_lie_on_their_grid);
    RUN(uniform_numbers_have_their_moments);
    RUN(dropout_threshold_decides_as_the_number_does);
    RUN(normal_numbers_have_their_moments);
    return test_summary();
}
