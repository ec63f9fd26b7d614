/* SPDX-License-Identifier: MIT */
/* All calculator classes of this build. To add one, add its line to list.h. */
#ifndef SDLF_CALCULATORS_REGISTRY_H
#define SDLF_CALCULATORS_REGISTRY_H

#include <sdlf/calculator.h>

#define SDLF_CALCULATOR(class) extern const sdlf_calculator_class class;
#include "calculators/list.h"
#undef SDLF_CALCULATOR

/* All of them, NULL-terminated. */
extern const sdlf_calculator_class *const sdlf_builtin_calculators[];

#endif
