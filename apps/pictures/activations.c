/* SPDX-License-Identifier: MIT */
/* See activations.h. */
#include "apps/pictures/activations.h"

#include <string.h>

#include "apps/system/memory.h"

bool activation_of(activation *a, const sdlf_model *model, sdlf_plan *plan, int index)
{
    const sdlf_layer *layer = sdlf_model_layer(model, index);
    sdlf_shape shape = sdlf_model_node_shape(model, (sdlf_node){.layer = index});
    sdlf_binding binding;
    bool shows = strstr(layer->type->name, "conv2d") || strstr(layer->type->name, "pool2d");
    if (!shows || shape.rank != 4 || shape.dim[2] < 2 ||
        sdlf_plan_activation(plan, layer->name, false, &binding) != SDLF_OK)
        return false;
    if (binding.tensor.dtype != SDLF_FLOAT32 || sdlf_tensor_count(&binding.tensor) != sdlf_shape_count(shape) ||
        !sdlf_tensor_is_contiguous(&binding.tensor))
        return false;
    if (binding.calculator && !sdlf_calculator_is_on_host(binding.calculator)) return false;
    *a = (activation){.layer = layer->name, .shape = sdlf_shape_without(shape, 0), .values = binding.tensor.data};
    return true;
}

unsigned char *activation_grey(const float *values, int64_t count, int64_t size)
{
    unsigned char *grey = memory_allocate((size_t)(count * size));
    for (int64_t k = 0; k < count; k++) {
        const float *plane = values + k * size;
        float least = plane[0], greatest = plane[0];
        for (int64_t i = 1; i < size; i++) {
            least = plane[i] < least ? plane[i] : least;
            greatest = plane[i] > greatest ? plane[i] : greatest;
        }
        for (int64_t i = 0; i < size && greatest > least; i++)
            grey[k * size + i] = (unsigned char)(255 * (plane[i] - least) / (greatest - least));
    }
    return grey;
}
