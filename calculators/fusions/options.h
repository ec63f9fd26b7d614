/* SPDX-License-Identifier: MIT */
/* The options of a fusion lie in bytes of an operation: sdlf_operation.fused.options. */
#ifndef SDLF_CALCULATORS_FUSIONS_OPTIONS_H
#define SDLF_CALCULATORS_FUSIONS_OPTIONS_H

/* For the struct of the options, behind its brace: a compiler may not assume that an operation holds none of its type. */
#define FUSION_OPTIONS __attribute__((may_alias))

#endif
