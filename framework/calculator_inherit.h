/* SPDX-License-Identifier: MIT */
/* Calculators that inherit kernels for the kinds of operations that they lack: `inherits` in <sdlf/calculator.h>. */
#ifndef SDLF_FRAMEWORK_CALCULATOR_INHERIT_H
#define SDLF_FRAMEWORK_CALCULATOR_INHERIT_H

#include <sdlf/calculator.h>

/* Before `open`: opens the inherited class as calculator->inherited, and gives the calculator a table in which every
 * empty slot forwards to it. The calculator then uses the memory space of the inherited one, unless its own `open` sets
 * another. */
sdlf_status calculator_inherit(sdlf_calculator *calculator, const sdlf_calculator_class *type,
                               const sdlf_calculator_options *options);

/* After `open`: checks that both use the same memory. */
sdlf_status calculator_check_inherited(const sdlf_calculator *calculator);

/* After `close`: releases what calculator_inherit allocated. Does nothing if it was not called. */
void calculator_disinherit(sdlf_calculator *calculator);

#endif
