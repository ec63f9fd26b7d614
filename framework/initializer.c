/* SPDX-License-Identifier: MIT */
/* Initial values of parameters. See initializer.h. */
#include "framework/initializer.h"

#include <assert.h>
#include <math.h>

#include "framework/operations/draws.h"

const char *const sdlf_initializer_names[] = {
    "default", "zero",   "one",      "he_uniform", "he_normal", "xavier_uniform", "xavier_normal", "lecun_uniform",
    "uniform", "normal", "identity", "whitening",  NULL};

_Static_assert(sizeof sdlf_initializer_names / sizeof sdlf_initializer_names[0] == SDLF_INIT_COUNT + 1,
               "one name for each kind");

static bool has_fans(const sdlf_parameter_spec *spec)
{
    bool scaled = (spec->initializer >= SDLF_INIT_HE_UNIFORM && spec->initializer <= SDLF_INIT_LECUN_UNIFORM) ||
                  spec->initializer == SDLF_INIT_IDENTITY || spec->initializer == SDLF_INIT_WHITENING;
    return !scaled || (spec->fan_in >= 1 && spec->fan_out >= 1);
}

static void draw_uniform(sdlf_operation *operation, double bound)
{
    operation->kind = SDLF_RANDOM_UNIFORM;
    operation->random.a = -(float)bound;
    operation->random.b = (float)bound;
}

static void draw_normal(sdlf_operation *operation, double deviation)
{
    operation->kind = SDLF_RANDOM_NORMAL;
    operation->random.b = (float)deviation;
}

sdlf_status sdlf_initializer_operation(sdlf_operation *operation, const sdlf_parameter_spec *spec, uint64_t seed,
                                       uint32_t stream)
{
    double in = (double)spec->fan_in, both = in + (double)spec->fan_out;
    if (!has_fans(spec))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "initializer %s of %s: expected positive fans, found %lld and %lld",
                         sdlf_initializer_names[spec->initializer], spec->name, (long long)spec->fan_in,
                         (long long)spec->fan_out);
    *operation = (sdlf_operation){.kind = SDLF_FILL};
    if (spec->initializer == SDLF_INIT_ZERO) return SDLF_OK;
    if (spec->initializer == SDLF_INIT_ONE) {
        operation->fill.value = 1;
        return SDLF_OK;
    }
    operation->random.seed = seed;
    operation->random.stream = stream;
    switch (spec->initializer) {
    case SDLF_INIT_HE_UNIFORM: draw_uniform(operation, sqrt(6 / in)); return SDLF_OK;
    case SDLF_INIT_HE_NORMAL: draw_normal(operation, sqrt(2 / in)); return SDLF_OK;
    case SDLF_INIT_XAVIER_UNIFORM: draw_uniform(operation, sqrt(6 / both)); return SDLF_OK;
    case SDLF_INIT_XAVIER_NORMAL: draw_normal(operation, sqrt(2 / both)); return SDLF_OK;
    case SDLF_INIT_IDENTITY:
    case SDLF_INIT_WHITENING:
    case SDLF_INIT_LECUN_UNIFORM: draw_uniform(operation, sqrt(1 / in)); return SDLF_OK;
    case SDLF_INIT_UNIFORM: draw_uniform(operation, (double)spec->scale); return SDLF_OK;
    case SDLF_INIT_NORMAL: draw_normal(operation, (double)spec->scale); return SDLF_OK;
    default:
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "initializer of %s: expected 1 to %d, found %d", spec->name,
                         SDLF_INIT_COUNT - 1, spec->initializer);
    }
}

/* The operations, on the host: each is specified with its kind (operations/kinds.h). */
static void fill(float *value, int64_t count, float constant)
{
    for (int64_t element = 0; element < count; element++) value[element] = constant;
}

static void fill_uniform(float *value, int64_t count, const sdlf_operation *operation)
{
    for (int64_t first = 0; first < count; first += 4) {
        sdlf_philox group = sdlf_philox4x32(operation->random.seed, (uint64_t)first / 4, operation->random.stream, 0);
        for (int word = 0; word < 4 && first + word < count; word++)
            value[first + word] = sdlf_random_uniform_value(group.word[word], operation->random.a, operation->random.b);
    }
}

static void fill_normal(float *value, int64_t count, const sdlf_operation *operation)
{
    double mean = (double)operation->random.a, deviation = (double)operation->random.b, pair[2];
    for (int64_t first = 0; first < count; first += 2) {
        sdlf_philox group = sdlf_philox4x32(operation->random.seed, (uint64_t)first / 4, operation->random.stream, 0);
        const uint32_t *words = &group.word[first % 4];
        sdlf_random_normal_pair(words[0], words[1], mean, deviation, pair);
        value[first] = (float)pair[0];
        if (first + 1 < count) value[first + 1] = (float)pair[1];
    }
}

bool sdlf_initializer_is_drawn(const sdlf_parameter_spec *spec)
{
    return spec->initializer != SDLF_INIT_IDENTITY;
}

/* Sets filter k of a convolution to 1 at the centre of channel k of its group's channels, and to 0 elsewhere; any
 * further filters are unchanged. */
static void pass_channels(float *value, sdlf_shape shape)
{
    if (shape.rank != 4) return;
    int64_t channels = shape.dim[1], area = shape.dim[2] * shape.dim[3];
    int64_t middle = shape.dim[2] / 2 * shape.dim[3] + shape.dim[3] / 2;
    for (int64_t k = 0; k < shape.dim[0] && k < channels; k++) {
        fill(value + k * channels * area, channels * area, 0);
        value[(k * channels + k) * area + middle] = 1;
    }
}

sdlf_status sdlf_initialize(sdlf_tensor *tensor, const sdlf_parameter_spec *spec, uint64_t seed, uint32_t stream)
{
    assert(tensor->dtype == SDLF_FLOAT32 && sdlf_shape_equal(tensor->shape, spec->shape));
    sdlf_operation operation;
    sdlf_status status = sdlf_initializer_operation(&operation, spec, seed, stream);
    if (status != SDLF_OK) return status;
    int64_t count = sdlf_tensor_count(tensor);
    if (operation.kind == SDLF_FILL)
        fill(tensor->data, count, (float)operation.fill.value);
    else if (operation.kind == SDLF_RANDOM_UNIFORM)
        fill_uniform(tensor->data, count, &operation);
    else
        fill_normal(tensor->data, count, &operation);
    if (spec->initializer == SDLF_INIT_IDENTITY) pass_channels(tensor->data, spec->shape);
    return SDLF_OK;
}
