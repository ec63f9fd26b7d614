/* SPDX-License-Identifier: MIT */
/* avg_pool2d and global_avg_pool2d: means over windows, and over whole channels. x (N,C,H,W), y (N,C,P,Q).
 *
 * The mean divides by R S if padding counts, else by the number of the window's positions inside the input; its
 * gradient with respect to each position inside the input is dy divided by the same number. */
#include "calculators/reference/reference.h"

/* The divisor of window (p, q). */
static double divisor(const sdlf_operation *operation, const sdlf_tensor *x, int64_t p, int64_t q)
{
    const sdlf_window2d *window = &operation->pool2d.window;
    if (operation->pool2d.count_padding) return (double)window->size[0] * window->size[1];
    int64_t counted[2] = {0, 0};
    for (int axis = 0; axis < 2; axis++) {
        for (int64_t r = 0; r < window->size[axis]; r++) {
            int64_t input = window_input(window, axis, axis == 0 ? p : q, r);
            if (input >= 0 && input < x->shape.dim[2 + axis]) counted[axis]++;
        }
    }
    return (double)(counted[0] * counted[1]);
}

sdlf_status avg_pool2d_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    const sdlf_window2d *window = &operation->pool2d.window;
    const int64_t *dim = y->shape.dim;
    for (int64_t plane = 0; plane < dim[0] * dim[1]; plane++) {
        for (int64_t p = 0; p < dim[2]; p++) {
            for (int64_t q = 0; q < dim[3]; q++) {
                double sum = 0;
                for (int64_t r = 0; r < window->size[0]; r++) {
                    for (int64_t s = 0; s < window->size[1]; s++) {
                        int64_t h = window_input(window, 0, p, r), w = window_input(window, 1, q, s);
                        if (!inside(x, h, w)) continue;
                        sum += get(x, at_plane(x, plane, h, w));
                    }
                }
                put(y, at_plane(y, plane, p, q), sum / divisor(operation, x, p, q));
            }
        }
    }
    return SDLF_OK;
}

sdlf_status avg_pool2d_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[0], *dx = &operation->out[0];
    const sdlf_window2d *window = &operation->pool2d.window;
    const int64_t *dim = dx->shape.dim;
    for (int64_t plane = 0; plane < dim[0] * dim[1]; plane++) {
        for (int64_t h = 0; h < dim[2]; h++) {
            for (int64_t w = 0; w < dim[3]; w++) {
                double sum = 0;
                for (int64_t r = 0; r < window->size[0]; r++) {
                    for (int64_t s = 0; s < window->size[1]; s++) {
                        int64_t p = window_output(window, 0, h, r, dy->shape.dim[2]);
                        int64_t q = window_output(window, 1, w, s, dy->shape.dim[3]);
                        if (p < 0 || q < 0) continue;
                        sum += get(dy, at_plane(dy, plane, p, q)) / divisor(operation, dx, p, q);
                    }
                }
                put(dx, at_plane(dx, plane, h, w), sum);
            }
        }
    }
    return SDLF_OK;
}

/* y[n,c] = mean over h,w of x[n,c,h,w] */
sdlf_status global_avg_pool2d_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t width = x->shape.dim[3], area = x->shape.dim[2] * width, planes = sdlf_tensor_count(y);
    for (int64_t plane = 0; plane < planes; plane++) {
        double sum = 0;
        for (int64_t i = 0; i < area; i++) sum += get(x, at_plane(x, plane, i / width, i % width));
        put(y, at_plane(y, plane, 0, 0), sum / (double)area);
    }
    return SDLF_OK;
}

/* dx[n,c,h,w] = dy[n,c] / (H W) */
sdlf_status global_avg_pool2d_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[0], *dx = &operation->out[0];
    int64_t width = dx->shape.dim[3], area = dx->shape.dim[2] * width, count = sdlf_tensor_count(dx);
    for (int64_t e = 0; e < count; e++) {
        int64_t plane = e / area, i = e % area;
        put(dx, at_plane(dx, plane, i / width, i % width), get(dy, at_plane(dy, plane, 0, 0)) / (double)area);
    }
    return SDLF_OK;
}
