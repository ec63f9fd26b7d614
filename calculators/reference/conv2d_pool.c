/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool: y = max_pool2d(max(conv2d(x, w, bias), 0)), its gradients, and these with the updates they are for.
 *
 * x (N,C,H,W), w (K,C/G,R,S), y and mask (N,K,P,Q). Bit r * window_w + s of the mask is set where position (r, s) of the
 * pool's window attains the maximum and the maximum is positive. */
#include "calculators/reference/reference.h"

#include <math.h>

/* One element (n, k, p, q) of the convolution, rounded to T as if it had been stored: ties must be the same ties. */
static double convolve(const sdlf_operation *operation, int64_t n, int64_t k, int64_t p, int64_t q)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1], *bias = &operation->in[2];
    const sdlf_window2d *window = &operation->conv2d_pool.window;
    int64_t group_channels = w->shape.dim[1], group_filters = w->shape.dim[0] / operation->conv2d_pool.groups;
    int64_t first_channel = k / group_filters * group_channels;
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
    if (sdlf_tensor_present(bias)) sum += get(bias, k);
    return x->dtype == SDLF_FLOAT32 ? (double)(float)sum : sum;
}

sdlf_status conv2d_relu_max_pool_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0], *mask = &operation->out[1];
    const int *pool = operation->conv2d_pool.pool.size;
    const int64_t *dim = y->shape.dim;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t k = 0; k < dim[1]; k++) {
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) {
                    double largest = 0; /* the ReLU: nothing below 0 wins */
                    unsigned marks = 0;
                    for (int position = 0; position < pool[0] * pool[1]; position++) {
                        int64_t r = position / pool[1], s = position % pool[1];
                        double value = convolve(operation, n, k, p * pool[0] + r, q * pool[1] + s);
                        if (value > largest || isnan(value)) {
                            largest = value;
                            marks = 1u << position;
                        } else if (value == largest && value > 0 && operation->conv2d_pool.ties == SDLF_TIES_SHARE) {
                            marks |= 1u << position;
                        }
                    }
                    put(y, at4(y, n, k, p, q), largest);
                    if (!sdlf_tensor_present(mask)) continue;
                    ((uint8_t *)mask->data)[at4(mask, n, k, p, q)] = (uint8_t)(isnan(largest) ? 0 : marks);
                }
            }
        }
    }
    return SDLF_OK;
}

/* The gradient by the convolution's own element (n, k, p, q): dy of the pool's window around it, shared equally among
 * the marked positions; 0 where it is not marked, or in no window. */
static double gradient_at(const sdlf_operation *operation, int64_t n, int64_t k, int64_t p, int64_t q)
{
    const sdlf_tensor *dy = &operation->in[2], *mask = &operation->in[3];
    const int *pool = operation->conv2d_pool.pool.size;
    if (p / pool[0] >= dy->shape.dim[2] || q / pool[1] >= dy->shape.dim[3]) return 0;
    int64_t e = at4(dy, n, k, p / pool[0], q / pool[1]);
    unsigned marks = ((const uint8_t *)mask->data)[e];
    int64_t position = p % pool[0] * pool[1] + q % pool[1];
    if (!(marks >> position & 1)) return 0;
    int sharers = 0;
    for (unsigned rest = marks; rest; rest >>= 1) sharers += rest & 1;
    return get(dy, e) / sharers;
}

/* Height and width of the convolution's own output. */
static void convolved_size(const sdlf_operation *operation, int64_t size[2])
{
    for (int i = 0; i < 2; i++) {
        size[i] = sdlf_window2d_output(&operation->conv2d_pool.window, i, operation->in[0].shape.dim[2 + i]);
    }
}

/* Element e of dw[k,c,r,s] = sum over n,p,q of gradient(n,k,p,q) x[n, g C/G + c, h(p,r), w(q,s)] */
static double weight_gradient(const sdlf_operation *operation, int64_t e)
{
    const sdlf_tensor *x = &operation->in[0];
    const sdlf_window2d *window = &operation->conv2d_pool.window;
    const int64_t *dim = operation->in[1].shape.dim;
    int64_t group_filters = dim[0] / operation->conv2d_pool.groups, size[2];
    convolved_size(operation, size);
    int64_t s = e % dim[3], r = e / dim[3] % dim[2], c = e / dim[3] / dim[2] % dim[1];
    int64_t k = e / dim[3] / dim[2] / dim[1];
    double sum = 0;
    for (int64_t n = 0; n < x->shape.dim[0]; n++) {
        for (int64_t p = 0; p < size[0]; p++) {
            for (int64_t q = 0; q < size[1]; q++) {
                int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
                if (!inside(x, row, column)) continue;
                sum +=
                    gradient_at(operation, n, k, p, q) * get(x, at4(x, n, k / group_filters * dim[1] + c, row, column));
            }
        }
    }
    return sum;
}

