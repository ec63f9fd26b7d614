/* SPDX-License-Identifier: MIT */
/* The mean of each channel's `area` elements. */
static void global_avg_pool2d(const float *x, float *y, int channels, int area)
{
    for (int c = 0; c < channels; c++) {
        float sum = 0;
        for (int i = 0; i < area; i++) sum += x[c * area + i];
        y[c] = sum / (float)area;
    }
}
