/* SPDX-License-Identifier: MIT */
/* Element types: names, sizes, and conversion with its rounding and range limits. */
#include "testing.h"

#include <sdlf/dtype.h>
#include <sdlf/random.h>

#include <math.h>
#include <string.h>

static double to_double(sdlf_dtype from, const void *value)
{
    double result;
    sdlf_convert(SDLF_FLOAT64, &result, from, value, 1);
    return result;
}

static uint16_t narrowed(sdlf_dtype to, double value)
{
    uint16_t bits;
    sdlf_convert(to, &bits, SDLF_FLOAT64, &value, 1);
    return bits;
}

static void names_and_sizes(void)
{
    static const struct {
        sdlf_dtype dtype;
        const char *name;
        size_t size;
        bool is_float;
    } expected[] = {
        {SDLF_FLOAT32, "float32", 4, true},   {SDLF_FLOAT64, "float64", 8, true}, {SDLF_FLOAT16, "float16", 2, true},
        {SDLF_BFLOAT16, "bfloat16", 2, true}, {SDLF_UINT8, "uint8", 1, false},    {SDLF_INT32, "int32", 4, false},
        {SDLF_INT64, "int64", 8, false},      {SDLF_INT8, "int8", 1, false},      {SDLF_BOOL, "bool", 1, false},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CHECK_TEXT(sdlf_dtype_name(expected[i].dtype), expected[i].name);
        CHECK_EQUAL(sdlf_dtype_from_name(expected[i].name), expected[i].dtype);
        CHECK_EQUAL((int64_t)sdlf_dtype_size(expected[i].dtype), (int64_t)expected[i].size);
        CHECK(sdlf_dtype_is_float(expected[i].dtype) == expected[i].is_float);
    }
    CHECK_TEXT(sdlf_dtype_name(SDLF_NONE), "none");
    CHECK_EQUAL((int64_t)sdlf_dtype_size(SDLF_NONE), 0);
    CHECK_EQUAL((int64_t)sdlf_dtype_size((sdlf_dtype)99), 0);
    CHECK_EQUAL((int64_t)sdlf_dtype_size((sdlf_dtype)-1), 0);
    CHECK_EQUAL(sdlf_dtype_from_name("float31"), SDLF_NONE);
    CHECK_EQUAL(sdlf_dtype_from_name("none"), SDLF_NONE);
    CHECK_EQUAL(sdlf_dtype_from_name(NULL), SDLF_NONE);
}

static void float16_known_values(void)
{
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 1.0), 0x3C00);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, -2.0), 0xC000);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 65504.0), 0x7BFF);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 65519.99), 0x7BFF);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 65520.0), 0x7C00); /* half-way to 2^16: to even, which is infinity */
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 1e30), 0x7C00);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, -INFINITY), 0xFC00);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 0x1p-24), 0x0001);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 0x1p-25), 0x0000); /* half the smallest: to even */
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 0x1.8p-24), 0x0002);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 0x1.000001p-25), 0x0001);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 0x1.ffcp-15), 0x0400); /* the largest subnormal and a half */
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, -0.0), 0x8000);
    CHECK_EQUAL(narrowed(SDLF_FLOAT16, 1e-300), 0x0000);
    CHECK_EQUAL(narrowed(SDLF_BFLOAT16, 1.0), 0x3F80);
    CHECK_EQUAL(narrowed(SDLF_BFLOAT16, 0x1.01p0), 0x3F80); /* ties to even, down */
    CHECK_EQUAL(narrowed(SDLF_BFLOAT16, 0x1.03p0), 0x3F82); /* ties to even, up */
    CHECK_EQUAL(narrowed(SDLF_BFLOAT16, 1e39), 0x7F80);
    CHECK_EQUAL(narrowed(SDLF_BFLOAT16, 0x1p-133), 0x0001);
}

