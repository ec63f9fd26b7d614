/* SPDX-License-Identifier: MIT */
/* Geometry and shape inference of sliding-window pooling. See pool2d.h. */
#include "layers/pool2d.h"

sdlf_window2d sdlf_pool2d_window(const sdlf_pool2d_options *options)
{
    return sdlf_layer_window(options->window, options->stride, options->dilation, options->padding,
                             options->padding_extra);
}

sdlf_status sdlf_pool2d_infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    sdlf_window2d window = sdlf_pool2d_window(layer->options);
    sdlf_shape x = signature->input_shape[0];
    int64_t output[2] = {0, 0};
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status == SDLF_OK) status = sdlf_layer_window_output(&window, x, "window", output);
    if (status != SDLF_OK) return status;
    for (int axis = 0; axis < 2; axis++) {
        int padding = window.padding_before[axis] > window.padding_after[axis] ? window.padding_before[axis]
                                                                               : window.padding_after[axis];
        if (padding >= window.size[axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "padding %d is not smaller than the window's side %d", padding,
                             window.size[axis]);
        /* a dilated window could otherwise straddle the image without touching it */
        if (padding > 0 && window.dilation[axis] > x.dim[2 + axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "dilation %d with padding is larger than its input's side %lld",
                             window.dilation[axis], (long long)x.dim[2 + axis]);
    }
    return sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(x.dim[0], x.dim[1], output[0], output[1]));
}

bool sdlf_pool2d_is_identity(const sdlf_layer *layer)
{
    sdlf_window2d window = sdlf_pool2d_window(layer->options);
    for (int i = 0; i < 2; i++) {
        if (window.size[i] != 1 || window.stride[i] != 1 || window.padding_before[i] != 0 ||
            window.padding_after[i] != 0)
            return false;
    }
    return true;
}
