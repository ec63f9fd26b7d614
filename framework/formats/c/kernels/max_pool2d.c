/* SPDX-License-Identifier: MIT */
/* The largest element of each window; padding never wins. */
static void max_pool2d(const float *x, float *y, const window *w)
{
    for (int c = 0; c < w->channels; c++, x += w->height * w->width) {
        for (int p = 0; p < w->rows; p++) {
            for (int q = 0; q < w->columns; q++) {
                float largest = -INFINITY;
                for (int r = 0; r < w->size[0]; r++) {
                    const int row = p * w->stride[0] + r * w->dilation[0] - w->padding[0];
                    if (row < 0 || row >= w->height) continue;
                    for (int s = 0; s < w->size[1]; s++) {
                        const int column = q * w->stride[1] + s * w->dilation[1] - w->padding[1];
                        if (column < 0 || column >= w->width) continue;
                        const float value = x[row * w->width + column];
                        if (value > largest || value != value) largest = value; /* NaN wins */
                    }
                }
                *y++ = largest;
            }
        }
    }
}
