/* SPDX-License-Identifier: MIT */
/* The calculators of this build, in listing order, for framework/calculator_classes.c. */
#include "calculators/registry.h"

const sdlf_calculator_class *const sdlf_builtin_calculators[] = {
#define SDLF_CALCULATOR(class) &class,
#include "calculators/list.h"
#undef SDLF_CALCULATOR
    NULL,
};

const sdlf_calculator_class *sdlf_calculator_class_default(void)
{
    return &sdlf_cpu_calculator_class;
}

/* Terminated by a row of NULL, which may be the only one. */
static const struct left_out {
    const char *name, *reason;
} left_out[] = {
#ifndef SDLF_HAVE_CUDA
    {"cuda", "it was made without CUDA"},
#endif
#ifndef SDLF_HAVE_CUDNN
    {"cudnn", "it was made without cuDNN 9"},
#endif
    {NULL, NULL},
};

const char *sdlf_calculator_unavailable(int index, const char **reason)
{
    int count = (int)(sizeof left_out / sizeof left_out[0]) - 1;
    if (index < 0 || index >= count) return NULL;
    if (reason != NULL) *reason = left_out[index].reason;
    return left_out[index].name;
}
