/* SPDX-License-Identifier: MIT */
/* y[k][p][q] = bias[k] + the sum over c, r, s of weight[k][c][r][s] x[c][p stride + r dilation - padding][...], where c
 * ranges over the channels of k's group and x is 0 outside. No bias: NULL. */
static void conv2d(const float *x, const float *weight, const float *bias, float *y, const window *w)
{
    const int channels = w->channels / w->groups, filters = w->filters / w->groups, area = w->rows * w->columns;
    for (int k = 0; k < w->filters; k++) {
        float *plane = y + k * area;
        for (int i = 0; i < area; i++) plane[i] = bias != NULL ? bias[k] : 0;
        for (int c = 0; c < channels; c++) {
            const float *image = x + (k / filters * channels + c) * w->height * w->width;
            for (int r = 0; r < w->size[0]; r++) {
                for (int s = 0; s < w->size[1]; s++) {
                    const float factor = *weight++;
                    const int left = s * w->dilation[1] - w->padding[1], step = w->stride[1];
                    int first = 0, end = w->columns; /* columns of y whose x is inside */
                    while (first < end && first * step + left < 0) first++;
                    while (end > first && (end - 1) * step + left >= w->width) end--;
                    for (int p = 0; p < w->rows; p++) {
                        const int row = p * w->stride[0] + r * w->dilation[0] - w->padding[0];
                        if (row < 0 || row >= w->height) continue;
                        for (int q = first; q < end; q++)
                            plane[p * w->columns + q] += factor * image[row * w->width + q * step + left];
                    }
                }
            }
        }
    }
}
