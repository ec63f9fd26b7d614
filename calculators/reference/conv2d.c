/* SPDX-License-Identifier: MIT */
/* conv2d and its gradients. x (N,C,H,W), w (K,C/G,R,S), y (N,K,P,Q).
 *
 *     y[n,k,p,q] = act(bias[k] + residual[n,k,p,q] + sum over c,r,s of x[n, g C/G + c, h(p,r), w(q,s)] w[k,c,r,s])
 *
 * with g the group of k, h(p,r) = p stride + r dilation - padding (and w(q,s) alike), and x = 0 outside. Filter k of
 * group g sees the C/G channels of its group; channel c feeds the K/G filters of its group. */
#include "calculators/reference/reference.h"

sdlf_status conv2d_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1], *y = &operation->out[0];
    const sdlf_tensor *bias = &operation->in[2], *residual = &operation->in[3];
    const sdlf_window2d *window = &operation->conv2d.window;
    const int64_t *dim = y->shape.dim;
    int64_t group_channels = w->shape.dim[1], group_filters = w->shape.dim[0] / operation->conv2d.groups;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t k = 0; k < dim[1]; k++) {
            int64_t first_channel = k / group_filters * group_channels;
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) {
                    double sum = 0;
                    for (int64_t c = 0; c < group_channels; c++) {
                        for (int64_t r = 0; r < window->size[0]; r++) {
                            for (int64_t s = 0; s < window->size[1]; s++) {
                                int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
                                if (!inside(x, row, column)) continue;
                                sum += get(x, at4(x, n, first_channel + c, row, column)) * get(w, at4(w, k, c, r, s));
                            }
                        }
                    }
                    int64_t e = at4(y, n, k, p, q);
                    if (sdlf_tensor_present(bias)) sum += get(bias, k);
                    if (sdlf_tensor_present(residual)) sum += get(residual, at4(residual, n, k, p, q));
                    put(y, e, activate_reference(&operation->conv2d.activation, sum));
                }
            }
        }
    }
    return SDLF_OK;
}

/* dx[n,c,h,w] = sum over the filters k of c's group and over r,s of dy[n,k,p,q] w[k,c,r,s], where (p, q) is the output
 * that has (h, w) at position (r, s) of its window; + residual[n,c,h,w] */
sdlf_status conv2d_backward_input_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[0], *w = &operation->in[1], *dx = &operation->out[0];
    const sdlf_tensor *residual = &operation->in[2];
    const sdlf_window2d *window = &operation->conv2d.window;
    const int64_t *dim = dx->shape.dim;
    int64_t group_channels = w->shape.dim[1], group_filters = w->shape.dim[0] / operation->conv2d.groups;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t c = 0; c < dim[1]; c++) {
            int64_t first_filter = c / group_channels * group_filters;
            for (int64_t row = 0; row < dim[2]; row++) {
                for (int64_t column = 0; column < dim[3]; column++) {
                    double sum = 0;
                    for (int64_t k = first_filter; k < first_filter + group_filters; k++) {
                        for (int64_t r = 0; r < window->size[0]; r++) {
                            for (int64_t s = 0; s < window->size[1]; s++) {
                                int64_t p = window_output(window, 0, row, r, dy->shape.dim[2]);
                                int64_t q = window_output(window, 1, column, s, dy->shape.dim[3]);
                                if (p < 0 || q < 0) continue;
                                sum += get(dy, at4(dy, n, k, p, q)) * get(w, at4(w, k, c % group_channels, r, s));
                            }
                        }
                    }
                    if (sdlf_tensor_present(residual)) sum += get(residual, at4(residual, n, c, row, column));
                    put(dx, at4(dx, n, c, row, column), sum);
                }
            }
        }
    }
    return SDLF_OK;
}

/* dw[k,c,r,s] = sum over n,p,q of dy[n,k,p,q] x[n, g C/G + c, h(p,r), w(q,s)];  db[k] = sum over n,p,q of dy[n,k,p,q] */
sdlf_status conv2d_backward_weights_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *dy = &operation->in[1];
    const sdlf_tensor *dw = &operation->out[0], *db = &operation->out[1];
    const sdlf_window2d *window = &operation->conv2d.window;
    const int64_t *dim = dy->shape.dim;
    int64_t group_channels = dw->shape.dim[1], group_filters = dw->shape.dim[0] / operation->conv2d.groups;
    for (int64_t k = 0; k < dw->shape.dim[0]; k++) {
        int64_t first_channel = k / group_filters * group_channels;
        for (int64_t c = 0; c < group_channels; c++) {
            for (int64_t r = 0; r < window->size[0]; r++) {
                for (int64_t s = 0; s < window->size[1]; s++) {
                    double sum = 0;
                    for (int64_t n = 0; n < dim[0]; n++) {
                        for (int64_t p = 0; p < dim[2]; p++) {
                            for (int64_t q = 0; q < dim[3]; q++) {
                                int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
                                if (!inside(x, row, column)) continue;
                                sum += get(dy, at4(dy, n, k, p, q)) * get(x, at4(x, n, first_channel + c, row, column));
                            }
                        }
                    }
                    put(dw, at4(dw, k, c, r, s), sum);
                }
            }
        }
    }
    for (int64_t k = 0; sdlf_tensor_present(db) && k < dim[1]; k++) {
        double sum = 0;
        for (int64_t n = 0; n < dim[0]; n++) {
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) sum += get(dy, at4(dy, n, k, p, q));
            }
        }
        put(db, k, sum);
    }
    return SDLF_OK;
}
