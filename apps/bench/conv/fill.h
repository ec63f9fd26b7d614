/* SPDX-License-Identifier: MIT */
/* Random inputs for the convolution lab. */
#ifndef SDLF_APPS_BENCH_CONV_FILL_H
#define SDLF_APPS_BENCH_CONV_FILL_H

#include <sdlf/calculator.h>

/* Fill an input of that many images (filters: one), in the calculator's memory, with random values in [-1, 1).
 * Store the last image's values at the start of *last, in host memory; the caller frees it, whatever is returned.
 * The other images use the same block, each from another offset, so that many large images cost the host
 * little. */
sdlf_status lab_fill(sdlf_calculator *calculator, sdlf_calculator *host, const sdlf_tensor *input, int64_t images,
                     uint64_t seed, sdlf_tensor *last);

#endif
