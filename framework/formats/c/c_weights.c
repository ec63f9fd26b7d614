/* SPDX-License-Identifier: MIT */
/* Weights as lists of numbers, with batch normalisations folded in:
 *
 *   y = weight (x - mean) / sqrt(variance + epsilon) + bias = scale x + shift
 *
 * for a separate layer; for one after a convolution or GEMM, scale is folded into the weights and shift into the
 * bias. */
#include "framework/formats/c/c_export.h"

#include <math.h>
#include <string.h>

/* The effect of a batch normalisation on a channel. */
typedef struct affine {
    double scale, shift;
} affine;

static double element(const c_export *e, int layer, const char *name, int64_t i)
{
    return (double)((const float *)c_parameter(e, layer, name)->value.data)[i];
}

static affine affine_of(const c_export *e, int norm, int64_t channel)
{
    if (norm < 0) return (affine){1, 0};
    const sdlf_batch_norm2d_options *options = c_at(e, norm)->layer.options;
    double deviation = sqrt(element(e, norm, "running_var", channel) + (double)options->epsilon);
    double scale = element(e, norm, "weight", channel) / deviation;
    return (affine){scale, element(e, norm, "bias", channel) - scale * element(e, norm, "running_mean", channel)};
}

static void begin(c_export *e, int layer, const char *name, sdlf_dtype dtype, int64_t count)
{
    c_print(e, "static const %s %s[%lld] = {", c_type(dtype), c_weights(e, layer, name).text, (long long)count);
}

static void print_text(c_export *e, int64_t i, c_name text)
{
    c_print(e, "%s%s,", i % 8 == 0 ? "\n    " : " ", text.text);
}

static void number(c_export *e, int64_t i, double value)
{
    print_text(e, i, c_number((float)value));
}

static void end(c_export *e)
{
    c_print(e, "\n};\n\n");
}

/* The type in which a parameter is written; SDLF_NONE: it has no reader. */
static sdlf_dtype written_as(const c_export *e, const sdlf_parameter *parameter)
{
    const c_value *value = &e->value[c_parameter_value(e, (int)(parameter - e->model->parameters))];
    return value->read ? value->dtype : SDLF_NONE;
}

/* Prints a parameter; for a convolution or GEMM, filters first, with the following normalisation folded in. */
static void print_parameter(c_export *e, int layer, const sdlf_parameter *parameter)
{
    sdlf_dtype dtype = written_as(e, parameter);
    int64_t count = sdlf_tensor_count(&parameter->value), filters = count;
    const float *data = parameter->value.data;
    int norm = e->state[layer].norm;
    bool bias = norm >= 0 && strcmp(parameter->spec.name, "bias") == 0;
    if (dtype == SDLF_NONE) return;
    if (norm >= 0) filters = parameter->spec.shape.dim[0];
    c_print(e, "/* %s: %s%s */\n", c_identifier(parameter->name).text, sdlf_shape_print(parameter->spec.shape).text,
            norm >= 0 ? ", with the normalisation behind it" : "");
    begin(e, layer, parameter->spec.name, dtype, count);
    for (int64_t i = 0; i < count && c_ok(e); i++) {
        affine a = affine_of(e, norm, i / (count / filters));
        int64_t integer = 0;
        if (dtype == SDLF_FLOAT32) {
            number(e, i, a.scale * (double)data[i] + (bias ? a.shift : 0));
        } else {
            unsigned char element[8];
            sdlf_convert(dtype, element, SDLF_FLOAT32, &data[i], 1);
            sdlf_convert(SDLF_INT64, &integer, dtype, element, 1);
            print_text(e, i, c_integer(dtype, integer));
        }
    }
    end(e);
}

/* True if a layer without a bias gets one from the following normalisation. */
static bool makes_bias(const c_export *e, int layer)
{
    return e->state[layer].norm >= 0 && c_parameter(e, layer, "bias") == NULL;
}

static void print_shift(c_export *e, int layer, const char *name, int norm)
{
    int64_t channels = sdlf_tensor_count(&c_parameter(e, norm, "weight")->value);
    begin(e, layer, name, SDLF_FLOAT32, channels);
    for (int64_t i = 0; i < channels; i++) number(e, i, affine_of(e, norm, i).shift);
    end(e);
}

static void print_norm(c_export *e, int layer)
{
    int64_t channels = sdlf_tensor_count(&c_parameter(e, layer, "weight")->value);
    begin(e, layer, "scale", SDLF_FLOAT32, channels);
    for (int64_t i = 0; i < channels; i++) number(e, i, affine_of(e, layer, i).scale);
    end(e);
    print_shift(e, layer, "shift", layer);
}

static bool prints(const c_export *e, int layer)
{
    return e->state[layer].live && !e->state[layer].folded && c_at(e, layer)->parameter_count > 0;
}

int64_t c_count_weights(const c_export *e)
{
    int64_t count = 0;
    for (int i = 0; i < e->model->layer_count; i++) {
        if (!prints(e, i)) continue;
        bool norm = c_is(e, i, "batch_norm2d");
        if (norm) count += 2 * sdlf_tensor_count(&c_parameter(e, i, "weight")->value);
        if (makes_bias(e, i)) count += sdlf_tensor_count(&c_parameter(e, e->state[i].norm, "weight")->value);
        for (int p = 0; !norm && p < c_at(e, i)->parameter_count; p++) {
            const sdlf_parameter *parameter = &e->model->parameters[c_at(e, i)->first_parameter + p];
            if (written_as(e, parameter) != SDLF_NONE) count += sdlf_tensor_count(&parameter->value);
        }
    }
    return count;
}

void c_print_weights(c_export *e)
{
    for (int i = 0; i < e->model->layer_count && c_ok(e); i++) {
        if (!prints(e, i)) continue;
        if (c_is(e, i, "batch_norm2d")) {
            print_norm(e, i);
            continue;
        }
        for (int p = 0; p < c_at(e, i)->parameter_count; p++)
            print_parameter(e, i, &e->model->parameters[c_at(e, i)->first_parameter + p]);
        if (makes_bias(e, i)) print_shift(e, i, "bias", e->state[i].norm);
    }
}
