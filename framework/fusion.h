/* SPDX-License-Identifier: MIT */
/* Requirements on fusions, checked when a calculator that declares them is registered. */
#ifndef SDLF_FRAMEWORK_FUSION_H
#define SDLF_FRAMEWORK_FUSION_H

#include <sdlf/fusion.h>

/* Describes what is wrong with the table; NULL: nothing. */
const char *fusion_fault(const sdlf_fusion *fusion);

#endif
