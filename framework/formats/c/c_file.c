/* The file: what it is, the kernels, the weights, the function that runs the network. */
#include "framework/formats/c/c_export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/formats/text.h"

/* A name for a comment: nothing in it ends one. */
static c_name plain(const char *name)
{
    c_name shown;
    snprintf(shown.text, sizeof shown.text, "%s", text_show(name).text);
    for (char *at = shown.text; *at != '\0'; at++)
        if (*at == '*' || *at == '\\' || *at == '?') *at = '_';
    return shown;
}

static void print_argument(c_export *e, bool input, int index, const char *name, sdlf_shape shape)
{
    c_print(e, " *   %-8s  %s, %s: %lld numbers\n", c_argument(e, input, index).text, plain(name).text,
            sdlf_shape_print(shape.rank > 1 && shape.dim[0] == 1 ? sdlf_shape_without(shape, 0) : shape).text,
            (long long)sdlf_shape_count(shape));
}

static void print_prototype(c_export *e)
{
    c_print(e, "void %s_run(", e->result->name);
    for (int i = 0; i < e->input_count; i++) c_print(e, "const float *%s, ", c_argument(e, true, i).text);
    for (int i = 0; i < e->output_count; i++)
        c_print(e, "%sfloat *%s", i > 0 ? ", " : "", c_argument(e, false, i).text);
    c_print(e, ")");
}

/* The layer of argument `index` of the function. */
static int input_layer(const c_export *e, int index)
{
    int layer = 0;
    while (e->value[layer].kind != C_INPUT || e->value[layer].index != index) layer++;
    return layer;
}

static void print_head(c_export *e)
{
    const char *name = e->result->name;
    const sdlf_normalization *n = &e->model->normalization;
    c_print(e,
            "/* %s: a trained network as one file of C99. Written by sdlf %s; it needs the standard library alone "
            "(-lm).\n *\n"
            " * ",
            plain(e->model->name).text, SDLF_VERSION);
    print_prototype(e);
    c_print(e, "\n *\n");
    for (int i = 0; i < e->input_count; i++) {
        int layer = input_layer(e, i);
        print_argument(e, true, i, c_at(e, layer)->layer.name, c_out_shape(e, layer));
    }
    for (int i = 0; i < e->output_count; i++)
        print_argument(e, false, i, e->output_name[i], c_out_shape(e, e->output[i].layer));
    if (n->known && (n->mean != 0 || n->scale != 1))
        c_print(e, " *\n * The network was trained on samples x as (x - %s) * %s: do so before.\n",
                c_number(n->mean).text, c_number(n->scale).text);
    c_print(e,
            " *\n * Arrays are row-major, channels before rows before columns, and may not overlap. %lld parameters, "
            "%lld bytes of\n"
            " * static scratch memory: one thread at a time. Declare the function where it is called, or include this "
            "file. */\n"
            "#include <math.h>\n#include <stddef.h>\n\n",
            (long long)e->result->parameter_count, (long long)e->result->scratch_bytes);
    c_print(e, "enum {");
    for (int i = 0; i < e->input_count; i++) {
        c_name argument = c_argument(e, true, i);
        for (char *at = argument.text; *at != '\0'; at++) *at = (char)toupper((unsigned char)*at);
        c_print(e, " %s_%s = %lld,", name, argument.text, (long long)e->value[input_layer(e, i)].count);
    }
    for (int i = 0; i < e->output_count; i++) {
        c_name argument = c_argument(e, false, i);
        for (char *at = argument.text; *at != '\0'; at++) *at = (char)toupper((unsigned char)*at);
        c_print(e, "%s %s_%s = %lld", i > 0 ? "," : "", name, argument.text,
                (long long)e->value[e->output[i].layer].count);
    }
    c_print(e, " }; /* numbers in each */\n\n");
    print_prototype(e);
    c_print(e, ";\n\n");
}

static bool uses(const c_export *e, const char *kernel)
{
    for (int i = 0; i < e->model->layer_count; i++) {
        const c_layer *known = c_layer_find(c_at(e, i)->layer.type->name);
        if (!e->value[i].live || e->value[i].folded || known == NULL) continue;
        for (int k = 0; k < 2; k++)
            if (known->kernels[k] != NULL && strcmp(known->kernels[k], kernel) == 0) return true;
    }
    return false;
}

/* Outputs that are an input, or given twice. */
static void print_copies(c_export *e)
{
    for (int i = 0; i < e->output_count; i++) {
        c_name from = c_out_element(e, e->output[i].layer), to = c_argument(e, false, i);
        size_t length = strlen(to.text);
        if (strncmp(from.text, to.text, length) != 0 || from.text[length] != '[')
            c_print(e, "    for (int i = 0; i < %lld; i++) %s[i] = %s;\n",
                    (long long)e->value[e->output[i].layer].count, to.text, from.text);
    }
}

void c_print_file(c_export *e)
{
    print_head(e);
    for (const c_kernel *kernel = c_kernels; kernel->name != NULL; kernel++) {
        if (!uses(e, kernel->name)) continue;
        c_write(e, (const char *)kernel->text, kernel->size);
        c_print(e, "\n");
    }
    c_print_weights(e);
    if (e->scratch > 0) c_print(e, "static float scratch[%lld];\n\n", (long long)e->scratch);
    print_prototype(e);
    c_print(e, "\n{\n");
    for (int i = 0; i < e->model->layer_count; i++) {
        const c_layer *known = c_layer_find(c_at(e, i)->layer.type->name);
        if (!e->value[i].live || e->value[i].folded || known == NULL || known->print == NULL) continue;
        c_print(e, "    /* %s: %s to %s */\n", plain(c_at(e, i)->layer.name).text,
                sdlf_shape_print(c_in_shape(e, i, 0)).text, sdlf_shape_print(c_out_shape(e, i)).text);
        known->print(e, i);
    }
    print_copies(e);
    c_print(e, "}\n");
    c_flush(e);
}
