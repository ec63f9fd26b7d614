/* SPDX-License-Identifier: MIT */
/* x - log sum exp(x) along the middle axis of outer x length x inner. */
static void log_softmax(const float *x, float *y, int outer, int length, int inner)
{
    for (int row = 0; row < outer * inner; row++) {
        const int at = row / inner * length * inner + row % inner;
        float largest = x[at], sum = 0;
        for (int i = 1; i < length; i++)
            if (x[at + i * inner] > largest) largest = x[at + i * inner];
        for (int i = 0; i < length; i++) sum += expf(x[at + i * inner] - largest);
        const float shift = largest + logf(sum);
        for (int i = 0; i < length; i++) y[at + i * inner] = x[at + i * inner] - shift;
    }
}
