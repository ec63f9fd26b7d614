/* SPDX-License-Identifier: MIT */
/* Fusions: their list, and the conversion between members and a fused operation. */
#include <sdlf/calculator.h>
#include <sdlf/fusion.h>

#include <string.h>

#include "framework/fusion.h"
#include "framework/operand.h"

enum { ALIGNMENT = 64 };

/* True if a class before this one, or an entry before this one, has the fusion too. */
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

static bool is_kind(sdlf_operation_kind kind)
{
    return sdlf_operation_class_of(kind) != NULL && kind != SDLF_FUSED;
}

static const char *members_fault(const sdlf_fusion *fusion)
{
    if (fusion->members < 1 || fusion->members > SDLF_FUSION_MEMBERS) return "it has no members, or too many";
    if (fusion->edges < 0 || fusion->edges > SDLF_FUSION_EDGES) return "it has too many edges";
    if (fusion->shares < 0 || fusion->shares > SDLF_FUSION_SHARES) return "it has too many shared operands";
    for (int i = 0; i < fusion->members; i++)
        if (!is_kind(fusion->member[i])) return "a member is of no kind of ordinary operations";
    for (int i = 0; i < fusion->edges; i++) {
        const sdlf_fusion_edge *e = &fusion->edge[i];
        if (e->from < 0 || e->from >= e->to || e->to >= fusion->members) return "an edge joins no two members in order";
        if (e->out < 0 || e->out >= SDLF_MAX_OUTPUTS || e->in < 0 || e->in >= SDLF_MAX_INPUTS)
            return "an edge has no operand at one of its ends";
    }
    for (int i = 0; i < fusion->shares; i++) {
        const sdlf_fusion_share *s = &fusion->shared[i];
        if (s->member < 0 || s->member >= s->later || s->later >= fusion->members)
            return "a shared operand is of no two members in order";
        if (s->operand < 0 || s->operand >= SDLF_MAX_OPERANDS || s->its < 0 || s->its >= SDLF_MAX_OPERANDS)
            return "a shared operand is none of its member's";
    }
    return NULL;
}

const char *fusion_fault(const sdlf_fusion *fusion)
{
    if (fusion->type.name == NULL || fusion->type.check == NULL) return "its class has no name, or no check";
    if (fusion->join == NULL || fusion->split == NULL) return "join or split is NULL";
    const char *fault = members_fault(fusion);
    if (fault != NULL) return fault;
    if (fusion->variant[0] == 0 || fusion->variant[SDLF_FUSION_VARIANTS] != 0)
        return "it has no variants, or nothing ends their list";
    for (int v = 0; fusion->variant[v] != 0; v++) {
        if (fusion->variant[v] >> fusion->members != 0) return "a variant has members that do not exist";
        if (fusion->early != 0 && (fusion->early & fusion->variant[v]) == 0)
            return "a variant has none of the members in whose place it stands (early)";
    }
    for (size_t i = 0; i < sizeof fusion->reserved / sizeof fusion->reserved[0]; i++)
        if (fusion->reserved[i] != NULL) return "reserved members must be zero";
    return NULL;
}

static bool is_present(const sdlf_fusion_edge *edge, unsigned present)
{
    return (present >> edge->from & 1) && (present >> edge->to & 1);
}

/* The first edge of the variant that carries the same tensor as this one. */
static int first_of(const sdlf_fusion *fusion, int edge, unsigned present)
{
    const sdlf_fusion_edge *e = fusion->edge;
    int first = 0;
    while (!is_present(&e[first], present) || e[first].from != e[edge].from || e[first].out != e[edge].out) first++;
    return first;
}

int64_t sdlf_fusion_split(const sdlf_operation *fused, sdlf_operation *member, unsigned *present, void *memory)
{
    int64_t bytes = 0;
    if (present != NULL) *present = 0;
    const sdlf_fusion *fusion = fused != NULL && fused->kind == SDLF_FUSED ? fused->fused.fusion : NULL;
    if (fusion == NULL || member == NULL || present == NULL) return 0;
    memset(member, 0, SDLF_FUSION_MEMBERS * sizeof *member);
    *present = fusion->split(fused, member);
    for (int i = 0; i < fusion->members; i++) member[i].kind = fusion->member[i];
    for (int i = 0; i < fusion->edges; i++) {
        const sdlf_fusion_edge *e = &fusion->edge[i];
        if (!is_present(e, *present)) continue;
        sdlf_tensor *made = &member[e->from].out[e->out], *read = &member[e->to].in[e->in];
        if (first_of(fusion, i, *present) == i) {
            if (memory != NULL) made->data = (char *)memory + bytes;
            bytes += (sdlf_tensor_bytes(made) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        read->data = made->data;
    }
    return bytes;
}
