/* Where each value lies: in an argument, or in the scratch memory, at the lowest place that is free throughout its life. */
#include "framework/formats/c/c_export.h"

#include "layers/input.h"

static int root_of(const c_export *e, int layer)
{
    while (e->value[layer].root != layer) layer = e->value[layer].root;
    return layer;
}

/* Layers without statements are their input's memory. */
static void find_roots(c_export *e)
{
    for (int i = 0; i < e->model->layer_count; i++) {
        const c_layer *known = c_layer_find(c_at(e, i)->layer.type->name);
        bool view = e->value[i].folded || (known != NULL && known->print == NULL);
        e->value[i].root = e->value[i].live && view ? root_of(e, c_at(e, i)->inputs[0].layer) : i;
        e->value[i].last = i;
    }
    for (int i = 0; i < e->model->layer_count; i++) {
        for (int k = 0; e->value[i].live && k < c_at(e, i)->input_count; k++)
            e->value[root_of(e, c_at(e, i)->inputs[k].layer)].last = i;
    }
}

static void place_arguments(c_export *e)
{
    for (int i = 0; i < e->model->layer_count; i++) {
        if (!e->value[i].live || c_at(e, i)->layer.type != &sdlf_input_layer_class) continue;
        e->value[i].kind = C_INPUT;
        e->value[i].index = e->input_count++;
        e->value[i].last = e->model->layer_count;
    }
    for (int i = 0; i < e->output_count; i++) {
        c_value *root = &e->value[root_of(e, e->output[i].layer)];
        root->last = e->model->layer_count;
        if (root->kind != C_NOWHERE) continue; /* an input, or given twice: copied at the end */
        root->kind = C_OUTPUT;
        root->index = i;
    }
}

/* What a layer writes over its input, which nobody reads afterwards, is that input's memory too. */
static void join_roots(c_export *e)
{
    for (int i = 0; i < e->model->layer_count; i++) {
        const c_layer *known = c_layer_find(c_at(e, i)->layer.type->name);
        c_value *value = &e->value[i];
        if (!value->live || value->root != i || value->kind != C_NOWHERE || known == NULL || !known->over_input)
            continue;
        int root = root_of(e, c_at(e, i)->inputs[0].layer);
        c_value *input = &e->value[root];
        if (input->kind != C_NOWHERE || input->last != i || input->count != value->count) continue;
        value->root = root;
        input->last = value->last;
    }
}

/* Does [offset, offset + count) meet nothing that lives when `layer` is made? Else the end of what it meets. */
static int64_t conflict(const c_export *e, int layer, int64_t offset)
{
    const c_value *value = &e->value[layer];
    for (int i = 0; i < layer; i++) {
        const c_value *other = &e->value[i];
        if (!other->live || other->root != i || other->kind != C_SCRATCH || other->last < layer) continue;
        if (other->offset < offset + value->count && offset < other->offset + other->count)
            return other->offset + other->count;
    }
    return -1;
}

void c_lay_out(c_export *e)
{
    find_roots(e);
    place_arguments(e);
    join_roots(e);
    for (int i = 0; i < e->model->layer_count; i++) {
        c_value *value = &e->value[i];
        if (!value->live || value->root != i || value->kind != C_NOWHERE) continue;
        int64_t at;
        while ((at = conflict(e, i, value->offset)) >= 0) value->offset = at;
        value->kind = C_SCRATCH;
        if (value->offset + value->count > e->scratch) e->scratch = value->offset + value->count;
    }
}
