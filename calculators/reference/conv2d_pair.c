/* SPDX-License-Identifier: MIT */
/* conv2d_pointwise_depthwise: a 1x1 convolution and the depthwise one behind it. x (N,C,H,W), w (K,C,1,1), depthwise (K,1,R,S), y
 * (N,K,P,Q).
 *
 *     h[n,k,i,j] = between(bias[k] + sum over c of x[n,c,i,j] w[k,c]), 0 outside
 *     y[n,k,p,q] = act(depthwise_bias[k] + sum over r,s of h[n,k,h(p,r),w(q,s)] depthwise[k,r,s])
 *
 * A channel of y needs only one of h: the workspace holds that plane, (H,W), in double. */
#include "calculators/reference/reference.h"

int64_t conv2d_pointwise_depthwise_workspace_reference(const sdlf_calculator *calculator,
                                                       const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_shape_span(operation->in[0].shape, 2, 4) * (int64_t)sizeof(double);
}

/* h[n,k,:,:] */
static void make_plane(const sdlf_operation *operation, int64_t n, int64_t k, double *plane)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1], *bias = &operation->in[3];
    const int64_t *dim = x->shape.dim;
    for (int64_t i = 0; i < dim[2]; i++) {
        for (int64_t j = 0; j < dim[3]; j++) {
            double sum = 0;
            for (int64_t c = 0; c < dim[1]; c++) sum += get(x, at4(x, n, c, i, j)) * get(w, at4(w, k, c, 0, 0));
            if (sdlf_tensor_present(bias)) sum += get(bias, k);
            plane[i * dim[3] + j] = activate_reference(&operation->conv2d_pair.between, sum);
        }
    }
}

/* y[n,k,p,q] */
static double depthwise(const sdlf_operation *operation, const double *plane, int64_t k, int64_t p, int64_t q)
{
    const sdlf_tensor *x = &operation->in[0], *own = &operation->in[2], *bias = &operation->in[4];
    const sdlf_window2d *window = &operation->conv2d_pair.window;
    double sum = 0;
    for (int64_t r = 0; r < window->size[0]; r++) {
        for (int64_t s = 0; s < window->size[1]; s++) {
            int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
            if (inside(x, row, column)) sum += plane[row * x->shape.dim[3] + column] * get(own, at4(own, k, 0, r, s));
        }
    }
    if (sdlf_tensor_present(bias)) sum += get(bias, k);
    return activate_reference(&operation->conv2d_pair.activation, sum);
}

sdlf_status conv2d_pointwise_depthwise_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    double *plane = operation->workspace.data;
    const int64_t *dim = y->shape.dim;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t k = 0; k < dim[1]; k++) {
            make_plane(operation, n, k, plane);
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) put(y, at4(y, n, k, p, q), depthwise(operation, plane, k, p, q));
            }
        }
    }
    return SDLF_OK;
}
