/* SPDX-License-Identifier: MIT */
/* exp(x) / sum exp(x) along the middle axis of outer x length x inner. */
static void softmax(const float *x, float *y, int outer, int length, int inner)
{
    for (int row = 0; row < outer * inner; row++) {
        const int at = row / inner * length * inner + row % inner;
        float largest = x[at], sum = 0;
        for (int i = 1; i < length; i++)
            if (x[at + i * inner] > largest) largest = x[at + i * inner];
        for (int i = 0; i < length; i++) sum += y[at + i * inner] = expf(x[at + i * inner] - largest);
        for (int i = 0; i < length; i++) y[at + i * inner] /= sum;
    }
}
