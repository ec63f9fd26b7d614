/* SPDX-License-Identifier: MIT */
/* Calculators that inherit the kinds of operations that they have no kernels for: `inherits` in <sdlf/calculator.h>. */
#ifndef SDLF_FRAMEWORK_CALCULATOR_INHERIT_H
#define SDLF_FRAMEWORK_CALCULATOR_INHERIT_H

#include <sdlf/calculator.h>

/* Before `open`: open the class that is inherited from, as calculator->inherited, and give the calculator a table in
 * which every empty slot passes work on to it. The calculator then has that one's space, until its own `open` says
 * another. */
sdlf_status calculator_inherit(sdlf_calculator *calculator, const sdlf_calculator_class *type,
                               const sdlf_calculator_options *options);

/* After `open`: are both in the same memory? */
sdlf_status calculator_check_inherited(const sdlf_calculator *calculator);

/* After `close`: release what calculator_inherit took. Does nothing where it did not. */
void calculator_disinherit(sdlf_calculator *calculator);

#endif
