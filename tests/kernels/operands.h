/* SPDX-License-Identifier: MIT */
/* Operands of a case by a single index, inputs before outputs; shared by the code that fills them, runs on them and
 * compares them. */
#ifndef SDLF_TESTS_KERNEL_OPERANDS_H
#define SDLF_TESTS_KERNEL_OPERANDS_H

#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

#include "framework/operand.h"

enum { POISON = 0xFF };

static inline void *need(void *memory)
{
    if (memory) return memory;
    printf("the test itself has run out of memory\n");
    exit(1);
}

static inline unsigned char **image_at(kernel_images *images, int index)
{
    return index < SDLF_MAX_INPUTS ? &images->in[index] : &images->out[index - SDLF_MAX_INPUTS];
}

#endif
