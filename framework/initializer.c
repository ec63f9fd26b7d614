/* Starting values of parameters, drawn on the host. See initializer.h. */
#include "framework/initializer.h"

#include <assert.h>
#include <math.h>

#include <sdlf/random.h>

const char *const sdlf_initializer_names[] = {
    "default",       "zero",          "one",     "he_uniform", "he_normal", "xavier_uniform",
    "xavier_normal", "lecun_uniform", "uniform", "normal",     NULL};

_Static_assert(sizeof sdlf_initializer_names / sizeof sdlf_initializer_names[0] == SDLF_INIT_COUNT + 1,
               "one name for each kind");

static void fill_constant(float *value, int64_t count, float constant)
{
    for (int64_t element = 0; element < count; element++) value[element] = constant;
}

/* As random_uniform: low + (high - low) u in float32, each operation rounded. Element e is word e % 4 of group e / 4. */
static void fill_uniform(float *value, int64_t count, float bound, uint64_t seed, uint32_t stream)
{
    float low = -bound, width = bound - low;
    for (int64_t first = 0; first < count; first += 4) {
        sdlf_philox group = sdlf_philox4x32(seed, (uint64_t)first / 4, stream, 0);
        for (int word = 0; word < 4 && first + word < count; word++) {
            float product = width * sdlf_uniform_from_word(group.word[word]);
            value[first + word] = low + product;
        }
    }
}

/* As random_normal with mean 0: Box-Muller on pairs of words, in float64. */
static void fill_normal(float *value, int64_t count, float deviation, uint64_t seed, uint32_t stream)
{
    const double two_pi = 6.283185307179586476925286766559;
    for (int64_t first = 0; first < count; first += 2) {
        sdlf_philox group = sdlf_philox4x32(seed, (uint64_t)first / 4, stream, 0);
        const uint32_t *pair = &group.word[first % 4];
        double u1 = ((double)pair[0] + 1) * 0x1p-32, u2 = (double)pair[1] * 0x1p-32;
        double radius = (double)deviation * sqrt(-2 * log(u1)), angle = two_pi * u2;
        value[first] = (float)(radius * cos(angle));
        if (first + 1 < count) value[first + 1] = (float)(radius * sin(angle));
    }
}

sdlf_status sdlf_initialize(sdlf_tensor *tensor, const sdlf_parameter_spec *spec, uint64_t seed, uint32_t stream)
{
    assert(tensor->dtype == SDLF_FLOAT32 && sdlf_shape_equal(tensor->shape, spec->shape));
    float *value = tensor->data;
    int64_t count = sdlf_tensor_count(tensor);
    double in = (double)spec->fan_in, both = in + (double)spec->fan_out;
    bool scaled_by_fans = spec->initializer >= SDLF_INIT_HE_UNIFORM && spec->initializer <= SDLF_INIT_LECUN_UNIFORM;
    if (scaled_by_fans && (spec->fan_in < 1 || spec->fan_out < 1))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "initializer %s of %s: expected positive fans, found %lld and %lld",
                         sdlf_initializer_names[spec->initializer], spec->name, (long long)spec->fan_in,
                         (long long)spec->fan_out);
    switch (spec->initializer) {
    case SDLF_INIT_ZERO: fill_constant(value, count, 0); return SDLF_OK;
    case SDLF_INIT_ONE: fill_constant(value, count, 1); return SDLF_OK;
    case SDLF_INIT_HE_UNIFORM: fill_uniform(value, count, (float)sqrt(6 / in), seed, stream); return SDLF_OK;
    case SDLF_INIT_HE_NORMAL: fill_normal(value, count, (float)sqrt(2 / in), seed, stream); return SDLF_OK;
    case SDLF_INIT_XAVIER_UNIFORM: fill_uniform(value, count, (float)sqrt(6 / both), seed, stream); return SDLF_OK;
    case SDLF_INIT_XAVIER_NORMAL: fill_normal(value, count, (float)sqrt(2 / both), seed, stream); return SDLF_OK;
    case SDLF_INIT_LECUN_UNIFORM: fill_uniform(value, count, (float)sqrt(1 / in), seed, stream); return SDLF_OK;
    case SDLF_INIT_UNIFORM: fill_uniform(value, count, spec->scale, seed, stream); return SDLF_OK;
    case SDLF_INIT_NORMAL: fill_normal(value, count, spec->scale, seed, stream); return SDLF_OK;
    default:
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "initializer of %s: expected 1 to %d, found %d", spec->name,
                         SDLF_INIT_COUNT - 1, spec->initializer);
    }
}
