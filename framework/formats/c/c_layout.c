/* SPDX-License-Identifier: MIT */
/* Memory planning: each value is in an argument, in an array of weights, or in the scratch memory of its type, at the
 * lowest offset that is free throughout its lifetime. */
#include "framework/formats/c/c_export.h"

#include <stdlib.h>

#include "framework/input_layer.h"

static c_value *root_of(c_export *e, const sdlf_tensor *tensor)
{
    return &e->value[c_root(e, tensor->buffer)];
}

/* Removes steps whose outputs have no reader; marks which values are read. */
static void drop_unread(c_export *e)
{
    int kept = 0;
    for (int i = 0; i < e->output_count; i++) e->value[c_root(e, c_output_value(e->output[i]))].read = true;
    for (int s = e->step_count - 1; s >= 0; s--) {
        sdlf_operation *o = &e->step[s].operation;
        bool wanted = false;
        for (int i = 0; i < SDLF_MAX_OUTPUTS; i++)
            wanted |= sdlf_tensor_present(&o->out[i]) && root_of(e, &o->out[i])->read;
        if (!wanted) e->step[s].layer = -1;
        for (int i = 0; wanted && i < SDLF_MAX_INPUTS; i++)
            if (sdlf_tensor_present(&o->in[i])) root_of(e, &o->in[i])->read = true;
    }
    for (int s = 0; s < e->step_count; s++)
        if (e->step[s].layer >= 0) e->step[kept++] = e->step[s];
    e->step_count = kept;
}

static void use(c_value *value, int step)
{
    if (value->first < 0) value->first = step;
    value->last = step;
}

static void find_lives(c_export *e)
{
    for (int s = 0; s < e->step_count; s++) {
        sdlf_operation *o = &e->step[s].operation;
        for (int i = 0; i < SDLF_MAX_INPUTS; i++)
            if (sdlf_tensor_present(&o->in[i])) use(root_of(e, &o->in[i]), s);
        for (int i = 0; i < SDLF_MAX_OUTPUTS; i++)
            if (sdlf_tensor_present(&o->out[i])) use(root_of(e, &o->out[i]), s);
    }
}

static void place_arguments(c_export *e)
{
    for (int i = 0; i < e->model->layer_count; i++) {
        if (!e->state[i].live || c_at(e, i)->layer.type != &sdlf_input_layer_class) continue;
        c_value *value = &e->value[c_output_value((sdlf_node){i, 0})];
        value->kind = C_INPUT;
        value->index = e->input_count++;
    }
    for (int i = 0; i < e->output_count; i++) {
        c_value *root = &e->value[c_root(e, c_output_value(e->output[i]))];
        root->last = e->step_count;
        if (root->kind != C_NOWHERE) continue; /* an input, a weight, or given twice: copied at the end */
        root->kind = C_OUTPUT;
        root->index = i;
    }
}

/* True if step s may write its output over input i: no later step reads it, and this one only in order. */
static bool may_alias(c_export *e, int s, int i)
{
    const sdlf_operation *o = &e->step[s].operation;
    if (!sdlf_tensor_present(&o->in[i]) || !c_is_whole(e, &o->in[i])) return false;
    c_value *input = root_of(e, &o->in[i]), *output = root_of(e, &o->out[0]);
    if (input->kind != C_NOWHERE || input->last != s || input->count != output->count || input->dtype != output->dtype)
        return false;
    for (int k = 0; k < SDLF_MAX_INPUTS; k++)
        if (sdlf_tensor_present(&o->in[k]) && root_of(e, &o->in[k]) == input && !c_is_whole(e, &o->in[k])) return false;
    return true;
}

static void join_values(c_export *e)
{
    for (int s = 0; s < e->step_count; s++) {
        const sdlf_operation *o = &e->step[s].operation;
        if (!c_runs_in_place(o->kind) || !c_is_whole(e, &o->out[0])) continue;
        c_value *value = root_of(e, &o->out[0]);
        for (int i = 0; i < 3 && value->kind == C_NOWHERE && value->first == s; i++) {
            if (!may_alias(e, s, i)) continue;
            c_value *input = root_of(e, &o->in[i]);
            input->last = value->last;
            value->root = c_root(e, o->in[i].buffer);
            break;
        }
    }
}

/* Values in scratch memory that are live at a step or later. */
typedef struct in_use {
    const c_value **value;
    int count;
} in_use;

static void forget_before(in_use *used, int step)
{
    int kept = 0;
    for (int i = 0; i < used->count; i++)
        if (used->value[i]->last >= step) used->value[kept++] = used->value[i];
    used->count = kept;
}

/* -1 if the value, at its present offset, overlaps no live value; otherwise the end of the one it overlaps. */
static int64_t conflict(const in_use *used, const c_value *value)
{
    for (int i = 0; i < used->count; i++) {
        const c_value *other = used->value[i];
        if (other->dtype != value->dtype) continue;
        if (other->offset < value->offset + value->count && value->offset < other->offset + other->count)
            return other->offset + other->count;
    }
    return -1;
}

static void place(c_export *e, in_use *used, c_value *value)
{
    int64_t at;
    while ((at = conflict(used, value)) >= 0) value->offset = at;
    value->kind = C_SCRATCH;
    used->value[used->count++] = value;
    int64_t *all = &e->scratch[value->dtype];
    if (value->offset + value->count > *all) *all = value->offset + value->count;
}

void c_lay_out(c_export *e)
{
    drop_unread(e);
    find_lives(e);
    place_arguments(e);
    join_values(e);
    in_use used = {.value = malloc((size_t)e->value_count * sizeof *used.value)};
    if (used.value == NULL) c_no_memory(e);
    for (int s = 0; s < e->step_count && c_ok(e); s++) {
        forget_before(&used, s);
        for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
            const sdlf_tensor *out = &e->step[s].operation.out[i];
            c_value *value = sdlf_tensor_present(out) ? root_of(e, out) : NULL;
            if (value != NULL && value->kind == C_NOWHERE && value->read) place(e, &used, value);
        }
    }
    free(used.value);
}
