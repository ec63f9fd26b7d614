/* SPDX-License-Identifier: MIT */
/* The options of a fusion are stored in the bytes of sdlf_operation.fused.options. */
#ifndef SDLF_CALCULATORS_FUSIONS_OPTIONS_H
#define SDLF_CALCULATORS_FUSIONS_OPTIONS_H

/* For the options struct, after its closing brace: a compiler must assume that an operation's bytes may alias it. */
#define FUSION_OPTIONS __attribute__((may_alias))

#endif
