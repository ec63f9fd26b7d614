/* SPDX-License-Identifier: MIT */
/* Subgraphs of nodes: If with a condition known during import, Loop with a known trip count, and Scan.
 * Subgraphs are inlined in the place of the node: one branch of If, and the body of Loop and Scan
 * unrolled. */
#include <string.h>

#include "framework/formats/onnx/import/compose.h"
#include "framework/formats/text.h"

enum { MOST_BRANCHES = 4096, MOST_DEEP = 8, MOST_TURNS = 1024, FOREVER = 1 << 24 };

/* ---- before conversion: reading all subgraphs and counting their names ---- */

static bool holds_graphs(const Onnx__NodeProto *node)
{
    return node->op_type != NULL && (strcmp(node->op_type, "If") == 0 || strcmp(node->op_type, "Loop") == 0 ||
                                     strcmp(node->op_type, "Scan") == 0);
}

static sdlf_status read_all(onnx_import *import, Onnx__NodeProto *const *node, int count, int depth)
{
    for (int n = 0; n < count; n++) {
        if (!holds_graphs(node[n])) continue;
        for (size_t i = 0; i < node[n]->n_attribute; i++) {
            const Onnx__AttributeProto *attribute = node[n]->attribute[i];
            if (attribute->g.len == 0) continue;
            if (depth == MOST_DEEP || import->branch_count == MOST_BRANCHES)
                return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: graphs inside of nodes: at most %d, %d deep, are read",
                                 import->file->path, MOST_BRANCHES, MOST_DEEP);
            onnx_branch branch = {.attribute = attribute};
            sdlf_status status = onnx_file_read_branch(import->file, attribute->g.data, attribute->g.len, &branch);
            if (status != SDLF_OK) return status;
            if (import->branch == NULL)
                import->branch = onnx_arena_array(&import->file->arena, MOST_BRANCHES, sizeof *import->branch);
            if (import->branch == NULL)
                return sdlf_fail_context(read_budget_fail(&import->file->budget), "%s", import->file->path);
            import->branch[import->branch_count++] = branch;
            status = read_all(import, branch.node, branch.node_count, depth + 1);
            if (status != SDLF_OK) return status;
        }
    }
    return SDLF_OK;
}

sdlf_status onnx_branches_read(onnx_import *import)
{
    return read_all(import, import->file->node, import->file->node_count, 0);
}

size_t onnx_branches_names(const onnx_import *import)
{
    size_t count = 0;
    for (int b = 0; b < import->branch_count; b++) {
        const onnx_branch *branch = &import->branch[b];
        count += (size_t)branch->initializer_count + (size_t)branch->input_count + (size_t)branch->output_count;
        for (int i = 0; i < branch->node_count; i++) count += branch->node[i]->n_input + branch->node[i]->n_output;
    }
    return count;
}

/* Values read inside are kept: a loop may read them again, and the branch taken is not known yet. */
static bool prevent_fusion(onnx_import *import, const char *name)
{
    onnx_value *value = name != NULL && name[0] != '\0' ? onnx_value_named(import, name) : NULL;
    if (name == NULL || name[0] == '\0') return true;
    if (value == NULL) return false;
    value->readers += 2; /* more than one: prevents the fusion of a following node */
    value->unread += FOREVER;
    return true;
}

bool onnx_branches_link(onnx_import *import)
{
    bool ok = true;
    for (int b = 0; b < import->branch_count; b++) {
        const onnx_branch *branch = &import->branch[b];
        for (int n = 0; n < branch->node_count; n++)
            for (size_t i = 0; i < branch->node[n]->n_input; i++)
                ok = ok && prevent_fusion(import, branch->node[n]->input[i]);
        for (int i = 0; i < branch->output_count; i++) ok = ok && prevent_fusion(import, branch->output[i]->name);
    }
    return ok;
}

/* ---- one subgraph ---- */

static const onnx_branch *branch_of(onnx_context *c, const char *name)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, name);
    for (int i = 0; i < c->import->branch_count && attribute != NULL; i++)
        if (c->import->branch[i].attribute == attribute) return &c->import->branch[i];
    onnx_wrong(c, "attribute '%s' has no graph", name);
    return NULL;
}

static onnx_value *inside(onnx_context *c, const Onnx__ValueInfoProto *info)
{
    onnx_value *value = info->name != NULL ? onnx_value_named(c->import, info->name) : NULL;
    if (value == NULL) onnx_wrong(c, "a value inside of its graph has no name");
    return value;
}

