/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a fully connected layer's backward pass and its update. x (N,I), dy (N,U), w (U,I), b (U).
 *
 *     dx[n,i] = f'(x[n,i]) sum over u of dy[n,u] w[u,i]      (the w before the update; x is f's output)
 *     g[u,i]  = sum over n of dy[n,u] x[n,i]                 then w and v follow g as in sgd_update
 *     g[u]    = sum over n of dy[n,u]                        then b and bv follow g likewise */
#include "calculators/reference/reference.h"

static void backward_input(const sdlf_operation *operation, const sdlf_tensor *dx)
{
    const sdlf_tensor *x = &operation->in[0], *dy = &operation->in[1], *w = &operation->out[0];
    int64_t rows = dx->shape.dim[0], inputs = dx->shape.dim[1], units = dy->shape.dim[1];
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < inputs; i++) {
            double sum = 0;
            for (int64_t u = 0; u < units; u++) sum += get(dy, n * units + u) * get(w, u * inputs + i);
            int64_t e = n * inputs + i;
            put(dx, e, sum * activation_slope_reference(&operation->gemm_backward.activation, get(x, e)));
        }
    }
}

static void update_weight(const sdlf_operation *operation, int64_t u, int64_t i)
{
    const sdlf_tensor *x = &operation->in[0], *dy = &operation->in[1], *w = &operation->out[0];
    const sdlf_sgd_rule *rule = &operation->gemm_backward.sgd;
    int64_t rows = x->shape.dim[0], inputs = x->shape.dim[1], units = dy->shape.dim[1], e = u * inputs + i;
    double g = 0;
    for (int64_t n = 0; n < rows; n++) g += get(dy, n * units + u) * get(x, n * inputs + i);
    g += (double)rule->decay * get(w, e);
    sgd_follow_reference(rule, get(&operation->in[2], 0), w, &operation->out[1], e, g);
}

static void update_bias(const sdlf_operation *operation, int64_t u)
{
    const sdlf_tensor *dy = &operation->in[1], *b = &operation->out[3];
    const sdlf_sgd_rule *rule = &operation->gemm_backward.sgd;
    int64_t rows = dy->shape.dim[0], units = dy->shape.dim[1];
    double g = 0;
    for (int64_t n = 0; n < rows; n++) g += get(dy, n * units + u);
    g += (double)rule->bias_decay * get(b, u);
    sgd_follow_reference(rule, get(&operation->in[2], 0), b, &operation->out[4], u, g);
}

sdlf_status gemm_backward_sgd_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const int64_t *dim = operation->out[0].shape.dim;
    if (sdlf_tensor_present(&operation->out[2])) backward_input(operation, &operation->out[2]);
    for (int64_t u = 0; u < dim[0]; u++) {
        for (int64_t i = 0; i < dim[1]; i++) update_weight(operation, u, i);
        if (sdlf_tensor_present(&operation->out[3])) update_bias(operation, u);
    }
    return SDLF_OK;
}
