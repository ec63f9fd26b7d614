/* SPDX-License-Identifier: MIT */
/* Transposed convolution: x[c][p][q] times weight[c][k] is added to y[k] at the positions that a convolution from y to
 * x would read, where k ranges over the filters of c's group. */
static void conv_transpose2d(const float *x, const float *weight, float *y, const window *w)
{
    const int channels = w->channels / w->groups, filters = w->filters / w->groups, area = w->rows * w->columns;
    for (int i = 0; i < w->filters * area; i++) y[i] = 0;
    for (int c = 0; c < w->channels; c++, x += w->height * w->width) {
        for (int k = 0; k < filters; k++) {
            float *plane = y + (c / channels * filters + k) * area;
            for (int r = 0; r < w->size[0]; r++) {
                for (int s = 0; s < w->size[1]; s++) {
                    const float factor = *weight++;
                    for (int p = 0; p < w->height; p++) {
                        const int row = p * w->stride[0] + r * w->dilation[0] - w->padding[0];
                        if (row < 0 || row >= w->rows) continue;
                        for (int q = 0; q < w->width; q++) {
                            const int column = q * w->stride[1] + s * w->dilation[1] - w->padding[1];
                            if (column < 0 || column >= w->columns) continue;
                            plane[row * w->columns + column] += factor * x[p * w->width + q];
                        }
                    }
                }
            }
        }
    }
}
