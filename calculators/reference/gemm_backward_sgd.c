/* gemm_backward_sgd: a fully connected layer's backward pass and its update. x (N,I), dy (N,U), w (U,I).
 *
 *     dx[n,i] = sum over u of dy[n,u] w[u,i]      (the w before the update)
 *     g[u,i]  = sum over n of dy[n,u] x[n,i]      then w and v follow g as in sgd_update */
#include "calculators/reference/reference.h"

static void backward_input(const sdlf_operation *operation, const sdlf_tensor *dx)
{
    const sdlf_tensor *dy = &operation->in[1], *w = &operation->out[0];
    int64_t rows = dx->shape.dim[0], inputs = dx->shape.dim[1], units = dy->shape.dim[1];
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < inputs; i++) {
            double sum = 0;
            for (int64_t u = 0; u < units; u++) sum += get(dy, n * units + u) * get(w, u * inputs + i);
            put(dx, n * inputs + i, sum);
        }
    }
}

static void update_weight(const sdlf_operation *operation, int64_t u, int64_t i)
{
    const sdlf_tensor *x = &operation->in[0], *dy = &operation->in[1], *w = &operation->out[0], *v = &operation->out[1];
    int64_t rows = x->shape.dim[0], inputs = x->shape.dim[1], units = dy->shape.dim[1], e = u * inputs + i;
    double g = 0, momentum = (double)operation->sgd.momentum;
    for (int64_t n = 0; n < rows; n++) g += get(dy, n * units + u) * get(x, n * inputs + i);
    g += (double)operation->sgd.decay * get(w, e);
    double step = g;
    if (sdlf_tensor_present(v)) {
        double velocity = momentum * get(v, e) + g;
        put(v, e, velocity);
        step = operation->sgd.nesterov ? g + momentum * velocity : velocity;
    }
    put(w, e, get(w, e) - get(&operation->in[2], 0) * step);
}

sdlf_status gemm_backward_sgd_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const int64_t *dim = operation->out[0].shape.dim;
    if (sdlf_tensor_present(&operation->out[2])) backward_input(operation, &operation->out[2]);
    for (int64_t u = 0; u < dim[0]; u++) {
        for (int64_t i = 0; i < dim[1]; i++) update_weight(operation, u, i);
    }
    return SDLF_OK;
}