/* Makes a value an alias of another. */
static void bind(onnx_value *to, const onnx_value *from)
{
    to->kind = from->kind;
    to->tensor = from->tensor;
    to->flow = from->flow;
    to->narrow = from->narrow;
    to->counted = from->counted;
    to->integers = NULL;
    onnx_block_hold(from->kind == ONNX_CONSTANT ? from->tensor.block : NULL);
}

static void forget(onnx_context *c, const char *name)
{
    onnx_value *value = name[0] != '\0' ? onnx_value_named(c->import, name) : NULL;
    if (value == NULL) return;
    value->kind = ONNX_UNMADE;
    value->flow.node.layer = -1;
    value->narrow = ONNX_UNDEFINED;
    value->counted.is = false;
    value->integers = NULL;
}

static void convert_inside(onnx_context *c, const onnx_branch *branch)
{
    for (int i = 0; i < branch->initializer_count && onnx_ok(c); i++) {
        onnx_value *value = onnx_value_named(c->import, branch->initializer[i].name);
        if (value == NULL) onnx_no_memory(c);
        if (!onnx_ok(c)) return;
        value->kind = ONNX_CONSTANT;
        value->tensor = branch->initializer[i];
        value->flow.node.layer = -1;
        value->integers = NULL;
    }
    for (int n = 0; n < branch->node_count; n++)
        for (size_t i = 0; i < branch->node[n]->n_output; i++) forget(c, branch->node[n]->output[i]);
    for (int n = 0; n < branch->node_count && onnx_ok(c); n++) {
        sdlf_status status = onnx_import_inner(c->import, branch->node[n], c->position);
        if (status != SDLF_OK) c->status = status;
    }
}

static void give_value(onnx_context *c, int output, const onnx_value *value)
{
    if (!onnx_ok(c) || output >= c->output_count || c->output[output] == NULL) return;
    if (value->kind == ONNX_UNMADE) {
        onnx_wrong(c, "'%s', of its graph, is made by no node of it", text_show(value->name).text);
        return;
    }
    bind(c->output[output], value);
}

/* ---- If ---- */

static void convert_if(onnx_context *c)
{
    bool condition = onnx_known_number(c, 0, 0) > 0;
    const onnx_branch *branch = onnx_ok(c) ? branch_of(c, condition ? "then_branch" : "else_branch") : NULL;
    if (!onnx_ok(c)) return;
    if (branch->output_count != c->output_count)
        onnx_wrong(c, "its branch has %d outputs, and it %d", branch->output_count, c->output_count);
    convert_inside(c, branch);
    for (int i = 0; i < c->output_count && onnx_ok(c); i++) {
        const onnx_value *value = inside(c, branch->output[i]);
        if (onnx_ok(c)) give_value(c, i, value);
    }
}

/* ---- Loop ---- */

static void bind_number(onnx_context *c, onnx_value *value, onnx_type type, int64_t number)
{
    onnx_tensor tensor = onnx_new_tensor(c, type, SDLF_SCALAR);
    if (!onnx_ok(c)) return;
    memcpy((void *)tensor.data, &number, onnx_type_size(type));
    onnx_block_hold(tensor.block);
    value->kind = ONNX_CONSTANT;
    value->tensor = tensor;
    value->flow.node.layer = -1;
    value->integers = NULL;
}

/* As a flow with one more axis at `axis`, which may count from the end of the resulting axes. */
static onnx_flow row_of(onnx_context *c, onnx_value *value, int64_t axis)
{
    if (value->kind == ONNX_CONSTANT && value->flow.node.layer < 0)
        value->flow = onnx_constant_layer(c, &value->tensor);
    if (value->kind == ONNX_UNMADE)
        onnx_wrong(c, "'%s', of its graph, is made by no node of it", text_show(value->name).text);
    onnx_flow x = value->flow;
    if (!onnx_ok(c) || x.shape.rank == SDLF_MAX_RANK) return x;
    int batch = onnx_batch_axis(c, x), at = onnx_axis(c, axis, x.shape.rank + 1);
    sdlf_shape shape = sdlf_shape_prepend(1, x.shape);
    for (int i = 0; i < at; i++) shape.dim[i] = x.shape.dim[i];
    shape.dim[at] = 1;
    return onnx_reshape_batch(c, x, shape, batch >= at ? batch + 1 : batch);
}

