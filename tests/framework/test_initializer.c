/* SPDX-License-Identifier: MIT */
/* Initializers: exact positions in the random stream, bounds, moments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

#include "framework/initializer.h"
#include "testing.h"

enum { COUNT = 40000 };

/* The caller frees it. */
static float *draw(int initializer, float scale, int64_t count, uint64_t seed)
{
    sdlf_parameter_spec spec = {.name = "weight",
                                .shape = sdlf_shape(count),
                                .initializer = initializer,
                                .scale = scale,
                                .fan_in = 50,
                                .fan_out = 100};
    float *value = malloc((size_t)count * sizeof *value);
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, spec.shape, value);
    CHECK_OK(sdlf_initialize(&tensor, &spec, seed, SDLF_STREAM_PARAMETER + 3));
    return value;
}

static double deviation(const float *value, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t index = 0; index < count; index++) {
        sum += (double)value[index];
        squares += (double)value[index] * (double)value[index];
    }
    CHECK_CLOSE(sum / (double)count, 0, 4 * sqrt(squares) / (double)count); /* 4 standard errors of the mean */
    return sqrt(squares / (double)count);
}

static void constants_fill(void)
{
    float *zero = draw(SDLF_INIT_ZERO, 0, 5, 1), *one = draw(SDLF_INIT_ONE, 0, 5, 1);
    for (int index = 0; index < 5; index++) CHECK(zero[index] == 0 && one[index] == 1);
    free(zero);
    free(one);
}

static void check_uniform(int initializer, double bound)
{
    float *value = draw(initializer, 0.25f, COUNT, 7);
    float largest = 0;
    for (int index = 0; index < COUNT; index++) largest = fmaxf(largest, fabsf(value[index]));
    CHECK((double)largest <= bound * (1 + 1e-6) && (double)largest > 0.99 * bound);
    CHECK_CLOSE(deviation(value, COUNT), bound / sqrt(3), 0.02 * bound);
    free(value);
}

/* Identity filters pass their channels on; the remaining ones are drawn, with the same values as without. */
static void filters_pass_channels_on(void)
{
    enum { FILTERS = 5, CHANNELS = 3, AREA = 9, EACH = CHANNELS * AREA };
    float value[FILTERS * EACH], drawn[FILTERS * EACH];
    sdlf_parameter_spec spec = {.name = "weight",
                                .shape = sdlf_shape(FILTERS, CHANNELS, 3, 3),
                                .initializer = SDLF_INIT_IDENTITY,
                                .fan_in = EACH,
                                .fan_out = FILTERS * AREA};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, spec.shape, value);
    CHECK_OK(sdlf_initialize(&tensor, &spec, 1, SDLF_STREAM_PARAMETER));
    CHECK(!sdlf_initializer_is_drawn(&spec));
    spec.initializer = SDLF_INIT_LECUN_UNIFORM;
    tensor.data = drawn;
    CHECK_OK(sdlf_initialize(&tensor, &spec, 1, SDLF_STREAM_PARAMETER));
    CHECK(sdlf_initializer_is_drawn(&spec));
    for (int i = 0; i < CHANNELS * EACH; i++) CHECK(value[i] == (i % EACH == i / EACH * AREA + 4 ? 1 : 0));
    CHECK(memcmp(value + CHANNELS * EACH, drawn + CHANNELS * EACH, (FILTERS - CHANNELS) * EACH * sizeof *value) == 0);
}

static void check_normal(int initializer, double expected)
{
    float *value = draw(initializer, 0.25f, COUNT, 7);
    CHECK_CLOSE(deviation(value, COUNT), expected, 0.02 * expected);
    int outside = 0; /* beyond two deviations: 4.55 % */
    for (int index = 0; index < COUNT; index++) outside += fabs((double)value[index]) > 2 * expected;
    CHECK_CLOSE(outside / (double)COUNT, 0.0455, 0.005);
    free(value);
}

