/* SPDX-License-Identifier: MIT */
/* The export as a whole, and functions shared by its parts. See c_export.h. */
#include "framework/formats/c/c_export.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/text.h"
#include "framework/require.h"

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

/* ---- queries ---- */

const model_layer *c_at(const c_export *e, int layer)
{
    return &e->model->layers[layer];
}

sdlf_shape c_shape(const c_export *e, sdlf_node node)
{
    return c_at(e, node.layer)->output_shape[node.output];
}

bool c_is(const c_export *e, int layer, const char *type)
{
    return strcmp(c_at(e, layer)->layer.type->name, type) == 0;
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
    if (e->dry) return;
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

/* ---- entry point ---- */

static sdlf_status choose_name(c_export *e)
{
    const char *name = e->options->name;
    c_name made = c_identifier(name != NULL ? name : e->model->name);
    if (name != NULL && (name[0] == '\0' || strcmp(made.text, name) != 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "'%s' cannot be the name of a function: expected letters, digits and _, at most 59",
                         text_show(name).text);
    snprintf(e->result->name, sizeof e->result->name, "%.63s", made.text);
    return SDLF_OK;
}

static sdlf_status check_size(c_export *e)
{
    int64_t most = e->options->max_parameters > 0 ? e->options->max_parameters : SDLF_C_EXPORT_PARAMETERS;
    bool large = false;
    e->result->parameter_count = c_count_weights(e);
    for (int type = 0; type < SDLF_DTYPE_COUNT; type++) {
        e->result->scratch_bytes += e->scratch[type] * (int64_t)sdlf_dtype_size((sdlf_dtype)type);
        if (e->scratch[type] > INT32_MAX / 4) large = true;
    }
    if (large)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "model '%s' needs %lld bytes of scratch memory: too much for C",
                         e->model->name, (long long)e->result->scratch_bytes);
    if (e->result->parameter_count <= most) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_UNSUPPORTED,
        "model '%s' has %lld parameters, and %lld is the limit for a C file, which compiles slowly: raise it "
        "(max_parameters; --max-parameters of sdlf export), or export it as ONNX",
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
    c_print_file(e);
    e->result->bytes = (int64_t)file.written;
    if (c_ok(e)) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return e->status;
}

sdlf_status sdlf_model_to_c(const sdlf_model *model, const char *path, const sdlf_c_export_options *options,
                            sdlf_c_exported *result)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
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
    if (c_ok(&e)) c_lower(&e);
    if (c_ok(&e)) c_lay_out(&e);
    if (c_ok(&e)) e.status = check_size(&e);
    if (c_ok(&e)) c_list_arrays(&e);
    if (c_ok(&e)) e.status = write_file(&e, path);
    free(e.bytes);
    free(e.array);
    free(e.state);
    free(e.value);
    free(e.step);
    free(e.output);
    free(e.output_name);
    return e.status;
}
