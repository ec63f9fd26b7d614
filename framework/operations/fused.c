/* SPDX-License-Identifier: MIT */
/* fused: what its fusion says, whose class stands for this one as soon as there is one (sdlf_operation_type). */
#include "framework/operations/operations.h"

static sdlf_status check_fused(const sdlf_operation *operation)
{
    (void)operation;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "the operation names no fusion");
}

const sdlf_operation_class sdlf_fused_operation = {
    .name = "fused", .out = {{.name = "y", .optional = true}}, .check = check_fused};
