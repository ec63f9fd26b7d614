/* SPDX-License-Identifier: MIT */
/* Random inputs for the convolution lab. */
#ifndef SDLF_APPS_BENCH_CONV_FILL_H
#define SDLF_APPS_BENCH_CONV_FILL_H

#include <sdlf/calculator.h>

/* Fill an input of that many images (filters: one), in the calculator's memory, with random numbers in [-1, 1), and
 * leave the last image's in *last, in the host's, first of all that it holds; it is the caller's, whatever is returned.
 * The other images take theirs from the same block, each from another place of it, so that many large images cost the
 * host little. */
sdlf_status lab_fill(sdlf_calculator *calculator, sdlf_calculator *host, const sdlf_tensor *input, int64_t images,
                     uint64_t seed, sdlf_tensor *last);

#endif
