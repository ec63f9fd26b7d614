/* conv2d_pointwise_depthwise: a 1x1 convolution and the depthwise one behind it. x (N,C,H,W), w (K,C,1,1), depthwise (K,1,R,S), y (N,K,P,Q).
 *
 *     h[n,k,i,j] = between(bias[k] + sum over c of x[n,c,i,j] w[k,c]), 0 outside
 *     y[n,k,p,q] = act(depthwise_bias[k] + sum over r,s of h[n,k,h(p,r),w(q,s)] depthwise[k,r,s]) */
#include "calculators/reference/reference.h"

/* Made anew for each window that reads it: nothing is kept. */
static double between(const sdlf_operation *operation, int64_t n, int64_t k, int64_t row, int64_t column)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1], *bias = &operation->in[3];
    double sum = 0;
    for (int64_t c = 0; c < x->shape.dim[1]; c++) sum += get(x, at4(x, n, c, row, column)) * get(w, at4(w, k, c, 0, 0));
    if (sdlf_tensor_present(bias)) sum += get(bias, k);
    return activate_reference(&operation->conv2d_pair.between, sum);
}

sdlf_status conv2d_pointwise_depthwise_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *own = &operation->in[2], *bias = &operation->in[4];
    const sdlf_tensor *y = &operation->out[0];
    const sdlf_window2d *window = &operation->conv2d_pair.window;
    const int64_t *dim = y->shape.dim;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t k = 0; k < dim[1]; k++) {
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) {
                    double sum = 0;
                    for (int64_t r = 0; r < window->size[0]; r++) {
                        for (int64_t s = 0; s < window->size[1]; s++) {
                            int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
                            if (!inside(x, row, column)) continue;
                            sum += between(operation, n, k, row, column) * get(own, at4(own, k, 0, r, s));
                        }
                    }
                    if (sdlf_tensor_present(bias)) sum += get(bias, k);
                    put(y, at4(y, n, k, p, q), activate_reference(&operation->conv2d_pair.activation, sum));
                }
            }
        }
    }
    return SDLF_OK;
}
