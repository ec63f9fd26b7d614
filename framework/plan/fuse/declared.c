/* SPDX-License-Identifier: MIT */
/* Fusions that calculators declare: see <sdlf/fusion.h>. If a fusion's pattern matches steps of a calculator, the
 * values passed between them have no other readers, and the calculator supports the fused operation, that operation
 * replaces one of the members. */
#include "framework/plan/fuse/declared.h"
#include "framework/operand.h"

typedef fusion_match match;

static bool is_in(const match *m, int member)
{
    return m->variant >> member & 1;
}

/* True if the edge belongs to this variant and joins members that have been found. */
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

/* True if both cover the same bytes of one buffer, whatever their shapes. */
static bool is_same_memory(const sdlf_tensor *a, const sdlf_tensor *b)
{
    return sdlf_tensor_present(a) && sdlf_tensor_present(b) && a->buffer == b->buffer && a->offset == b->offset &&
           sdlf_tensor_bytes(a) == sdlf_tensor_bytes(b);
}

/* Operand i of the member; see sdlf_fusion_share. */
static const sdlf_tensor *operand(const sdlf_plan *plan, const match *m, int member, int i)
{
    return sdlf_operand_at(&plan->steps[m->step[member]].operation, i);
}

/* True if the members found so far are consistent with the edges and shared operands. */
static bool agree(const sdlf_plan *plan, const match *m)
{
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        if (is_found(m, e) && !is_same_memory(written(plan, m, e), read(plan, m, e))) return false;
    }
    for (int i = 0; i < m->fusion->shares; i++) {
        const sdlf_fusion_share *s = &m->fusion->shared[i];
        if (m->step[s->member] < 0 || m->step[s->later] < 0) continue;
        if (s->its >= SDLF_MAX_INPUTS && m->step[s->member] > m->step[s->later]) return false;
        if (!is_same_memory(operand(plan, m, s->member, s->operand), operand(plan, m, s->later, s->its))) return false;
    }
    return true;
}

static bool is_member(const match *m, int step)
{
    for (int i = 0; i < m->fusion->members; i++)
        if (m->step[i] == step) return true;
    return false;
}

/* Assigns the step to that member, if it matches the pattern and the members found so far. */
static bool take(const sdlf_plan *plan, match *m, int member, int step)
{
    const plan_step *taken = &plan->steps[step];
    if (taken->dead || taken->operation.kind != m->fusion->member[member] || taken->operation.algorithm != 0)
        return false;
    if (taken->calculator != m->calculator || is_member(m, step)) return false;
    m->step[member] = step;
    if (agree(plan, m)) return true;
    m->step[member] = -1;
    return false;
}

/* The number of members' operands in this buffer. */
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

/* True if the value passed over the edge is written once, and read only by members, each over its own edge. */
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

/* The position of the fused operation. */
static int place_of(const match *m)
{
    const unsigned early = m->fusion->early;
    int place = -1;
    for (int i = 0; i < m->fusion->members; i++) {
        if (m->step[i] < 0 || (early != 0 && !(early >> i & 1))) continue;
        if (place < 0 || (early != 0) == (m->step[i] < place)) place = m->step[i];
    }
    return place;
}

static bool is_edge(const match *m, int member, int operand)
{
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        bool in = e->to == member && e->in == operand, out = e->from == member && e->out == operand - SDLF_MAX_INPUTS;
        if (is_found(m, e) && (in || out)) return true;
    }
    return false;
}

/* True if a step strictly between the two, other than a member, reads the buffer. */
static bool is_read_between(const sdlf_plan *plan, const match *m, int buffer, int first, int last)
{
    int reader = plan_next_reader(plan, buffer, first);
    while (reader >= 0 && is_member(m, reader)) reader = plan_next_reader(plan, buffer, reader);
    return reader >= 0 && reader < last;
}

/* True if a step strictly between the two, other than a member, writes what the member reads from outside. */
static bool is_written_between(const sdlf_plan *plan, const match *m, int member, int first, int last)
{
    const sdlf_operation *op = &plan->steps[m->step[member]].operation;
    for (int step = first + 1; step < last; step++) {
        for (int i = 0; i < SDLF_MAX_INPUTS && !plan->steps[step].dead && !is_member(m, step); i++) {
            if (!sdlf_tensor_present(&op->in[i]) || is_edge(m, member, i)) continue;
            if (plan_step_writes(&plan->steps[step], op->in[i].buffer)) return true;
        }
    }
    return false;
}

/* True if the member can be computed at `place`: it must not cross a step that produces or changes its inputs, reads
 * its outputs, or still needs the old value of what it updates. */
static bool may_move(const sdlf_plan *plan, const match *m, int member, int place)
{
    const int step = m->step[member];
    const sdlf_operation *op = &plan->steps[step].operation;
    if (is_written_between(plan, m, member, step < place ? step : place, step < place ? place : step)) return false;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (!sdlf_tensor_present(&op->out[i]) || is_edge(m, member, SDLF_MAX_INPUTS + i)) continue;
        bool earlier = step > place && plan_output_is_updated(op, i), later = step < place;
        if (earlier && is_read_between(plan, m, op->out[i].buffer, place, step)) return false;
        if (later && is_read_between(plan, m, op->out[i].buffer, step, place)) return false;
    }
    return true;
}

/* With all members found: true if the values between them are private, and they can be joined. */
static bool is_whole(const sdlf_plan *plan, match *m)
{
    const sdlf_operation *member[SDLF_FUSION_MEMBERS] = {NULL};
    for (int i = 0; i < m->fusion->edges; i++)
        if (is_found(m, &m->fusion->edge[i]) && !is_private(plan, m, &m->fusion->edge[i])) return false;
    for (int i = 0; i < m->fusion->members; i++) {
        if (m->step[i] < 0) continue;
        if (!may_move(plan, m, i, place_of(m))) return false;
        member[i] = &plan->steps[m->step[i]].operation;
    }
    return sdlf_fusion_join(m->fusion, member, &m->fused);
}

