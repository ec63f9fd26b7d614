/* SPDX-License-Identifier: MIT */
/* Batch normalisation: each channel's `area` elements times its scale, plus its shift. */
static void scale_channels(const float *x, const float *scale, const float *shift, float *y, int channels, int area)
{
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < area; i++) y[c * area + i] = x[c * area + i] * scale[c] + shift[c];
}
