/* SPDX-License-Identifier: MIT */
/* Local functions of a model: every call is inlined before conversion. Names inside are made unique to the call, and
 * attribute references are replaced by the attributes of the call. Nesting depth and the number of calls are
 * bounded. */
#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/file.h"
#include "framework/formats/text.h"

enum { MOST_DEEP = 32, MOST_NODES = 1 << 20 };

typedef struct inliner {
    onnx_file *file;
    Onnx__NodeProto **node;
    int count, capacity, calls;
} inliner;

/* One call: the scope in which the function's names and attributes are resolved. */
typedef struct call_site {
    const Onnx__NodeProto *node;
    const Onnx__FunctionProto *function;
    char prefix[32];
} call_site;

static sdlf_status out_of_memory(const onnx_file *file)
{
    return sdlf_fail_context(read_budget_fail(&file->budget), "%s", file->path);
}

static const char *domain_of(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static const Onnx__FunctionProto *find(const onnx_file *file, const Onnx__NodeProto *node)
{
    for (int i = 0; i < file->function_count; i++) {
        const Onnx__FunctionProto *f = file->function[i];
        if (strcmp(text_of(f->name), text_of(node->op_type)) == 0 &&
            strcmp(domain_of(f->domain), domain_of(node->domain)) == 0 &&
            strcmp(text_of(f->overload), text_of(node->overload)) == 0)
            return f;
    }
    return NULL;
}

static sdlf_status append(inliner *in, Onnx__NodeProto *node)
{
    if (in->count == MOST_NODES)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: its functions have more than %d nodes where they are called",
                         in->file->path, MOST_NODES);
    if (in->count == in->capacity) {
        int capacity = 2 * in->capacity + 64;
        Onnx__NodeProto **larger = onnx_arena_array(&in->file->arena, (size_t)capacity, sizeof(void *));
        if (larger == NULL) return out_of_memory(in->file);
        if (in->count > 0) memcpy(larger, in->node, (size_t)in->count * sizeof(void *));
        in->node = larger;
        in->capacity = capacity;
    }
    in->node[in->count++] = node;
    return SDLF_OK;
}

/* ---- names and attributes ---- */

/* NULL when out of memory. */
static char *renamed(inliner *in, const call_site *call, const char *name)
{
    const Onnx__FunctionProto *f = call->function;
    if (name[0] == '\0') return (char *)name;
    for (size_t i = 0; i < f->n_input; i++)
        if (strcmp(f->input[i], name) == 0) return i < call->node->n_input ? call->node->input[i] : "";
    for (size_t i = 0; i < f->n_output; i++)
        if (strcmp(f->output[i], name) == 0 && i < call->node->n_output && call->node->output[i][0] != '\0')
            return call->node->output[i];
    size_t length = strlen(call->prefix), rest = strlen(name);
    char *text = onnx_arena_take(&in->file->arena, length + rest + 1);
    if (text == NULL) return NULL;
    memcpy(text, call->prefix, length);
    memcpy(text + length, name, rest + 1);
    return text;
}

static bool rename_all(inliner *in, const call_site *call, char ***names, size_t count)
{
    char **own = onnx_arena_array(&in->file->arena, count + 1, sizeof(char *));
    for (size_t i = 0; own != NULL && i < count; i++) {
        own[i] = renamed(in, call, (*names)[i]);
        if (own[i] == NULL) return false;
    }
    *names = own;
    return own != NULL;
}

static const Onnx__AttributeProto *named(Onnx__AttributeProto *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->name != NULL && strcmp(list[i]->name, name) == 0) return list[i];
    return NULL;
}

/* Replaces attribute references by the call's attributes, or the function's defaults; unresolved ones are dropped. */
static bool resolve(inliner *in, const call_site *call, Onnx__NodeProto *node)
{
    const Onnx__FunctionProto *f = call->function;
    Onnx__AttributeProto **own = onnx_arena_array(&in->file->arena, node->n_attribute + 1, sizeof(void *));
    size_t count = 0;
    for (size_t i = 0; own != NULL && i < node->n_attribute; i++) {
        Onnx__AttributeProto *attribute = node->attribute[i];
        const char *wanted = text_of(attribute->ref_attr_name);
        own[count] = attribute;
        if (wanted[0] != '\0') {
            const Onnx__AttributeProto *from = named(call->node->attribute, call->node->n_attribute, wanted);
            if (from == NULL) from = named(f->attribute_proto, f->n_attribute_proto, wanted);
            if (from == NULL) continue;
            own[count] = onnx_arena_take(&in->file->arena, sizeof *own[count]);
            if (own[count] == NULL) return false;
            *own[count] = *from;
            own[count]->name = attribute->name;
        }
        count++;
    }
    node->attribute = own;
    node->n_attribute = count;
    return own != NULL;
}

/* ---- calls ---- */

static sdlf_status check(const onnx_file *file, const call_site *call)
{
    const Onnx__FunctionProto *f = call->function;
    const char *name = text_of(f->name);
    for (size_t i = 0; i < f->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *opset = f->opset_import[i];
        if (domain_of(opset->domain)[0] == '\0' && opset->version != file->opset)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: function %s is in opset %lld, but the model in %lld",
                             file->path, text_show(name).text, (long long)opset->version, (long long)file->opset);
    }
    if (call->node->n_input > f->n_input || call->node->n_output > f->n_output)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: function %s is called with %zu inputs and %zu outputs, but has %zu and %zu", file->path,
                         text_show(name).text, call->node->n_input, call->node->n_output, f->n_input, f->n_output);
    for (size_t n = 0; n < f->n_node; n++)
        for (size_t i = 0; i < f->node[n]->n_attribute; i++)
            if (f->node[n]->attribute[i]->g.len > 0)
                return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: function %s has a graph in an attribute", file->path,
                                 text_show(name).text);
    return SDLF_OK;
}

static sdlf_status add(inliner *in, Onnx__NodeProto *node, int depth)
{
    call_site call = {.node = node, .function = find(in->file, node)};
    if (call.function == NULL) return append(in, node);
    if (depth == MOST_DEEP)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: its functions call each other more than %d deep", in->file->path,
                         MOST_DEEP);
    snprintf(call.prefix, sizeof call.prefix, "call%d/", in->calls++);
    sdlf_status status = check(in->file, &call);
    for (size_t i = 0; i < call.function->n_node && status == SDLF_OK; i++) {
        Onnx__NodeProto *own = onnx_arena_take(&in->file->arena, sizeof *own);
        if (own == NULL) return out_of_memory(in->file);
        *own = *call.function->node[i];
        bool ok = rename_all(in, &call, &own->input, own->n_input) &&
                  rename_all(in, &call, &own->output, own->n_output) && resolve(in, &call, own);
        if (ok && own->name != NULL) own->name = renamed(in, &call, own->name);
        status = ok ? add(in, own, depth + 1) : out_of_memory(in->file);
    }
    return status;
}

sdlf_status onnx_functions_inline(onnx_file *file)
{
    inliner in = {.file = file};
    sdlf_status status = SDLF_OK;
    if (file->function_count == 0) return SDLF_OK;
    for (int i = 0; i < file->node_count && status == SDLF_OK; i++) status = add(&in, file->node[i], 0);
    if (status != SDLF_OK) return status;
    file->node = in.node;
    file->node_count = in.count;
    return SDLF_OK;
}