/* db[k] = sum over n,p,q of gradient(n,k,p,q) */
static double bias_gradient(const sdlf_operation *operation, int64_t k)
{
    int64_t size[2];
    convolved_size(operation, size);
    double sum = 0;
    for (int64_t n = 0; n < operation->in[0].shape.dim[0]; n++) {
        for (int64_t i = 0; i < size[0] * size[1]; i++) {
            sum += gradient_at(operation, n, k, i / size[1], i % size[1]);
        }
    }
    return sum;
}

/* dx[n,c,h,w] = sum over the filters k of c's group and over r,s of gradient(n,k,p,q) w[k,c,r,s] */
static void backward_input(const sdlf_operation *operation, const sdlf_tensor *dx)
{
    const sdlf_tensor *w = &operation->in[1];
    const sdlf_window2d *window = &operation->conv2d_pool.window;
    const int64_t *dim = dx->shape.dim;
    int64_t group_channels = w->shape.dim[1], group_filters = w->shape.dim[0] / operation->conv2d_pool.groups, size[2];
    convolved_size(operation, size);
    for (int64_t e = 0; e < sdlf_tensor_count(dx); e++) {
        int64_t column = e % dim[3], row = e / dim[3] % dim[2], c = e / dim[3] / dim[2] % dim[1];
        int64_t n = e / dim[3] / dim[2] / dim[1], first_filter = c / group_channels * group_filters;
        double sum = 0;
        for (int64_t k = first_filter; k < first_filter + group_filters; k++) {
            for (int64_t r = 0; r < window->size[0]; r++) {
                for (int64_t s = 0; s < window->size[1]; s++) {
                    int64_t p = window_output(window, 0, row, r, size[0]);
                    int64_t q = window_output(window, 1, column, s, size[1]);
                    if (p < 0 || q < 0) continue;
                    sum += gradient_at(operation, n, k, p, q) * get(w, at4(w, k, c % group_channels, r, s));
                }
            }
        }
        put(dx, e, sum);
    }
}

sdlf_status conv2d_relu_max_pool_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dw = &operation->out[0], *db = &operation->out[1];
    for (int64_t e = 0; e < sdlf_tensor_count(dw); e++) put(dw, e, weight_gradient(operation, e));
    for (int64_t k = 0; k < sdlf_tensor_count(db); k++) put(db, k, bias_gradient(operation, k));
    if (sdlf_tensor_present(&operation->out[2])) backward_input(operation, &operation->out[2]);
    return SDLF_OK;
}

/* The backward pass, each gradient of which goes straight into its element's update; dx comes first, from the old w. */
sdlf_status conv2d_relu_max_pool_backward_sgd_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *w = &operation->out[0], *b = &operation->out[2];
    const sdlf_sgd_rule *rule = &operation->conv2d_pool.sgd;
    double rate = get(&operation->in[3], 0);
    sdlf_operation backward = *operation; /* with the operands where conv2d_relu_max_pool_backward has them */
    backward.in[1] = *w;
    backward.in[2] = operation->in[1];
    backward.in[3] = operation->in[2];
    if (sdlf_tensor_present(&operation->out[4])) backward_input(&backward, &operation->out[4]);
    for (int64_t e = 0; e < sdlf_tensor_count(w); e++) {
        double g = weight_gradient(&backward, e) + (double)rule->decay * get(w, e);
        sgd_follow_reference(rule, rate, w, &operation->out[1], e, g);
    }
    for (int64_t k = 0; k < sdlf_tensor_count(b); k++) {
        double g = bias_gradient(&backward, k) + (double)rule->bias_decay * get(b, k);
        sgd_follow_reference(rule, rate, b, &operation->out[3], k, g);
    }
    return SDLF_OK;
}