/* A buffer that connects the member to one already found, and the step after which it is read; -1:
 * none. */
static int joint_of(const sdlf_plan *plan, const match *m, int member, int *after)
{
    for (int i = 0; i < m->fusion->edges; i++) {
        const sdlf_fusion_edge *e = &m->fusion->edge[i];
        *after = m->step[e->from];
        if (e->to == member && *after >= 0) return written(plan, m, e)->buffer;
    }
    *after = -1;
    for (int i = 0; i < m->fusion->shares; i++) {
        const sdlf_fusion_share *s = &m->fusion->shared[i];
        if (s->later == member && m->step[s->member] >= 0) return operand(plan, m, s->member, s->operand)->buffer;
    }
    return -1;
}

/* Finds the members of the variant from `member` on, by backtracking over the candidates for each. */
static bool find(const sdlf_plan *plan, match *m, int member)
{
    int after = -1;
    while (member < m->fusion->members && !is_in(m, member)) member++;
    if (member == m->fusion->members) return is_whole(plan, m);
    const int buffer = joint_of(plan, m, member, &after);
    if (buffer <= 0) return false; /* 0: the operand is absent */
    for (int i = plan_next_reader(plan, buffer, after); i >= 0; i = plan_next_reader(plan, buffer, i)) {
        if (!take(plan, m, member, i)) continue;
        if (find(plan, m, member + 1)) return true;
        m->step[member] = -1;
    }
    return false;
}

/* Matches the variant with that step as its first member. */
static bool begins_at(const sdlf_plan *plan, match *m, int step)
{
    int first = 0;
    while (!is_in(m, first)) first++;
    for (int i = 0; i < SDLF_FUSION_MEMBERS; i++) m->step[i] = -1;
    return take(plan, m, first, step) && find(plan, m, first + 1);
}

/* True if the operands that a calculator may prepack, which it does in inference, are the same in every run. */
static bool has_constants(const sdlf_plan *plan, const sdlf_operation *fused)
{
    for (int i = 0; i < SDLF_MAX_INPUTS && plan->options.mode == SDLF_INFER; i++) {
        if (!(fused->fused.fusion->type.packed >> i & 1) || !sdlf_tensor_present(&fused->in[i])) continue;
        if (!plan->buffers[fused->in[i].buffer].constant) return false;
    }
    return true;
}

/* True if the calculator supports the fused operation that was found. */
static bool is_taken(const sdlf_plan *plan, const match *m)
{
    return has_constants(plan, &m->fused) && sdlf_operation_check(&m->fused) == SDLF_OK &&
           sdlf_calculator_supports(m->calculator, &m->fused);
}

sdlf_status plan_take_fusion(sdlf_plan *plan, const fusion_match *m)
{
    const int place = place_of(m), forward = plan->forward_steps;
    for (int i = 0; i < m->fusion->members; i++) {
        const int step = m->step[i];
        if (step < 0) continue;
        plan->steps[step].dead = true;
        if (step < forward && place < forward) plan_join_groups(plan, plan->steps[step].node, plan->steps[place].node);
    }
    return plan_replace_operation(plan, place, &m->fused);
}

/* True if the plan's mode excludes the fusion, if an algorithm is requested for one of its kinds by itself, or if ranks
 * add gradients before one of its members reads them. */
static bool is_excluded(const sdlf_plan *plan, const sdlf_fusion *fusion)
{
    if (!(plan->options.mode == SDLF_TRAIN ? fusion->train : fusion->infer)) return true;
    for (int i = 0; i < fusion->members; i++) {
        bool updates = sdlf_operation_class_of(fusion->member[i])->out[0].updated;
        if (updates && plan->options.communicator != NULL) return true;
        if (fusion->yields_to_requests && plan_requested_algorithm(plan, fusion->member[i]) != NULL) return true;
    }
    return false;
}

/* Matches the fusion with that step as a member. */
static bool holds(const sdlf_plan *plan, match *m, int step)
{
    for (int v = 0; m->fusion->variant[v] != 0; v++) {
        m->variant = m->fusion->variant[v];
        for (int i = 0; i < plan->step_count; i++)
            if (begins_at(plan, m, i) && is_member(m, step) && is_taken(plan, m)) return true;
    }
    return false;
}

bool plan_match_fusion(const sdlf_plan *plan, int step, fusion_match *m)
{
    *m = (fusion_match){.calculator = plan->steps[step].calculator};
    const sdlf_fused_slot *declared = m->calculator->type->fusions;
    for (; declared != NULL && declared->fusion != NULL; declared++) {
        m->fusion = declared->fusion;
        if (!is_excluded(plan, m->fusion) && holds(plan, m, step)) return true;
    }
    return false;
}

static sdlf_status fuse_all(sdlf_plan *plan, const sdlf_calculator *calculator, const sdlf_fusion *fusion)
{
    sdlf_status status = SDLF_OK;
    if (is_excluded(plan, fusion)) return SDLF_OK;
    for (int v = 0; fusion->variant[v] != 0; v++) {
        match m = {.fusion = fusion, .calculator = calculator, .variant = fusion->variant[v]};
        for (int i = 0; i < plan->step_count && status == SDLF_OK; i++)
            if (begins_at(plan, &m, i) && is_taken(plan, &m)) status = plan_take_fusion(plan, &m);
    }
    return status;
}

/* True if step i is the first of its calculator. */
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
