/* SPDX-License-Identifier: MIT */
/* Fused operations of any fusion: runs its member operations one after another.
 *
 * The workspace holds the intermediate tensors, then scratch space for the member that needs most. */
#include "calculators/reference/reference.h"
#include "calculators/registry.h"

#include <sdlf/fusion.h>

typedef struct parts {
    sdlf_operation member[SDLF_FUSION_MEMBERS];
    unsigned present;
    int64_t between, scratch; /* bytes */
} parts;

static const sdlf_kernel_slot *slot_of(const sdlf_operation *member)
{
    return &sdlf_reference_calculator_class.kernel[member->kind];
}

static parts parts_of(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    parts p = {.scratch = 0};
    p.between = sdlf_fusion_split(operation, p.member, &p.present, operation->workspace.data);
    for (int i = 0; i < SDLF_FUSION_MEMBERS; i++) {
        const sdlf_kernel_slot *slot = slot_of(&p.member[i]);
        if (!(p.present >> i & 1) || slot->workspace == NULL) continue;
        int64_t bytes = slot->workspace(calculator, &p.member[i]);
        if (p.scratch < bytes) p.scratch = bytes;
    }
    return p;
}

/* True if all members are supported. */
bool fused_supports_reference(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation member[SDLF_FUSION_MEMBERS];
    unsigned present;
    sdlf_fusion_split(operation, member, &present, NULL);
    for (int i = 0; i < SDLF_FUSION_MEMBERS; i++)
        if ((present >> i & 1) && !sdlf_calculator_supports(calculator, &member[i])) return false;
    return present != 0;
}

int64_t fused_workspace_reference(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    parts p = parts_of(calculator, operation);
    return p.between + p.scratch;
}

sdlf_status fused_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    parts p = parts_of(calculator, operation);
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < SDLF_FUSION_MEMBERS && status == SDLF_OK; i++) {
        if (!(p.present >> i & 1)) continue;
        p.member[i].workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(p.scratch), operation->workspace.data);
        if (p.scratch > 0) p.member[i].workspace.data = (char *)operation->workspace.data + p.between;
        status = slot_of(&p.member[i])->run(calculator, &p.member[i]);
    }
    return status;
}
