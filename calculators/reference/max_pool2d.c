/* SPDX-License-Identifier: MIT */
/* max_pool2d: y[n,c,p,q] = max over the window of x, and its gradient. x (N,C,H,W), y (N,C,P,Q).
 *
 * Padding never wins; NaN does. Inputs that tie for the maximum share its gradient equally, or the first in row-major
 * order gets all of it. If there is a mask, it marks these inputs. */
#include "calculators/reference/reference.h"

#include <math.h>

/* True if a window's maximum has no gradient: NaN, or a value that a following ReLU makes 0. */
static bool is_flat(const sdlf_operation *operation, double largest)
{
    return isnan(largest) || (operation->pool2d.activation.function == SDLF_RELU && largest <= 0);
}

/* The positions of window (p, q) that attain its maximum: bit r * window_w + s for (r, s), if it lies inside. */
static unsigned marks_of(const sdlf_operation *operation, int64_t plane, int64_t p, int64_t q, double largest)
{
    const sdlf_window2d *window = &operation->pool2d.window;
    unsigned marks = 0;
    for (int i = 0; i < window->size[0] * window->size[1] && !is_flat(operation, largest); i++) {
        int64_t h = window_input(window, 0, p, i / window->size[1]),
                w = window_input(window, 1, q, i % window->size[1]);
        bool first = marks == 0 || operation->pool2d.ties == SDLF_TIES_SHARE;
        if (first && get(&operation->in[0], at_plane(&operation->in[0], plane, h, w)) == largest) marks |= 1u << i;
    }
    return marks;
}

sdlf_status max_pool2d_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0], *mask = &operation->out[1];
    const sdlf_window2d *window = &operation->pool2d.window;
    const int64_t *dim = y->shape.dim;
    for (int64_t plane = 0; plane < dim[0] * dim[1]; plane++) {
        for (int64_t p = 0; p < dim[2]; p++) {
            for (int64_t q = 0; q < dim[3]; q++) {
                double largest = -INFINITY;
                for (int64_t r = 0; r < window->size[0]; r++) {
                    for (int64_t s = 0; s < window->size[1]; s++) {
                        int64_t h = window_input(window, 0, p, r), w = window_input(window, 1, q, s);
                        if (!inside(x, h, w)) continue;
                        double value = get(x, at_plane(x, plane, h, w));
                        if (value > largest || isnan(value)) largest = value;
                    }
                }
                bool rectified = operation->pool2d.activation.function == SDLF_RELU && largest <= 0;
                put(y, at_plane(y, plane, p, q), rectified ? 0 : largest);
                if (!sdlf_tensor_present(mask)) continue;
                ((uint8_t *)mask->data)[at_plane(mask, plane, p, q)] =
                    (uint8_t)marks_of(operation, plane, p, q, largest);
            }
        }
    }
    return SDLF_OK;
}

static bool attains(double value, double largest)
{
    return value == largest || (isnan(value) && isnan(largest));
}

/* The share of window (p, q)'s gradient for input element (h, w). */
static double share(const sdlf_operation *operation, int64_t plane, int64_t p, int64_t q, int64_t h, int64_t w)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->in[1];
    const sdlf_window2d *window = &operation->pool2d.window;
    double largest = get(y, at_plane(y, plane, p, q));
    if (!attains(get(x, at_plane(x, plane, h, w)), largest)) return 0;
    int ties = 0;
    for (int64_t r = 0; r < window->size[0]; r++) {
        for (int64_t s = 0; s < window->size[1]; s++) {
            int64_t row = window_input(window, 0, p, r), column = window_input(window, 1, q, s);
            if (!inside(x, row, column) || !attains(get(x, at_plane(x, plane, row, column)), largest)) continue;
            if (operation->pool2d.ties == SDLF_TIES_FIRST) return row == h && column == w ? 1 : 0;
            ties++;
        }
    }
    return 1.0 / ties;
}

/* The share of position (r, s) of window (p, q), by the mask. */
static double share_by_mask(const sdlf_operation *operation, int64_t plane, int64_t p, int64_t q, int64_t r, int64_t s)
{
    const sdlf_tensor *mask = &operation->in[3];
    unsigned marks = ((const uint8_t *)mask->data)[at_plane(mask, plane, p, q)];
    int sharers = 0;
    for (unsigned rest = marks; rest; rest >>= 1) sharers += rest & 1;
    return marks >> (r * operation->pool2d.window.size[1] + s) & 1 ? 1.0 / sharers : 0;
}

/* dx[n,c,h,w] = sum over the windows (p, q) that contain (h, w) of dy[n,c,p,q] times its share */
sdlf_status max_pool2d_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[2], *dx = &operation->out[0];
    const sdlf_window2d *window = &operation->pool2d.window;
    const bool has_mask = sdlf_tensor_present(&operation->in[3]);
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
                        double part = has_mask ? share_by_mask(operation, plane, p, q, r, s)
                                               : share(operation, plane, p, q, h, w);
                        sum += get(dy, at_plane(dy, plane, p, q)) * part;
                    }
                }
                put(dx, at_plane(dx, plane, h, w), sum);
            }
        }
    }
    return SDLF_OK;
}
