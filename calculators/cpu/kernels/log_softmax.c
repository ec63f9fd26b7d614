/* SPDX-License-Identifier: MIT */
/* log_softmax of rows: y[j] = (x[j] - max x) - log(sum of exp(x - max x)).
 *
 * Rows of few elements, one for each class, would leave most of a vector's lanes empty, and each would need its maximum
 * and its sum across lanes. So LANES rows are transposed: lane i holds row i, and maximum, exponential, sum and
 * logarithm are vector operations at any width; rows that lie side by side (channels of pixels) are transposed already.
 * Wide rows are processed one by one. A NaN in a row, or an infinite maximum, makes the whole row NaN. */
#include "calculators/cpu/kernels/log_softmax.h"

#include <math.h>

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/interleave.h"

enum { TRANSPOSED_WIDTH = 64 }; /* at most */

/* log(sum) in the element's precision; NaN if sum is not finite. */
static inline element logarithm_of_sum(element sum)
{
    return (element)(logarithm_double((double)sum) + (double)(sum - sum));
}

static void subtract(element *y, const element *x, int64_t width, element largest, element log_sum)
{
    int64_t j = 0;
    for (; j + LANES <= width; j += LANES) store(y + j, (load(x + j) - largest) - log_sum);
    for (; j < width; j++) y[j] = (x[j] - largest) - log_sum;
}

/* For LANES rows, element j of row i at x[j stride + i]: the maximum, and the logarithm of the sum. */
static inline __attribute__((always_inline)) void reduce_lanes(element *largest, element *log_sum, const element *x,
                                                               int64_t stride, int64_t width)
{
    element power[LANES];
    vector most = load(x), sum = {0};
    for (int64_t j = 1; j < width; j++) {
        vector next = load(x + j * stride);
        most = choose(next > most, next, most);
    }
    store(largest, most);
    for (int64_t j = 0; j < width; j++) {
        const element *column = x + j * stride;
#pragma omp simd
        for (int i = 0; i < LANES; i++) power[i] = exponential_of_negative(column[i] - largest[i]);
        sum += load(power);
    }
    store(power, sum);
#pragma omp simd
    for (int i = 0; i < LANES; i++) log_sum[i] = logarithm_of_sum(power[i]);
}

/* The maximum of each pair of lanes; b's if one is NaN. */
static inline vector larger(vector a, vector b)
{
    element x[LANES], y[LANES];
    store(x, a);
    store(y, b);
#pragma omp simd
    for (int i = 0; i < LANES; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
    return load(y);
}

/* LANES rows of LANES elements: all in registers; maximum and sum are not one long dependency chain. */
static void square_block(element *y, const element *x)
{
    vector block[LANES], most[LANES];
    element power[LANES], largest[LANES], log_sum[LANES];
    for (int i = 0; i < LANES; i++) block[i] = load(x + i * LANES);
    interleave(block, LANES);
    for (int i = 0; i < LANES; i++) most[i] = block[i];
#pragma GCC unroll 8
    for (int half = LANES / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < half; i++) most[i] = larger(most[i], most[i + half]);
    }
    for (int i = 0; i < LANES; i++) {
        store(power, block[i] - most[0]);
#pragma omp simd
        for (int k = 0; k < LANES; k++) power[k] = exponential_of_negative(power[k]);
        block[i] = load(power);
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) block[i] += block[i + half];
    }
    store(largest, most[0]);
    store(power, block[0]);
#pragma omp simd
    for (int i = 0; i < LANES; i++) log_sum[i] = logarithm_of_sum(power[i]);
    for (int i = 0; i < LANES; i++) store(y + i * LANES, (load(x + i * LANES) - largest[i]) - log_sum[i]);
}

/* At most LANES rows. */
static void transposed_rows(element *y, const element *x, int64_t rows, int64_t width)
{
    element transposed[TRANSPOSED_WIDTH * LANES], largest[LANES], log_sum[LANES];
    if (rows < LANES) memset(transposed, 0, (size_t)width * LANES * sizeof *transposed);
    transpose(transposed, LANES, x, width, rows, width);
    reduce_lanes(largest, log_sum, transposed, LANES, width);
    for (int64_t r = 0; r < rows; r++) subtract(y + r * width, x + r * width, width, largest[r], log_sum[r]);
}

void log_softmax_lanes_cpu(element *y, const element *x, int64_t stride, int64_t width)
{
    element largest[LANES], log_sum[LANES];
    reduce_lanes(largest, log_sum, x, stride, width);
    vector most = load(largest), log = load(log_sum);
    for (int64_t j = 0; j < width; j++) store(y + j * stride, (load(x + j * stride) - most) - log);
}

static void wide_row(element *y, const element *x, int64_t width)
{
    enum { BLOCK = 256 };
    element block[BLOCK], sum = 0, largest = largest_of_run(x, width), log_sum;
    for (int64_t first = 0; first < width; first += BLOCK) {
        int64_t some = cpu_min(BLOCK, width - first);
#pragma omp simd
        for (int64_t i = 0; i < some; i++) block[i] = exponential_of_negative(x[first + i] - largest);
        sum += sum_run(block, some);
    }
    log_sum = logarithm_of_sum(sum);
    subtract(y, x, width, largest, log_sum);
}

void log_softmax_rows_cpu(element *y, const element *x, int64_t rows, int64_t width)
{
    int64_t step = width <= TRANSPOSED_WIDTH ? LANES : 1;
    for (int64_t r = 0; r < rows; r += step) {
        if (width == LANES && rows - r >= LANES)
            square_block(y + r * LANES, x + r * LANES);
        else if (width <= TRANSPOSED_WIDTH)
            transposed_rows(y + r * width, x + r * width, cpu_min(LANES, rows - r), width);
        else
            wide_row(y + r * width, x + r * width, width);
    }
}
