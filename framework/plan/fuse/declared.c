/* SPDX-License-Identifier: MIT */
/* Groups of operations that calculators take as one, as they declare it: see <sdlf/fusion.h>. Where a fusion's pattern is
 * found among a calculator's steps, what passes between them is nobody else's, and the calculator takes the fused
 * operation, that stands in the place of the last of them. */
#include <sdlf/fusion.h>

#include "framework/plan/passes.h"

typedef struct match {
    const sdlf_fusion *fusion;
    unsigned variant;
    int step[SDLF_FUSION_MEMBERS]; /* -1: not found (yet), or not in this variant */
} match;

static bool is_in(const match *m, int member)
{
    return m->variant >> member & 1;
}

/* Is the edge one of this variant's, between members that have been found? */
static bool is_found(const match *m, const sdlf_fusion_edge *e)
{
    return is_in(m, e->from) && is_in(m, e->to) && m->step[e->from] >= 0 && m->step[e->to] >= 0;
}

static const sdlf_tensor *written(const sdlf_plan *plan, const match *m, const sdlf_fusion_edge *e)
{
    return &plan->steps[m->step[e->from]].operation.out[e->out];
}

static const sdlf_tensor *read(const sdlf_plan *plan, const match *m, const sdlf_fusion_edge *e)
{
    return &plan->steps[m->step[e->to]].operation.in[e->in];
}

/* One place in one buffer, whatever the shapes. */
static bool is_same_memory(const sdlf_tensor *a, const sdlf_tensor *b)
{
    return sdlf_tensor_present(a) && sdlf_tensor_present(b) && a->buffer == b->buffer && a->offset == b->offset &&
           sdlf_tensor_bytes(a) == sdlf_tensor_bytes(b);
}

/* Take the step as that member, if it is what the pattern wants beside what has been found. */
static bool take(const sdlf_plan *plan, match *m, int member, int step)
{
    const plan_step *taken = &plan->steps[step];
    if (taken->dead || taken->operation.kind != m->fusion->member[member] || taken->operation.algorithm != 0)
        return false;
    for (int i = 0; i < m->fusion->members; i++)
        if (m->step[i] == step || (m->step[i] >= 0 && plan->steps[m->step[i]].calculator != taken->calculator))
            return false;
    m->step[member] = step;
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        if (!is_found(m, e) || is_same_memory(written(plan, m, e), read(plan, m, e))) continue;
        m->step[member] = -1;
        return false;
    }
    return true;
}

/* The first step behind it that is the member at the other end of the edge. */
static bool follow(const sdlf_plan *plan, match *m, const sdlf_fusion_edge *e)
{
    int buffer = written(plan, m, e)->buffer;
    for (int i = plan_next_reader(plan, buffer, m->step[e->from]); i >= 0; i = plan_next_reader(plan, buffer, i))
        if (take(plan, m, e->to, i)) return true;
    return false;
}

/* How many operands of members are this buffer. */
static int count_reads(const sdlf_plan *plan, const match *m, int buffer)
{
    int count = 0;
    for (int i = 0; i < m->fusion->members; i++) {
        for (int j = 0; m->step[i] >= 0 && j < SDLF_MAX_INPUTS; j++) {
            const sdlf_tensor *in = &plan->steps[m->step[i]].operation.in[j];
            count += sdlf_tensor_present(in) && in->buffer == buffer;
        }
    }
    return count;
}

/* Is what passes over the edge written once, and read by members only, each over an edge of its own? */
static bool is_private(const sdlf_plan *plan, const match *m, const sdlf_fusion_edge *edge)
{
    const sdlf_tensor *made = written(plan, m, edge);
    int edges = 0;
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        edges += is_found(m, e) && e->from == edge->from && e->out == edge->out;
    }
    return plan->buffers[made->buffer].kind == BUFFER_ARENA && plan_covers_buffer(plan, made) &&
           plan_count_writers(plan, made->buffer) == 1 && plan_count_readers(plan, made->buffer) == edges &&
           count_reads(plan, m, made->buffer) == edges;
}

