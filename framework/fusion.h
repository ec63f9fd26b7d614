/* SPDX-License-Identifier: MIT */
/* What is asked of fusions when a calculator that declares them is registered. */
#ifndef SDLF_FRAMEWORK_FUSION_H
#define SDLF_FRAMEWORK_FUSION_H

#include <sdlf/fusion.h>

/* What is wrong with the table; NULL: nothing. */
const char *fusion_fault(const sdlf_fusion *fusion);

#endif
