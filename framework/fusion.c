/* SPDX-License-Identifier: MIT */
/* Fusions: which there are, and the way from members to a fused operation and back. */
#include <sdlf/calculator.h>
#include <sdlf/fusion.h>

#include <string.h>

enum { ALIGNMENT = 64 };

/* Has a class before this one, or an entry before this one, the fusion too? */
static bool is_listed_before(int class_index, const sdlf_fused_slot *entry)
{
    for (int c = 0; c <= class_index; c++) {
        const sdlf_fused_slot *other = sdlf_calculator_class_at(c)->fusions;
        for (; other != NULL && other->fusion != NULL && other != entry; other++)
            if (other->fusion == entry->fusion) return true;
    }
    return false;
}

const sdlf_fusion *sdlf_fusion_at(int index)
{
    const sdlf_calculator_class *type;
    for (int c = 0; index >= 0 && (type = sdlf_calculator_class_at(c)) != NULL; c++) {
        const sdlf_fused_slot *entry = type->fusions;
        for (; entry != NULL && entry->fusion != NULL; entry++)
            if (!is_listed_before(c, entry) && index-- == 0) return entry->fusion;
    }
    return NULL;
}

const sdlf_fusion *sdlf_fusion_find(const char *name)
{
    const sdlf_fusion *fusion;
    for (int i = 0; name != NULL && (fusion = sdlf_fusion_at(i)) != NULL; i++)
        if (strcmp(fusion->type.name, name) == 0) return fusion;
    return NULL;
}

bool sdlf_fusion_join(const sdlf_fusion *fusion, const sdlf_operation *const *member, sdlf_operation *fused)
{
    if (fusion == NULL || member == NULL || fused == NULL) return false;
    memset(fused, 0, sizeof *fused);
    fused->kind = SDLF_FUSED;
    fused->fused.fusion = fusion;
    return fusion->join(member, fused);
}

/* The first edge with the same content as this one. */
static int first_of(const sdlf_fusion *fusion, int edge)
{
    int first = 0;
    while (fusion->edge[first].from != fusion->edge[edge].from || fusion->edge[first].out != fusion->edge[edge].out)
        first++;
    return first;
}

int64_t sdlf_fusion_split(const sdlf_operation *fused, sdlf_operation *member, unsigned *present, void *memory)
{
    int64_t bytes = 0;
    if (present != NULL) *present = 0;
    if (fused == NULL || member == NULL || present == NULL || fused->kind != SDLF_FUSED) return 0;
    const sdlf_fusion *fusion = fused->fused.fusion;
    memset(member, 0, SDLF_FUSION_MEMBERS * sizeof *member);
    *present = fusion->split(fused, member);
    for (int i = 0; i < fusion->members; i++) member[i].kind = fusion->member[i];
    for (int i = 0; i < fusion->edges; i++) {
        const sdlf_fusion_edge *e = &fusion->edge[i];
        if (!(*present >> e->from & 1) || !(*present >> e->to & 1)) continue;
        sdlf_tensor *made = &member[e->from].out[e->out], *read = &member[e->to].in[e->in];
        if (first_of(fusion, i) == i) {
            if (memory != NULL) made->data = (char *)memory + bytes;
            bytes += (sdlf_tensor_bytes(made) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        read->data = made->data;
    }
    return bytes;
}
