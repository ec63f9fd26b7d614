/* SPDX-License-Identifier: MIT */
/* y = a b + bias: a is rows x inner, b is inner x columns. a_row and a_column are the strides of a's rows and columns;
 * likewise b_row and b_column. No bias: NULL. */
static void matmul(const float *a, const float *b, const float *bias, float *y, int rows, int inner, int columns,
                   int a_row, int a_column, int b_row, int b_column)
{
    for (int i = 0; i < rows; i++, y += columns) {
        for (int j = 0; j < columns; j++) y[j] = bias != NULL ? bias[j] : 0;
        for (int k = 0; k < inner; k++) {
            const float factor = a[i * a_row + k * a_column];
            for (int j = 0; j < columns; j++) y[j] += factor * b[k * b_row + j * b_column];
        }
    }
}
