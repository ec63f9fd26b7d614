/* Weights as lists of numbers, with batch normalisations folded in:
 *
 *   y = weight (x - mean) / sqrt(variance + epsilon) + bias = scale x + shift
 *
 * for a layer of its own; of one behind a convolution or product, scale goes into the weights and shift into the bias. */
#include "framework/formats/c/c_export.h"

#include <math.h>

/* What a batch normalisation does to a channel. */
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

static void begin(c_export *e, int layer, const char *name, int64_t count)
{
    c_print(e, "static const float %s[%lld] = {", c_weights(e, layer, name).text, (long long)count);
}

static void number(c_export *e, int64_t i, double value)
{
    c_print(e, "%s%s,", i % 8 == 0 ? "\n    " : " ", c_number((float)value).text);
}

static void end(c_export *e)
{
    c_print(e, "\n};\n\n");
}

static bool has_bias(const c_export *e, int layer)
{
    return c_parameter(e, layer, "bias") != NULL || e->value[layer].norm >= 0;
}

/* A convolution or product: filters first. */
static void print_product(c_export *e, int layer)
{
    const sdlf_parameter *weight = c_parameter(e, layer, "weight"), *bias = c_parameter(e, layer, "bias");
    int64_t count = sdlf_tensor_count(&weight->value), filters = weight->spec.shape.dim[0];
    const float *data = weight->value.data;
    int norm = e->value[layer].norm;
    c_print(e, "/* %s: %s%s */\n", c_identifier(c_at(e, layer)->layer.name).text,
            sdlf_shape_print(weight->spec.shape).text, norm >= 0 ? ", with the normalisation behind it" : "");
    begin(e, layer, "weight", count);
    for (int64_t i = 0; i < count && c_ok(e); i++)
        number(e, i, affine_of(e, norm, i / (count / filters)).scale * (double)data[i]);
    end(e);
    if (!has_bias(e, layer)) return;
    begin(e, layer, "bias", filters);
    for (int64_t i = 0; i < filters && c_ok(e); i++) {
        affine a = affine_of(e, norm, i);
        number(e, i, a.scale * (bias != NULL ? element(e, layer, "bias", i) : 0) + a.shift);
    }
    end(e);
}

static void print_norm(c_export *e, int layer)
{
    int64_t channels = sdlf_tensor_count(&c_parameter(e, layer, "weight")->value);
    begin(e, layer, "scale", channels);
    for (int64_t i = 0; i < channels; i++) number(e, i, affine_of(e, layer, i).scale);
    end(e);
    begin(e, layer, "shift", channels);
    for (int64_t i = 0; i < channels; i++) number(e, i, affine_of(e, layer, i).shift);
    end(e);
}

/* Is it a batch normalisation? Else, having parameters, it is a convolution or product. */
static bool is_norm(const c_export *e, int layer)
{
    return c_parameter(e, layer, "running_var") != NULL;
}

static bool prints(const c_export *e, int layer)
{
    return e->value[layer].live && !e->value[layer].folded && c_at(e, layer)->parameter_count > 0;
}

int64_t c_count_weights(const c_export *e)
{
    int64_t count = 0;
    for (int i = 0; i < e->model->layer_count; i++) {
        if (!prints(e, i)) continue;
        const sdlf_parameter *weight = c_parameter(e, i, "weight");
        count += sdlf_tensor_count(&weight->value) * (is_norm(e, i) ? 2 : 1);
        if (!is_norm(e, i) && has_bias(e, i)) count += weight->spec.shape.dim[0];
    }
    return count;
}

void c_print_weights(c_export *e)
{
    for (int i = 0; i < e->model->layer_count && c_ok(e); i++) {
        if (!prints(e, i)) continue;
        if (is_norm(e, i))
            print_norm(e, i);
        else
            print_product(e, i);
    }
}
