/* The file as a whole. See c_export.h. */
#include "framework/formats/c/c_export.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/formats/text.h"
#include "layers/input.h"

/* ---- failing ---- */

bool c_ok(const c_export *e)
{
    return e->status == SDLF_OK;
}

void c_refuse(c_export *e, int layer, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    if (!c_ok(e)) return;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const sdlf_layer *at = &c_at(e, layer)->layer;
    e->status = sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer %d '%s' (%s) cannot be written as C: %s%s%s", layer,
                          text_show(at->name).text, at->type->name, reason, at->origin != NULL ? "; from " : "",
                          at->origin != NULL ? at->origin : "");
}

void c_no_memory(c_export *e)
{
    if (c_ok(e)) e->status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing model '%s' as C", e->model->name);
}

/* ---- looking ---- */

const model_layer *c_at(const c_export *e, int layer)
{
    return &e->model->layers[layer];
}

sdlf_shape c_in_shape(const c_export *e, int layer, int input)
{
    sdlf_node node = c_at(e, layer)->inputs[input];
    return c_at(e, node.layer)->output_shape[node.output];
}

sdlf_shape c_out_shape(const c_export *e, int layer)
{
    return c_at(e, layer)->output_shape[0];
}

const sdlf_parameter *c_parameter(const c_export *e, int layer, const char *name)
{
    for (int i = 0; i < c_at(e, layer)->parameter_count; i++) {
        const sdlf_parameter *parameter = &e->model->parameters[c_at(e, layer)->first_parameter + i];
        if (strcmp(parameter->spec.name, name) == 0) return parameter;
    }
    return NULL;
}

/* ---- printing ---- */

void c_flush(c_export *e)
{
    if (c_ok(e) && e->used > 0) e->status = atomic_file_write(e->file, e->bytes, e->used);
    e->used = 0;
}

void c_write(c_export *e, const char *text, size_t size)
{
    if (size > C_BUFFER - e->used) c_flush(e);
    if (size > C_BUFFER) {
        if (c_ok(e)) e->status = atomic_file_write(e->file, text, size);
        return;
    }
    memcpy(e->bytes + e->used, text, size);
    e->used += size;
}

void c_print(c_export *e, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) c_write(e, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* ---- the file ---- */

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

static void print_file(c_export *e)
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

/* ---- the way in ---- */

static sdlf_status choose_name(c_export *e)
{
    const char *name = e->options->name;
    c_name made = c_identifier(name != NULL ? name : e->model->name);
    if (name != NULL && (name[0] == '\0' || strcmp(made.text, name) != 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "'%s' cannot be the name of a function: letters, digits and _ were expected, at most 59",
                         text_show(name).text);
    snprintf(e->result->name, sizeof e->result->name, "%.63s", made.text);
    return SDLF_OK;
}

static sdlf_status check_size(c_export *e)
{
    int64_t most = e->options->max_parameters > 0 ? e->options->max_parameters : SDLF_C_EXPORT_PARAMETERS;
    e->result->parameter_count = c_count_weights(e);
    e->result->scratch_bytes = e->scratch * (int64_t)sizeof(float);
    if (e->scratch > INT32_MAX / 4)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "model '%s' needs %lld bytes of scratch memory: too much for C",
                         e->model->name, (long long)e->result->scratch_bytes);
    if (e->result->parameter_count <= most) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_UNSUPPORTED,
        "model '%s' has %lld parameters, and %lld is the limit for a file of C, which compilers read slowly: "
        "raise it (max_parameters), or export it as ONNX",
        e->model->name, (long long)e->result->parameter_count, (long long)most);
}

static sdlf_status write_file(c_export *e, const char *path)
{
    atomic_file file;
    e->bytes = malloc(C_BUFFER);
    if (e->bytes == NULL) c_no_memory(e);
    if (c_ok(e)) e->status = atomic_file_open(&file, path);
    if (!c_ok(e)) return e->status;
    e->file = &file;
    print_file(e);
    e->result->bytes = (int64_t)file.written;
    if (c_ok(e)) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return e->status;
}

sdlf_status sdlf_model_to_c(const sdlf_model *model, const char *path, const sdlf_c_export_options *options,
                            sdlf_c_exported *result)
{
    static const sdlf_c_export_options none = {0};
    sdlf_c_exported ignored;
    c_export e = {
        .model = model, .options = options != NULL ? options : &none, .result = result != NULL ? result : &ignored};
    *e.result = (sdlf_c_exported){0};
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (!model->built)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "model '%s' has no parameters to export yet: build it first",
                         model->name);
    e.status = choose_name(&e);
    if (c_ok(&e)) c_choose_outputs(&e);
    if (c_ok(&e)) c_check_layers(&e);
    if (c_ok(&e)) c_lay_out(&e);
    if (c_ok(&e)) e.status = check_size(&e);
    if (c_ok(&e)) e.status = write_file(&e, path);
    free(e.bytes);
    free(e.value);
    free(e.output);
    free(e.output_name);
    return e.status;
}
