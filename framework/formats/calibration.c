/* SPDX-License-Identifier: MIT */
/* The names of calibration methods. See <sdlf/quantize.h>. */
#include <sdlf/quantize.h>

const char *const sdlf_calibration_names[SDLF_CALIBRATION_COUNT + 1] = {"minmax", "percentile", "entropy", NULL};
