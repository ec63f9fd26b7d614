/* SPDX-License-Identifier: MIT */
/* conv2d_inverted_residual: x (N,C,H,W), depthwise (M,1,R,S), project (K,M,1,1), expand (M,C,1,1), residual and y (N,K,P,Q).
 *
 *     h[n,m,i,j] = expanded(bias[m] + sum over c of x[n,c,i,j] expand[m,c]), 0 outside; without expand h = x
 *     z[n,m,p,q] = filtered(depthwise_bias[m] + sum over r,s of h[n,m,h(p,r),w(q,s)] depthwise[m,r,s])
 *     y[n,k,p,q] = act(project_bias[k] + residual[n,k,p,q] + sum over m of z[n,m,p,q] project[k,m])
 *
 * The workspace holds a plane of h, (H,W), and all of an image's z, (M,P,Q), in double. */
#include "calculators/reference/reference.h"

int64_t conv2d_inverted_residual_workspace_reference(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int64_t plane = sdlf_shape_span(operation->in[0].shape, 2, 4);
    int64_t filtered = operation->in[1].shape.dim[0] * sdlf_shape_span(operation->out[0].shape, 2, 4);
    return (plane + filtered) * (int64_t)sizeof(double);
}

/* h[n,m,:,:] */
static void expand(const sdlf_operation *operation, int64_t n, int64_t m, double *plane)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[3], *bias = &operation->in[4];
    const int64_t *dim = x->shape.dim;
    for (int64_t i = 0; i < dim[2]; i++) {
        for (int64_t j = 0; j < dim[3]; j++) {
            double sum = 0;
            if (!sdlf_tensor_present(w)) sum = get(x, at4(x, n, m, i, j));
            for (int64_t c = 0; sdlf_tensor_present(w) && c < dim[1]; c++)
                sum += get(x, at4(x, n, c, i, j)) * get(w, at4(w, m, c, 0, 0));
            if (sdlf_tensor_present(bias)) sum += get(bias, m);
            plane[i * dim[3] + j] = activate_reference(&operation->conv2d_inverted.expanded, sum);
        }
    }
}

/* z[n,m,p,q] */
static double filter(const sdlf_operation *operation, const double *plane, int64_t m, int64_t p, int64_t q)
{
    const sdlf_tensor *x = &operation->in[0], *own = &operation->in[1], *bias = &operation->in[5];
    const sdlf_window2d *window = &operation->conv2d_inverted.window;
    double sum = 0;
    for (int64_t r = 0; r < window->size[0]; r++) {
        for (int64_t s = 0; s < window->size[1]; s++) {
            int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
            if (inside(x, row, column)) sum += plane[row * x->shape.dim[3] + column] * get(own, at4(own, m, 0, r, s));
        }
    }
    if (sdlf_tensor_present(bias)) sum += get(bias, m);
    return activate_reference(&operation->conv2d_inverted.filtered, sum);
}

/* y[n,k,p,q]; z: z[n,:,p,q], planes of `area` numbers. */
static double project(const sdlf_operation *operation, const double *z, int64_t area, int64_t k, int64_t y)
{
    const sdlf_tensor *w = &operation->in[2], *bias = &operation->in[6], *residual = &operation->in[7];
    double sum = 0;
    for (int64_t m = 0; m < w->shape.dim[1]; m++) sum += z[m * area] * get(w, at4(w, k, m, 0, 0));
    if (sdlf_tensor_present(bias)) sum += get(bias, k);
    if (sdlf_tensor_present(residual)) sum += get(residual, y);
    return activate_reference(&operation->conv2d_inverted.activation, sum);
}

sdlf_status conv2d_inverted_residual_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    const int64_t *dim = y->shape.dim, middle = operation->in[1].shape.dim[0], area = dim[2] * dim[3];
    double *z = operation->workspace.data, *plane = z + middle * area;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t m = 0; m < middle; m++) {
            expand(operation, n, m, plane);
            for (int64_t e = 0; e < area; e++) z[m * area + e] = filter(operation, plane, m, e / dim[3], e % dim[3]);
        }
        for (int64_t k = 0; k < dim[1]; k++) {
            for (int64_t e = 0; e < area; e++) {
                int64_t to = at4(y, n, k, e / dim[3], e % dim[3]);
                put(y, to, project(operation, z + e, area, k, to));
            }
        }
    }
    return SDLF_OK;
}
