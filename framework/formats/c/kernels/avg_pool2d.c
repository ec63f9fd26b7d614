/* SPDX-License-Identifier: MIT */
/* The mean of each window: over its elements inside x, or with `whole` over the whole window, zero-padded. */
static void avg_pool2d(const float *x, float *y, const window *w, int whole)
{
    for (int c = 0; c < w->channels; c++, x += w->height * w->width) {
        for (int p = 0; p < w->rows; p++) {
            for (int q = 0; q < w->columns; q++) {
                float sum = 0;
                int count = 0;
                for (int r = 0; r < w->size[0]; r++) {
                    const int row = p * w->stride[0] + r - w->padding[0];
                    if (row < 0 || row >= w->height) continue;
                    for (int s = 0; s < w->size[1]; s++) {
                        const int column = q * w->stride[1] + s - w->padding[1];
                        if (column < 0 || column >= w->width) continue;
                        sum += x[row * w->width + column];
                        count++;
                    }
                }
                *y++ = sum / (float)(whole ? w->size[0] * w->size[1] : count);
            }
        }
    }
}