/* The variant whose first member is that step. */
static bool find(const sdlf_plan *plan, match *m, int step)
{
    for (int i = 0; i < SDLF_FUSION_MEMBERS; i++) m->step[i] = -1;
    int first = 0;
    while (!is_in(m, first)) first++;
    if (!take(plan, m, first, step)) return false;
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        if (!is_in(m, e->from) || !is_in(m, e->to) || m->step[e->to] >= 0) continue;
        if (m->step[e->from] < 0 || !follow(plan, m, e)) return false;
    }
    for (int i = 0; i < m->fusion->members; i++)
        if (is_in(m, i) && m->step[i] < 0) return false;
    for (int i = 0; i < m->fusion->edges; i++)
        if (is_found(m, &m->fusion->edge[i]) && !is_private(plan, m, &m->fusion->edge[i])) return false;
    return true;
}

/* What a calculator may make ready once, is it the same in every run? */
static bool has_constants(const sdlf_plan *plan, const sdlf_operation *fused)
{
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(fused->fused.fusion->type.packed >> i & 1) || !sdlf_tensor_present(&fused->in[i])) continue;
        if (!plan->buffers[fused->in[i].buffer].constant) return false;
    }
    return true;
}

static sdlf_status fuse(sdlf_plan *plan, const match *m)
{
    const sdlf_operation *member[SDLF_FUSION_MEMBERS] = {NULL};
    sdlf_operation fused;
    int last = -1;
    for (int i = 0; i < m->fusion->members; i++) {
        if (m->step[i] < 0) continue;
        member[i] = &plan->steps[m->step[i]].operation;
        if (m->step[i] > last) last = m->step[i];
    }
    if (!sdlf_fusion_join(m->fusion, member, &fused) || !has_constants(plan, &fused)) return SDLF_OK;
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[last].calculator, &fused))
        return SDLF_OK;
    for (int i = 0; i < m->fusion->members; i++) {
        if (m->step[i] < 0) continue;
        plan->steps[m->step[i]].dead = true;
        plan_join_groups(plan, plan->steps[m->step[i]].node, plan->steps[last].node);
    }
    return plan_replace_operation(plan, last, &fused);
}

/* Is an algorithm requested for one of the fusion's kinds, which is for the operation by itself? */
static bool is_requested_apart(const sdlf_plan *plan, const sdlf_fusion *fusion)
{
    for (int i = 0; i < fusion->members && fusion->yields_to_requests; i++)
        if (plan_requested_algorithm(plan, fusion->member[i]) != NULL) return true;
    return false;
}

static sdlf_status fuse_all(sdlf_plan *plan, const sdlf_calculator *calculator, const sdlf_fusion *fusion)
{
    const bool trains = plan->options.mode == SDLF_TRAIN;
    sdlf_status status = SDLF_OK;
    if (!(trains ? fusion->train : fusion->infer) || is_requested_apart(plan, fusion)) return SDLF_OK;
    for (int v = 0; fusion->variant[v] != 0; v++) {
        match m = {.fusion = fusion, .variant = fusion->variant[v]};
        for (int i = 0; i < plan->step_count && status == SDLF_OK; i++)
            if (plan->steps[i].calculator == calculator && find(plan, &m, i)) status = fuse(plan, &m);
    }
    return status;
}

/* Is step i the first of its calculator's? */
static bool is_first(const sdlf_plan *plan, int i)
{
    int first = 0;
    while (plan->steps[first].calculator != plan->steps[i].calculator) first++;
    return first == i;
}

sdlf_status plan_fuse_declared(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) {
        if (!is_first(plan, i)) continue;
        const sdlf_calculator *calculator = plan->steps[i].calculator;
        const sdlf_fused_slot *declared = calculator->type->fusions;
        for (; declared != NULL && declared->fusion != NULL && status == SDLF_OK; declared++)
            status = fuse_all(plan, calculator, declared->fusion);
    }
    return status;
}
