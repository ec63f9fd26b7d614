/* SPDX-License-Identifier: MIT */
/* fused: its fusion's class replaces this one as soon as a fusion is set (sdlf_operation_type). */
#include "framework/operations/operations.h"

static sdlf_status check_fused(const sdlf_operation *operation)
{
    (void)operation;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "the operation names no fusion");
}

const sdlf_operation_class sdlf_fused_operation = {
    .name = "fused", .out = {{.name = "y", .optional = true}}, .check = check_fused};
