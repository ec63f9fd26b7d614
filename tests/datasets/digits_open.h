/* SPDX-License-Identifier: MIT */
/* Opening the data set `digits`, for tests of its contents and arguments. */
#ifndef SDLF_TESTS_DATASETS_DIGITS_OPEN_H
#define SDLF_TESTS_DATASETS_DIGITS_OPEN_H

#include <stdlib.h>

#include "datasets/datasets_internal.h"
#include "datasets/digits.h"

static inline sdlf_status open_digits(sdlf_dataset *dataset, const char *argument, sdlf_split split)
{
    *dataset = (sdlf_dataset){.type = &sdlf_digits_dataset_class};
    return sdlf_digits_dataset_class.load(dataset, argument, split, &(sdlf_dataset_options){0});
}

static inline void close_digits(sdlf_dataset *dataset)
{
    sdlf_tensor_release(&dataset->samples, NULL);
    sdlf_tensor_release(&dataset->labels, NULL);
    free(dataset->name);
    *dataset = (sdlf_dataset){0};
}

#endif
