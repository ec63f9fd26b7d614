/* SPDX-License-Identifier: MIT */
/* Fusion: a group of operations that a calculator computes as one.
 *
 * A fusion is a constant table: the pattern of ordinary operations that it stands for, and the class of the operation
 * that takes their place. A calculator declares it beside its kernel (sdlf_calculator_class.fusions). Plans look for the
 * pattern and offer the fused operation to the calculators that declare it; whoever lacks it keeps the parts. `split`
 * says in ordinary operations what the fused one computes: the reference calculator runs these, and tests hold every
 * calculator's kernel against them.
 *
 * The fused operation is of the kind SDLF_FUSED. Its operands are in the order of the fusion's class, and its options,
 * which only the fusion knows, are bytes within the operation, copied into and out of it (memcpy), or accessed through a
 * type that may alias any other.
 *
 * Threads: tables are constant: all functions may be called from any thread.
 * Ownership: tables belong to whoever declares them, and stay for as long as the process lives; operations are values.
 * Errors: none; a fused operation is checked like any other (sdlf_operation_check). */
#ifndef SDLF_FUSION_H
#define SDLF_FUSION_H

#include <sdlf/operation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SDLF_FUSION_MEMBERS  8
#define SDLF_FUSION_EDGES    8
#define SDLF_FUSION_SHARES   8
#define SDLF_FUSION_VARIANTS 8

/* A member's operand out[out] that another one reads as in[in]; nothing else reads or writes it. */
typedef struct sdlf_fusion_edge {
    int from, out, to, in;
} sdlf_fusion_edge;

/* An operand of a member that is the same memory as one of a later member's, whatever the shapes: in[i] is number i, and
 * out[i] number SDLF_MAX_INPUTS + i: what the later one updates is read by the other before. */
typedef struct sdlf_fusion_share {
    int member, operand, later, its;
} sdlf_fusion_share;

struct sdlf_fusion {
    /* Of the fused operation; its `check` sees the options, too. */
    sdlf_operation_class type;

    /* The operations that it stands for, each behind those that it needs, what passes between them, and what they have
     * in common. In a variant each but the first has one or the other with an earlier one. */
    int members, edges, shares;
    sdlf_operation_kind member[SDLF_FUSION_MEMBERS];
    sdlf_fusion_edge edge[SDLF_FUSION_EDGES];
    sdlf_fusion_share shared[SDLF_FUSION_SHARES];
    /* The sets of members that plans look for (bit i: member i), in this order; 0 ends the list. */
    unsigned variant[SDLF_FUSION_VARIANTS + 1];

    /* The fused operation takes the place of the first of these members; 0: of the last of all. */
    unsigned early;

    bool infer, train; /* the modes in which plans look for it */
    /* Where an algorithm is requested for one of its kinds of operations, the parts stay: the request is for them. */
    bool yields_to_requests;

    /* Fill in operands and options of the fused operation, all zero but for kind and fusion, from its members (NULL:
     * not in this variant). False: their options do not allow it. Shapes and dtypes of operands are left to `check`;
     * what passes between members is the same memory, but may be read in another shape, which `join` allows or not. */
    bool (*join)(const sdlf_operation *const *member, sdlf_operation *fused);
    /* The inverse: the members of a fused operation that has passed its check; returns which there are. What passes
     * between them is described without memory. */
    unsigned (*split)(const sdlf_operation *fused, sdlf_operation *member);
    void *reserved[4]; /* zero: room for members to come */
};

/* Every fusion that a registered calculator declares, once; NULL past the end. And the one of that name, or NULL. */
const sdlf_fusion *sdlf_fusion_at(int index);
const sdlf_fusion *sdlf_fusion_find(const char *name);

/* The fused operation of these members (fusion->join); false: there is none. */
bool sdlf_fusion_join(const sdlf_fusion *fusion, const sdlf_operation *const *member, sdlf_operation *fused);

/* The members (at most SDLF_FUSION_MEMBERS) that stand for a fused operation; *present says which there are. What
 * passes between them lies in `memory`, one behind the other, 64-byte aligned; NULL: it has no memory. Returns the bytes
 * that it takes. */
int64_t sdlf_fusion_split(const sdlf_operation *fused, sdlf_operation *member, unsigned *present, void *memory);

#ifdef __cplusplus
}
#endif
#endif