static void convert_loop(onnx_context *c)
{
    const onnx_branch *body = branch_of(c, "body");
    double most = onnx_known_number(c, 0, FOREVER);
    bool goes_on = onnx_known_number(c, 1, 1) > 0;
    if (!onnx_ok(c)) return;
    int carried = body->input_count - 2, scanned = body->output_count - 1 - carried;
    if (carried < 0 || scanned < 0 || c->input_count > carried + 2 || c->output_count > carried + scanned) {
        onnx_wrong(c, "its body has %d inputs and %d outputs", body->input_count, body->output_count);
        return;
    }
    onnx_value *state = onnx_arena_array(&c->import->file->arena, (size_t)carried + 1, sizeof *state);
    onnx_flow *rows = onnx_arena_array(&c->import->file->arena, (size_t)(scanned + 1) * MOST_TURNS, sizeof *rows);
    if (state == NULL || rows == NULL) onnx_no_memory(c);
    for (int i = 0; i < carried && onnx_ok(c); i++) {
        if (!onnx_has(c, i + 2)) onnx_wrong(c, "input %d is missing", i + 2);
        if (onnx_ok(c)) bind(&state[i], c->input[i + 2]);
    }
    int turns = 0;
    for (; onnx_ok(c) && goes_on && turns < most; turns++) {
        if (turns == MOST_TURNS) onnx_unsupported(c, "more than %d turns, which are unrolled", MOST_TURNS);
        for (int i = 0; i < body->input_count && onnx_ok(c); i++) {
            onnx_value *value = inside(c, body->input[i]);
            if (onnx_ok(c) && i >= 2) bind(value, &state[i - 2]);
            if (onnx_ok(c) && i < 2) bind_number(c, value, i == 0 ? ONNX_INT64 : ONNX_BOOL, i == 0 ? turns : 1);
        }
        if (onnx_ok(c)) convert_inside(c, body);
        for (int i = 0; i < body->output_count && onnx_ok(c); i++) {
            onnx_value *value = inside(c, body->output[i]);
            double number = 1;
            if (!onnx_ok(c)) return;
            if (i == 0 && (value->kind != ONNX_CONSTANT || value->tensor.count != 1)) {
                onnx_unsupported(c, "whether it goes on is computed");
                return;
            }
            if (i == 0) onnx_tensor_convert(&value->tensor, 0, 1, SDLF_FLOAT64, &number);
            if (i == 0) goes_on = number > 0;
            if (i > 0 && i <= carried) bind(&state[i - 1], value);
            if (i > carried) rows[(i - 1 - carried) * MOST_TURNS + turns] = row_of(c, value, 0);
        }
    }
    for (int i = 0; i < carried && onnx_ok(c); i++) {
        state[i].name = "a state";
        give_value(c, i, &state[i]);
    }
    for (int i = 0; i < scanned && onnx_ok(c); i++) {
        if (turns == 0) onnx_unsupported(c, "no turns, and outputs that are joined from them");
        if (onnx_ok(c)) onnx_set_output(c, carried + i, onnx_join(c, rows + i * MOST_TURNS, turns, 0));
    }
}

/* ---- Scan ---- */

/* Entry `at` of a list of that many; 0 if the list is omitted. */
static int64_t entry(onnx_context *c, const char *name, int at, int count)
{
    onnx_list list = onnx_integers(c, name);
    if (list.count >= 0 && list.count != count) onnx_wrong(c, "attribute '%s' has %d numbers", name, list.count);
    return onnx_ok(c) && list.count == count ? list.item[at] : 0;
}

/* Binds iteration `turn`'s slice of input i along its axis, without that axis, to the body's value. */
static void bind_element(onnx_context *c, onnx_value *value, int input, int axis, int64_t turn)
{
    onnx_flow x = onnx_in(c, input);
    if (onnx_ok(c) && onnx_batch_axis(c, x) == axis) x = onnx_batch_fixed(c, x);
    x = onnx_take(c, x, axis, turn, 1, 1);
    if (!onnx_ok(c)) return;
    int batch = onnx_batch_axis(c, x);
    x = onnx_reshape_batch(c, x, sdlf_shape_without(x.shape, axis), batch > axis ? batch - 1 : batch);
    value->kind = ONNX_FLOW;
    value->flow = x;
    value->narrow = onnx_narrow_input(c, input);
    value->integers = NULL;
}

