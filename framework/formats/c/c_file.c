/* SPDX-License-Identifier: MIT */
/* The file: its description, the kernels, the weights, the function that runs the network. */
#include "framework/formats/c/c_export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/formats/text.h"

/* A name for use inside a comment: it cannot end the comment. */
static c_name plain(const char *name)
{
    c_name shown;
    snprintf(shown.text, sizeof shown.text, "%s", text_show(name).text);
    for (char *at = shown.text; *at != '\0'; at++)
        if (*at == '*' || *at == '\\' || *at == '?') *at = '_';
    return shown;
}

static sdlf_dtype type_of(const c_export *e, sdlf_node node)
{
    return c_at(e, node.layer)->output_dtype[node.output];
}

static void print_argument(c_export *e, bool input, int index, const char *name, sdlf_node node)
{
    sdlf_shape shape = c_shape(e, node);
    sdlf_dtype dtype = type_of(e, node);
    c_print(e, " *   %-8s  %s, %s: %lld numbers%s%s\n", c_argument(e, input, index).text, plain(name).text,
            sdlf_shape_print(shape.rank > 1 && shape.dim[0] == 1 ? sdlf_shape_without(shape, 0) : shape).text,
            (long long)sdlf_shape_count(shape), dtype == SDLF_FLOAT32 ? "" : " of ",
            dtype == SDLF_FLOAT32 ? "" : c_type(dtype));
}

/* The layer of argument `index` of the function. */
static sdlf_node input_node(const c_export *e, int index)
{
    sdlf_node node = {0, 0};
    for (;; node.layer++) {
        const c_value *value = &e->value[c_output_value(node)];
        if (e->state[node.layer].live && value->kind == C_INPUT && value->index == index) return node;
    }
}

static void print_prototype(c_export *e)
{
    c_print(e, "void %s_run(", e->result->name);
    for (int i = 0; i < e->input_count; i++)
        c_print(e, "const %s *%s, ", c_type(type_of(e, input_node(e, i))), c_argument(e, true, i).text);
    for (int i = 0; i < e->output_count; i++)
        c_print(e, "%s%s *%s", i > 0 ? ", " : "", c_type(type_of(e, e->output[i])), c_argument(e, false, i).text);
    c_print(e, ")");
}

/* Prints NAME_INPUT = 784, and the like. */
static void print_sizes(c_export *e)
{
    c_print(e, "enum {");
    for (int i = 0; i < e->input_count + e->output_count; i++) {
        bool input = i < e->input_count;
        sdlf_node node = input ? input_node(e, i) : e->output[i - e->input_count];
        c_name argument = c_argument(e, input, input ? i : i - e->input_count);
        for (char *at = argument.text; *at != '\0'; at++) *at = (char)toupper((unsigned char)*at);
        c_print(e, "%s %s_%s = %lld", i > 0 ? "," : "", e->result->name, argument.text,
                (long long)sdlf_shape_count(c_shape(e, node)));
    }
    c_print(e, " }; /* numbers in each */\n\n");
}

/* The headers that the types of values and kernels require. */
static void print_includes(c_export *e)
{
    bool integers = c_uses(e, "integer_power") || c_uses(e, "arg_reduce") || c_uses(e, "top_k"), bools = false;
    for (int i = 1; i < e->value_count; i++) {
        const c_value *value = &e->value[i];
        if (value->count == 0) continue;
        bools |= value->dtype == SDLF_BOOL;
        integers |= value->dtype != SDLF_BOOL && value->dtype != SDLF_FLOAT32;
    }
    c_print(e, "#include <math.h>\n%s#include <stddef.h>\n%s\n", bools ? "#include <stdbool.h>\n" : "",
            integers ? "#include <stdint.h>\n" : "");
}