/* Every bit pattern survives conversion to float64 and back; NaN stays NaN. */
static void sixteen_bit_types_round_trip(void)
{
    static const sdlf_dtype types[] = {SDLF_FLOAT16, SDLF_BFLOAT16};
    for (int i = 0; i < 2; i++) {
        int wrong = 0;
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t pattern = (uint16_t)bits;
            double value = to_double(types[i], &pattern);
            uint16_t back = narrowed(types[i], value);
            bool same = isnan(value) ? isnan(to_double(types[i], &back)) : back == pattern;
            if (!same) wrong++;
        }
        CHECK_EQUAL(wrong, 0);
    }
}

/* No neighbour is nearer, and of two equally near ones the even one is chosen. */
static void sixteen_bit_types_round_to_nearest_even(void)
{
    static const sdlf_dtype types[] = {SDLF_FLOAT16, SDLF_BFLOAT16};
    for (int i = 0; i < 2; i++) {
        int wrong = 0;
        for (uint64_t draw = 0; draw < 20000; draw++) {
            sdlf_philox random = sdlf_philox4x32(7, draw, 0, 0);
            double value = ldexp(1 + sdlf_uniform_from_word(random.word[0]), (int)(random.word[1] % 30) - 15);
            if (random.word[2] & 1) value = ldexp(floor(ldexp(value, 9)), -9); /* often half-way */
            uint16_t found = narrowed(types[i], value);
            double distance = fabs(to_double(types[i], &found) - value);
            for (int step = -1; step <= 1; step += 2) {
                uint16_t neighbour = (uint16_t)(found + step);
                if (found == 0 && step < 0) continue;
                double other = fabs(to_double(types[i], &neighbour) - value);
                if (other < distance || (other == distance && (found & 1))) wrong++;
            }
        }
        CHECK_EQUAL(wrong, 0);
    }
}

static void integers_saturate(void)
{
    const double source[] = {-1.5, -0.9, 254.99, 255.5, 1e30, -1e30, (double)NAN, 3.99};
    uint8_t bytes[8];
    int32_t ints[8];
    int64_t longs[8];
    sdlf_convert(SDLF_UINT8, bytes, SDLF_FLOAT64, source, 8);
    sdlf_convert(SDLF_INT32, ints, SDLF_FLOAT64, source, 8);
    sdlf_convert(SDLF_INT64, longs, SDLF_FLOAT64, source, 8);
    const int expected_bytes[] = {0, 0, 254, 255, 255, 0, 0, 3};
    const int64_t expected_ints[] = {-1, 0, 254, 255, INT32_MAX, INT32_MIN, 0, 3};
    const int64_t expected_longs[] = {-1, 0, 254, 255, INT64_MAX, INT64_MIN, 0, 3};
    for (int i = 0; i < 8; i++) {
        CHECK_EQUAL(bytes[i], expected_bytes[i]);
        CHECK_EQUAL(ints[i], expected_ints[i]);
        CHECK_EQUAL(longs[i], expected_longs[i]);
    }
    int8_t small[8];
    uint8_t truth[8];
    const int expected_small[] = {-1, 0, 127, 127, 127, -128, 0, 3};
    sdlf_convert(SDLF_INT8, small, SDLF_FLOAT64, source, 8);
    sdlf_convert(SDLF_BOOL, truth, SDLF_FLOAT64, source, 8);
    for (int i = 0; i < 8; i++) {
        CHECK_EQUAL(small[i], expected_small[i]);
        CHECK_EQUAL(truth[i], 1); /* NaN is not zero either */
    }
    const int64_t large[] = {INT64_MAX, INT64_MIN, 300, -5};
    sdlf_convert(SDLF_INT8, small, SDLF_INT64, large, 4);
    CHECK_EQUAL(small[2], 127);
    CHECK_EQUAL(small[3], -5);
    sdlf_convert(SDLF_INT32, ints, SDLF_INT8, small, 4);
    CHECK_EQUAL(ints[3], -5);
    sdlf_convert(SDLF_BOOL, truth, SDLF_INT32, (const int32_t[]){0, -7}, 2);
    CHECK_EQUAL(truth[0], 0);
    CHECK_EQUAL(truth[1], 1);
    sdlf_convert(SDLF_INT32, ints, SDLF_INT64, large, 4);
    sdlf_convert(SDLF_UINT8, bytes, SDLF_INT64, large, 4);
    CHECK_EQUAL(ints[0], INT32_MAX);
    CHECK_EQUAL(ints[1], INT32_MIN);
    CHECK_EQUAL(bytes[2], 255);
    CHECK_EQUAL(bytes[3], 0);
}