/* The common length of the scanned inputs, and their scan axes. */
static int64_t scan_turns(onnx_context *c, int carried, int count, int *axes)
{
    int64_t turns = 0;
    for (int i = 0; i < count && onnx_ok(c); i++) {
        sdlf_shape shape = onnx_shape(c, carried + i);
        axes[i] = onnx_axis(c, entry(c, "scan_input_axes", i, count), shape.rank);
        if (!onnx_ok(c)) return 0;
        if (i > 0 && shape.dim[axes[i]] != turns)
            onnx_wrong(c, "its inputs %d and %d differ in length", carried, carried + i);
        turns = shape.dim[axes[i]];
    }
    if (turns < 1 || turns > MOST_TURNS)
        onnx_unsupported(c, "%lld turns: 1 to %d, which are unrolled, are supported", (long long)turns, MOST_TURNS);
    return turns;
}

static void convert_scan(onnx_context *c)
{
    const onnx_branch *body = branch_of(c, "body");
    int64_t elements = onnx_integer(c, "num_scan_inputs", 0);
    if (!onnx_ok(c)) return;
    int carried = c->input_count - (int)(elements >= 0 && elements <= c->input_count ? elements : c->input_count + 1);
    int scanned = body->output_count - carried;
    if (elements < 1 || carried < 0 || scanned < 0 || body->input_count != c->input_count ||
        c->output_count > body->output_count) {
        onnx_wrong(c, "its body has %d inputs and %d outputs, for %d inputs of which %lld are gone through",
                   body->input_count, body->output_count, c->input_count, (long long)elements);
        return;
    }
    onnx_value *state = onnx_arena_array(&c->import->file->arena, (size_t)carried + 1, sizeof *state);
    onnx_flow *rows = onnx_arena_array(&c->import->file->arena, (size_t)(scanned + 1) * MOST_TURNS, sizeof *rows);
    int *axes = onnx_arena_array(&c->import->file->arena, (size_t)elements, sizeof *axes);
    if (state == NULL || rows == NULL || axes == NULL) onnx_no_memory(c);
    int64_t turns = scan_turns(c, carried, (int)elements, axes);
    for (int i = 0; i < c->input_count && onnx_ok(c); i++) {
        if (!onnx_has(c, i)) onnx_wrong(c, "input %d is missing", i);
        if (onnx_ok(c) && i < carried) bind(&state[i], c->input[i]);
    }
    for (int64_t turn = 0; onnx_ok(c) && turn < turns; turn++) {
        for (int i = 0; i < body->input_count && onnx_ok(c); i++) {
            onnx_value *value = inside(c, body->input[i]);
            bool back = i >= carried && entry(c, "scan_input_directions", i - carried, (int)elements) == 1;
            if (onnx_ok(c) && i < carried) bind(value, &state[i]);
            if (onnx_ok(c) && i >= carried)
                bind_element(c, value, i, axes[i - carried], back ? turns - 1 - turn : turn);
        }
        if (onnx_ok(c)) convert_inside(c, body);
        for (int i = 0; i < body->output_count && onnx_ok(c); i++) {
            onnx_value *value = inside(c, body->output[i]);
            int at = i - carried;
            if (onnx_ok(c) && at < 0) bind(&state[i], value);
            if (!onnx_ok(c) || at < 0) continue;
            bool back = entry(c, "scan_output_directions", at, scanned) == 1;
            onnx_flow row = row_of(c, value, entry(c, "scan_output_axes", at, scanned));
            rows[at * MOST_TURNS + (back ? turns - 1 - turn : turn)] = row;
        }
    }
    for (int i = 0; i < carried && onnx_ok(c); i++) {
        state[i].name = "a state";
        give_value(c, i, &state[i]);
    }
    for (int i = 0; i < scanned && onnx_ok(c); i++) {
        const onnx_flow *part = rows + i * MOST_TURNS;
        int axis = onnx_axis(c, entry(c, "scan_output_axes", i, scanned), part->shape.rank);
        if (onnx_ok(c)) onnx_set_output(c, carried + i, onnx_join(c, part, (int)turns, axis));
    }
}

const onnx_operator onnx_branch_operators[] = {
    {.type = "If",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .known = 1,
     .attributes = " else_branch then_branch ",
     .convert = convert_if,
     .fold = convert_if},
    {.type = "Loop",
     .since = 1,
     .minimum_inputs = 0,
     .maximum_inputs = 4096,
     .known = 3,
     .attributes = " body ",
     .convert = convert_loop,
     .fold = convert_loop},
    {.type = "Scan",
     .since = 9, /* before that, it had its own batch axis */
     .minimum_inputs = 1,
     .maximum_inputs = 4096,
     .attributes =
         " body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions ",
     .convert = convert_scan},
    {.type = NULL},
};
