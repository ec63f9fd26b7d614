/* SPDX-License-Identifier: MIT */
/* Operands under one index, as in the bits of an operation class: inputs first, then outputs. */
#ifndef SDLF_FRAMEWORK_OPERAND_H
#define SDLF_FRAMEWORK_OPERAND_H

#include <sdlf/operation.h>

enum { SDLF_MAX_OPERANDS = SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS };

/* The operand; to be treated as constant if the operation is. */
static inline sdlf_tensor *sdlf_operand_at(const sdlf_operation *operation, int i)
{
    return (sdlf_tensor *)(i < SDLF_MAX_INPUTS ? &operation->in[i] : &operation->out[i - SDLF_MAX_INPUTS]);
}

/* The class's declaration of the operand. */
static inline const sdlf_operand *sdlf_operand_declared(const sdlf_operation_class *type, int i)
{
    return i < SDLF_MAX_INPUTS ? &type->in[i] : &type->out[i - SDLF_MAX_INPUTS];
}

#endif
