/* SPDX-License-Identifier: MIT */
/* Fusion: a group of operations that a calculator computes as one.
 *
 * A fusion is a constant table: the pattern of ordinary operations that it replaces, and the class of the fused
 * operation. A calculator declares it beside its kernel (sdlf_calculator_class.fusions). Plans search for the pattern
 * and offer the fused operation to the calculators that declare it; on others the operations stay separate. `split`
 * defines what the fused operation computes as a sequence of ordinary operations: the reference calculator runs that,
 * and tests compare every calculator's kernel with it.
 *
 * The fused operation has the kind SDLF_FUSED. Its operands are in the order of the fusion's class. Its options, known
 * only to the fusion, are bytes in the operation: copy them in and out (memcpy), or access them through a type that may
 * alias any other.
 *
 * Threads: tables are constant: all functions may be called from any thread.
 * Ownership: tables belong to the code that declares them and must live until the process ends; operations are values.
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

/* An intermediate: a member's out[out] that another member reads as in[in]; nothing else reads or writes it. */
typedef struct sdlf_fusion_edge {
    int from, out, to, in;
} sdlf_fusion_edge;

/* An operand of a member that is the same memory as one of a later member's, whatever the shapes. Index i means in[i],
 * SDLF_MAX_INPUTS + i means out[i]: if the later member updates it, the earlier one must read it before. */
typedef struct sdlf_fusion_share {
    int member, operand, later, its;
} sdlf_fusion_share;

struct sdlf_fusion {
    /* The class of the fused operation; its `check` also sees the options. */
    sdlf_operation_class type;

    /* The operations replaced, in order of dependency, with their intermediates and shared operands. In a variant every
     * member but the first has an edge to, or shares an operand with, an earlier one. */
    int members, edges, shares;
    sdlf_operation_kind member[SDLF_FUSION_MEMBERS];
    sdlf_fusion_edge edge[SDLF_FUSION_EDGES];
    sdlf_fusion_share shared[SDLF_FUSION_SHARES];
    /* The subsets of members that plans search for (bit i: member i), in this order; 0 ends the list. */
    unsigned variant[SDLF_FUSION_VARIANTS + 1];

    /* The fused operation takes the position of the first of these members (bits as above); 0: of the last of all. */
    unsigned early;

    bool infer, train; /* the modes in which plans search for it */
    /* Do not fuse if an algorithm is requested for the kind of one of the members, since requests are for that kind. */
    bool yields_to_requests;

    /* Set the operands and options of the fused operation from its members (NULL: not in this variant); all but kind
     * and fusion is zero before. Returns false if their options do not allow fusion. `check` verifies shapes and
     * dtypes. An intermediate is one memory, but may be read under another shape, which `join` allows or rejects. */
    bool (*join)(const sdlf_operation *const *member, sdlf_operation *fused);
    /* The inverse: describe the members of a fused operation that passed its check. Returns which are present.
     * Intermediates have no memory. */
    unsigned (*split)(const sdlf_operation *fused, sdlf_operation *member);
    void *reserved[4]; /* zero; reserved for new members */
};

/* The distinct fusions declared by registered calculators, by index (NULL past the end) and by name (NULL: unknown). */
const sdlf_fusion *sdlf_fusion_at(int index);
const sdlf_fusion *sdlf_fusion_find(const char *name);

/* Make the fused operation of these members (fusion->join). Returns false if there is none. */
bool sdlf_fusion_join(const sdlf_fusion *fusion, const sdlf_operation *const *member, sdlf_operation *fused);

/* Write the members (at most SDLF_FUSION_MEMBERS) that are equivalent to a fused operation; *present says which exist.
 * Intermediates are placed in `memory` one after the other, 64-byte aligned, or have no memory if it is NULL. Returns
 * the bytes they need. */
int64_t sdlf_fusion_split(const sdlf_operation *fused, sdlf_operation *member, unsigned *present, void *memory);

#ifdef __cplusplus
}
#endif
#endif
