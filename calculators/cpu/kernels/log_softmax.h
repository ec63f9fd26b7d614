/* SPDX-License-Identifier: MIT */
/* log_softmax of rows. See log_softmax.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_LOG_SOFTMAX_H
#define SDLF_CALCULATORS_CPU_KERNELS_LOG_SOFTMAX_H

#include "calculators/cpu/kernels/element.h"

/* y[r, :] = log_softmax(x[r, :]) for contiguous rows of `width` elements; y may alias x. The bits of a row do not
 * depend on its neighbours. */
void log_softmax_rows_cpu(element *y, const element *x, int64_t rows, int64_t width);

/* The same for LANES rows side by side, element j of row i at x[j stride + i]; y may alias x. */
void log_softmax_lanes_cpu(element *y, const element *x, int64_t stride, int64_t width);

#endif