static void print_head(c_export *e)
{
    const sdlf_normalization *n = &e->model->normalization;
    c_print(e,
            "/* %s: a trained network as one file of C99. Written by sdlf %s; it needs only the standard library "
            "(-lm).\n *\n"
            " * ",
            plain(e->model->name).text, SDLF_VERSION);
    print_prototype(e);
    c_print(e, "\n *\n");
    for (int i = 0; i < e->input_count; i++) {
        sdlf_node node = input_node(e, i);
        print_argument(e, true, i, c_at(e, node.layer)->layer.name, node);
    }
    for (int i = 0; i < e->output_count; i++) print_argument(e, false, i, e->output_name[i], e->output[i]);
    if (n->known && n->channels.count > 0) {
        c_print(e, " *\n * The network was trained on samples x as (x - mean) * scale: do so before. Of the channels "
                   "in turn:\n");
        for (int i = 0; i < n->channels.count; i++)
            c_print(e, " *   mean %s, scale %s\n", c_number(n->channels.mean[i]).text,
                    c_number(n->channels.scale[i]).text);
    } else if (n->known && (n->mean != 0 || n->scale != 1))
        c_print(e, " *\n * The network was trained on samples x as (x - %s) * %s: do so before.\n",
                c_number(n->mean).text, c_number(n->scale).text);
    c_print(e,
            " *\n * Arrays are row-major, channels before rows before columns, and may not overlap. %lld parameters, "
            "%lld bytes of\n"
            " * static scratch memory: one thread at a time. Declare the function where it is called, or include this "
            "file. */\n",
            (long long)e->result->parameter_count, (long long)e->result->scratch_bytes);
    print_includes(e);
    print_sizes(e);
    print_prototype(e);
    c_print(e, ";\n\n");
}

/* Copies outputs that are an input or a weight, or given twice. */
static void print_copies(c_export *e)
{
    for (int i = 0; i < e->output_count; i++) {
        sdlf_node node = e->output[i];
        const c_value *root = &e->value[c_root(e, c_output_value(node))];
        if (root->kind == C_OUTPUT && root->index == i) continue;
        sdlf_tensor tensor = sdlf_tensor_view(type_of(e, node), c_shape(e, node), NULL);
        tensor.buffer = c_output_value(node);
        c_print(e, "    for (int i = 0; i < %lld; i++) %s[i] = %s;\n", (long long)sdlf_tensor_count(&tensor),
                c_argument(e, false, i).text, c_element(e, &tensor, "i").text);
    }
}

/* The line before a layer's statements. */
static void print_title(c_export *e, int layer)
{
    const model_layer *at = c_at(e, layer);
    c_print(e, "    /* %s: ", plain(at->layer.name).text);
    if (at->input_count > 0) c_print(e, "%s to ", sdlf_shape_print(c_shape(e, at->inputs[0])).text);
    c_print(e, "%s */\n", sdlf_shape_print(at->output_shape[0]).text);
}

static void print_steps(c_export *e)
{
    for (int s = 0; s < e->step_count; s++) {
        if (s == 0 || e->step[s].layer != e->step[s - 1].layer) print_title(e, e->step[s].layer);
        c_print_operation(e, &e->step[s]);
    }
}

void c_print_file(c_export *e)
{
    e->dry = true;
    print_steps(e);
    e->dry = false;
    print_head(e);
    for (int i = 0; c_kernels[i].name != NULL; i++) {
        if (!(e->kernels >> i & 1)) continue;
        c_write(e, (const char *)c_kernels[i].text, c_kernels[i].size);
        c_print(e, "\n");
    }
    c_print_weights(e);
    for (int type = 0; type < SDLF_DTYPE_COUNT; type++)
        if (e->scratch[type] > 0)
            c_print(e, "static %s %s[%lld];\n\n", c_type((sdlf_dtype)type), c_scratch_name((sdlf_dtype)type),
                    (long long)e->scratch[type]);
    print_prototype(e);
    c_print(e, "\n{\n");
    print_steps(e);
    print_copies(e);
    c_print(e, "}\n");
    c_flush(e);
}