/* An int64 has more digits than a float64: rounding twice would go wrong here. */
static void integers_are_rounded_once(void)
{
    int64_t just_above_half = (INT64_C(1) << 62) + (INT64_C(1) << 54) + 1;
    uint16_t bits;
    sdlf_convert(SDLF_BFLOAT16, &bits, SDLF_INT64, &just_above_half, 1);
    CHECK_CLOSE(to_double(SDLF_BFLOAT16, &bits), 0x1p62 + 0x1p55, 0);
    just_above_half = -just_above_half;
    sdlf_convert(SDLF_BFLOAT16, &bits, SDLF_INT64, &just_above_half, 1);
    CHECK_CLOSE(to_double(SDLF_BFLOAT16, &bits), -0x1p62 - 0x1p55, 0);

    int64_t above = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    float single;
    sdlf_convert(SDLF_FLOAT32, &single, SDLF_INT64, &above, 1);
    CHECK_CLOSE((double)single, 0x1p62 + 0x1p39, 0);
    int64_t exact = INT64_MAX, copied = 0;
    sdlf_convert(SDLF_INT64, &copied, SDLF_INT64, &exact, 1);
    CHECK(copied == exact);
}

/* More elements than a block of the conversion, and none. */
static void converts_any_count(void)
{
    enum { COUNT = 1000 };
    uint8_t source[COUNT];
    float values[COUNT + 1];
    for (int i = 0; i < COUNT; i++) source[i] = (uint8_t)(i * 7);
    values[COUNT] = -1;
    sdlf_convert(SDLF_FLOAT32, values, SDLF_UINT8, source, COUNT);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        if (values[i] != (float)source[i]) wrong++;
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_CLOSE((double)values[COUNT], -1, 0);
    sdlf_convert(SDLF_FLOAT32, values + COUNT, SDLF_UINT8, source, 0);
    CHECK_CLOSE((double)values[COUNT], -1, 0);
    sdlf_convert(SDLF_FLOAT32, values, SDLF_FLOAT32, values, COUNT); /* onto itself */
    CHECK_CLOSE((double)values[3], 21, 0);
}

/* Conversion between float32 and 16 bits bypasses float64, and must give the same bits. */
static void short_ways(void)
{
    static const sdlf_dtype halves[] = {SDLF_FLOAT16, SDLF_BFLOAT16};
    for (int h = 0; h < 2; h++) {
        int64_t other = 0;
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t half = (uint16_t)bits;
            float direct, through;
            double wide;
            sdlf_convert(SDLF_FLOAT32, &direct, halves[h], &half, 1);
            sdlf_convert(SDLF_FLOAT64, &wide, halves[h], &half, 1);
            sdlf_convert(SDLF_FLOAT32, &through, SDLF_FLOAT64, &wide, 1);
            other += memcmp(&direct, &through, sizeof direct) != 0;
        }
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 99991) {
            uint32_t pattern = (uint32_t)bits;
            float value;
            double wide;
            uint16_t direct, through;
            memcpy(&value, &pattern, sizeof value);
            sdlf_convert(SDLF_FLOAT64, &wide, SDLF_FLOAT32, &value, 1);
            sdlf_convert(halves[h], &direct, SDLF_FLOAT32, &value, 1);
            sdlf_convert(halves[h], &through, SDLF_FLOAT64, &wide, 1);
            other += direct != through;
        }
        CHECK_EQUAL(other, 0);
    }
}

int main(void)
{
    RUN(names_and_sizes);
    RUN(float16_known_values);
    RUN(sixteen_bit_types_round_trip);
    RUN(sixteen_bit_types_round_to_nearest_even);
    RUN(integers_saturate);
    RUN(integers_are_rounded_once);
    RUN(converts_any_count);
    RUN(short_ways);
    return test_summary();
}
