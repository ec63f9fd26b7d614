/* SPDX-License-Identifier: MIT */
/* Each row of `length` elements minus its mean, divided by sqrt(variance + epsilon); then times the scale plus the
 * shift of its channel, which changes every `inner` elements. scale, shift, mean and inverse_std may be NULL. */
static void normalize(const float *x, const float *scale, const float *shift, float *y, float *mean, float *inverse_std,
                      int rows, int length, int inner, int channels, float epsilon)
{
    for (int row = 0; row < rows; row++) {
        const float *line = x + row * length;
        float sum = 0, squares = 0;
        for (int i = 0; i < length; i++) sum += line[i];
        const float middle = sum / (float)length;
        for (int i = 0; i < length; i++) squares += (line[i] - middle) * (line[i] - middle);
        const float factor = 1 / sqrtf(squares / (float)length + epsilon);
        for (int i = 0; y != NULL && i < length; i++) {
            const int at = row * length + i, c = at / inner % channels;
            y[at] = (line[i] - middle) * factor * (scale != NULL ? scale[c] : 1) + (shift != NULL ? shift[c] : 0);
        }
        if (mean != NULL) mean[row] = middle;
        if (inverse_std != NULL) inverse_std[row] = factor;
    }
}