static void kinds_have_their_spread(void)
{
    check_uniform(SDLF_INIT_HE_UNIFORM, sqrt(6.0 / 50));
    check_uniform(SDLF_INIT_XAVIER_UNIFORM, sqrt(6.0 / 150));
    check_uniform(SDLF_INIT_LECUN_UNIFORM, sqrt(1.0 / 50));
    check_uniform(SDLF_INIT_UNIFORM, 0.25);
    check_normal(SDLF_INIT_HE_NORMAL, sqrt(2.0 / 50));
    check_normal(SDLF_INIT_XAVIER_NORMAL, sqrt(2.0 / 150));
    check_normal(SDLF_INIT_NORMAL, 0.25);
}

static void elements_follow_the_stream(void)
{
    float *uniform = draw(SDLF_INIT_UNIFORM, 0.5f, 7, 42), *normal = draw(SDLF_INIT_NORMAL, 2, 7, 42);
    for (int index = 0; index < 7; index++) {
        sdlf_philox group = sdlf_philox4x32(42, (uint64_t)index / 4, SDLF_STREAM_PARAMETER + 3, 0);
        CHECK(uniform[index] == sdlf_uniform_from_word(group.word[index % 4]) - 0.5f);
        int pair = index % 4 / 2 * 2;
        double radius = sqrt(-2 * log((group.word[pair] + 1.0) / 4294967296.0));
        double angle = 2 * acos(-1) * (group.word[pair + 1] / 4294967296.0);
        CHECK_CLOSE(normal[index], 2 * radius * (index % 2 == 0 ? cos(angle) : sin(angle)), 1e-6);
    }
    free(uniform);
    free(normal);
}

/* Every calculator draws the same bits. */
static void calculators_draw_the_same(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        for (int normal = 0; normal < 2; normal++) {
            float *expected = draw(normal ? SDLF_INIT_NORMAL : SDLF_INIT_UNIFORM, 0.25f, COUNT, 42);
            float *found = malloc(COUNT * sizeof *found);
            sdlf_binding made = test_tensor(calculator, SDLF_FLOAT32, sdlf_shape(COUNT), NULL);
            sdlf_operation operation = {
                .kind = normal ? SDLF_RANDOM_NORMAL : SDLF_RANDOM_UNIFORM,
                .out = {made.tensor},
                .random = {.seed = 42, .stream = SDLF_STREAM_PARAMETER + 3, .a = normal ? 0 : -0.25f, .b = 0.25f},
            };
            CHECK_OK(sdlf_calculator_run(calculator, &operation));
            test_download(&made, found);
            CHECK(memcmp(found, expected, COUNT * sizeof *found) == 0);
            test_release(&made);
            free(found);
            free(expected);
        }
        sdlf_calculator_close(calculator);
    }
}

static void bad_specs_are_refused(void)
{
    float value[2];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2), value);
    sdlf_parameter_spec spec = {.name = "weight", .shape = tensor.shape};
    CHECK_FAILS(sdlf_initialize(&tensor, &spec, 1, 1), SDLF_ERROR_ARGUMENT, "initializer of weight: expected 1 to 11");
    spec.initializer = SDLF_INIT_COUNT;
    CHECK_FAILS(sdlf_initialize(&tensor, &spec, 1, 1), SDLF_ERROR_ARGUMENT, "found 12");
    spec.initializer = SDLF_INIT_HE_NORMAL;
    CHECK_FAILS(sdlf_initialize(&tensor, &spec, 1, 1), SDLF_ERROR_ARGUMENT,
                "he_normal of weight: expected positive fans");
}

int main(void)
{
    RUN(filters_pass_channels_on);
    RUN(constants_fill);
    RUN(kinds_have_their_spread);
    RUN(elements_follow_the_stream);
    RUN(calculators_draw_the_same);
    RUN(bad_specs_are_refused);
    return test_summary();
}
