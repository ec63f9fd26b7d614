/* SPDX-License-Identifier: MIT */
/* Windows, and checks that the layers' `infer` functions share. See layers_internal.h. */
#include "layers/layers_internal.h"

#include <stdio.h>

const sdlf_field sdlf_plain_fields[] = {{.name = NULL}};

sdlf_status sdlf_layer_check_float(const sdlf_signature *signature, int index)
{
    if (signature->input_dtype[index] == signature->dtype) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "expected a floating-point input, found %s %s",
                     sdlf_dtype_name(signature->input_dtype[index]),
                     sdlf_shape_print(signature->input_shape[index]).text);
}

sdlf_status sdlf_layer_check_rank(const sdlf_signature *signature, int index, int rank, const char *form)
{
    if (signature->input_shape[index].rank != rank)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input %s, found %s", form,
                         sdlf_shape_print(signature->input_shape[index]).text);
    return sdlf_layer_check_float(signature, index);
}

sdlf_tensor sdlf_layer_gradient(sdlf_layer_context *context, int parameter)
{
    const sdlf_tensor *like = &context->parameter[parameter];
    if (sdlf_tensor_present(&context->parameter_gradient[parameter])) return context->parameter_gradient[parameter];
    return sdlf_scratch(context, like->dtype, like->shape);
}

sdlf_window2d sdlf_layer_window(const int size[2], const int stride[2], const int dilation[2], const int padding[2],
                                const int extra[2])
{
    sdlf_window2d window = {.size = {0}};
    for (int axis = 0; axis < 2; axis++) {
        window.size[axis] = size[axis];
        window.stride[axis] = stride[axis] != 0 ? stride[axis] : size[axis];
        window.dilation[axis] = dilation[axis] != 0 ? dilation[axis] : 1;
        window.padding_before[axis] = padding[axis];
        window.padding_after[axis] = padding[axis] + extra[axis];
    }
    return window;
}

/* "2", or "1+2" if the two sides differ. */
static const char *padding_text(char *text, size_t size, const sdlf_window2d *window)
{
    const int *before = window->padding_before, *after = window->padding_after;
    if (before[0] == before[1] && after[0] == after[1] && before[0] == after[0])
        snprintf(text, size, "%d", before[0]);
    else
        snprintf(text, size, "top %d, left %d, bottom %d, right %d", before[0], before[1], after[0], after[1]);
    return text;
}

sdlf_status sdlf_layer_window_output(const sdlf_window2d *window, sdlf_shape input, const char *what, int64_t output[2])
{
    char padding[80], dilation[40] = "";
    for (int axis = 0; axis < 2; axis++)
        if (window->padding_after[axis] < 0)
            return sdlf_fail(SDLF_ERROR_SHAPE, "padding %d with padding_extra %d would be negative %s",
                             window->padding_before[axis], window->padding_after[axis] - window->padding_before[axis],
                             axis == 0 ? "below" : "on the right");
    for (int axis = 0; axis < 2; axis++) {
        output[axis] = sdlf_window2d_output(window, axis, input.dim[2 + axis]);
        if (output[axis] >= 1) continue;
        if (window->dilation[0] != 1 || window->dilation[1] != 1)
            snprintf(dilation, sizeof dilation, ", dilated %dx%d,", window->dilation[0], window->dilation[1]);
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s %dx%d%s is larger than its input %lldx%lld (plus padding %s)", what,
                         window->size[0], window->size[1], dilation, (long long)input.dim[2], (long long)input.dim[3],
                         padding_text(padding, sizeof padding, window));
    }
    return SDLF_OK;
}
