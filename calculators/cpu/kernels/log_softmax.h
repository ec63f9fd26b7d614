/* log_softmax of rows that have just been computed. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_LOG_SOFTMAX_H
#define SDLF_CALCULATORS_CPU_KERNELS_LOG_SOFTMAX_H

#include "calculators/cpu/kernels/element.h"

/* y[r, :] = log_softmax(y[r, :]) for rows of `width` elements, one after the other. A row's bits do not depend on its neighbours. */
void log_softmax_rows_cpu(element *y, int64_t rows, int64_t width);

#endif
