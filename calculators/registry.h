/* SPDX-License-Identifier: MIT */
/* Every calculator class of this build. Adding one: its line in list.h. */
#ifndef SDLF_CALCULATORS_REGISTRY_H
#define SDLF_CALCULATORS_REGISTRY_H

#include <sdlf/calculator.h>

#define SDLF_CALCULATOR(class) extern const sdlf_calculator_class class;
#include "calculators/list.h"
#undef SDLF_CALCULATOR

/* All of them, and NULL. */
extern const sdlf_calculator_class *const sdlf_builtin_calculators[];

#endif
