/* log_softmax in place: y[j] = (x[j] - max x) - log(sum of exp(x - max x)), rows as they lie in the cache.
 *
 * Rows of few elements, as many as there are classes, would leave most of a vector's lanes empty, and each would need its maximum and
 * its sum across lanes. So LANES rows are turned: lane i holds row i, and maximum, exponential, sum and logarithm are those of vectors,
 * whatever the width. Wide rows are walked one by one. A NaN in a row, or an infinity that is its maximum, makes all of it NaN. */
#include "calculators/cpu/kernels/log_softmax.h"

#include <math.h>

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/interleave.h"

enum { TURNED_WIDTH = 64 }; /* at most */

/* log(sum) in the element's precision; NaN for what is no finite sum. */
static void logarithms(element *log_sum, const double *sum, int64_t count)
{
    double result[LANES];
#pragma omp simd
    for (int64_t i = 0; i < count; i++) result[i] = logarithm_double(sum[i]);
    for (int64_t i = 0; i < count; i++) log_sum[i] = sum[i] - sum[i] == 0 ? (element)result[i] : (element)NAN;
}

static void subtract(element *row, int64_t width, element largest, element log_sum)
{
    int64_t j = 0;
    for (; j + LANES <= width; j += LANES) store(row + j, (load(row + j) - largest) - log_sum);
    for (; j < width; j++) row[j] = (row[j] - largest) - log_sum;
}

/* At most LANES rows. */
static void turned_rows(element *y, int64_t rows, int64_t width)
{
    element turned[TURNED_WIDTH * LANES], largest[LANES], log_sum[LANES];
    double sums[LANES];
    if (rows < LANES) memset(turned, 0, (size_t)width * LANES * sizeof *turned);
    transpose(turned, LANES, y, width, rows, width);
    vector most = load(turned), sum = {0};
    for (int64_t j = 1; j < width; j++) {
        vector next = load(turned + j * LANES);
        most = choose(next > most, next, most);
    }
    store(largest, most);
    for (int64_t j = 0; j < width; j++) {
        element *column = turned + j * LANES;
#pragma omp simd
        for (int i = 0; i < LANES; i++) column[i] = exponential(column[i] - largest[i]);
        sum += load(column);
    }
    store(log_sum, sum);
    for (int i = 0; i < LANES; i++) sums[i] = (double)log_sum[i];
    logarithms(log_sum, sums, LANES);
    for (int64_t r = 0; r < rows; r++) subtract(y + r * width, width, largest[r], log_sum[r]);
}

static void wide_row(element *row, int64_t width)
{
    enum { BLOCK = 64 };
    vector most = load(row);
    for (int64_t j = LANES; j + LANES <= width; j += LANES) {
        vector next = load(row + j);
        most = choose(next > most, next, most);
    }
    element lane[LANES], block[BLOCK], sum = 0, largest, log_sum;
    store(lane, most);
    largest = lane[0];
    for (int i = 1; i < LANES; i++) largest = lane[i] > largest ? lane[i] : largest;
    for (int64_t j = width / LANES * LANES; j < width; j++) largest = row[j] > largest ? row[j] : largest;
    for (int64_t first = 0; first < width; first += BLOCK) {
        int64_t some = cpu_min(BLOCK, width - first);
#pragma omp simd
        for (int64_t i = 0; i < some; i++) block[i] = exponential(row[first + i] - largest);
        sum += sum_run(block, some);
    }
    double total = (double)sum;
    logarithms(&log_sum, &total, 1);
    subtract(row, width, largest, log_sum);
}

void log_softmax_rows_cpu(element *y, int64_t rows, int64_t width)
{
    int64_t step = width <= TURNED_WIDTH ? LANES : 1;
    for (int64_t r = 0; r < rows; r += step) {
        if (width <= TURNED_WIDTH)
            turned_rows(y + r * width, cpu_min(LANES, rows - r), width);
        else
            wide_row(y + r * width, width);
    }
}
