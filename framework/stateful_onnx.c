/* SPDX-License-Identifier: MIT */
/* Models for sdlf_stateful from an ONNX file. See stateful_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "framework/stateful_internal.h"

void stateful_source_free(void *user)
{
    onnx_source *source = user;
    if (source == NULL) return;
    for (int i = 0; i < source->dimension_count; i++) free((char *)source->dimension[i].name);
    for (int i = 0; i < source->shape_count + source->growing_count; i++) free((char *)source->shape[i].name);
    free(source->dimension);
    free(source->shape);
    free(source->path);
    free(source);
}

/* Open dimensions of states, except the first, are the length; those of growing inputs, the length after the step. */
sdlf_status stateful_source_make(void *user, int64_t length, bool weights, sdlf_model **model)
{
    const onnx_source *source = user;
    sdlf_onnx_shape shapes[STATEFUL_SHAPES];
    (void)weights; /* the plan takes them when it is created */
    int count = source->shape_count + (source->grows ? source->growing_count : 0);
    for (int i = 0; i < count; i++) {
        shapes[i] = source->shape[i];
        bool grows = i >= source->shape_count;
        for (int axis = 1; (i < source->state_count || grows) && axis < shapes[i].shape.rank; axis++)
            if (shapes[i].shape.dim[axis] < 0) shapes[i].shape.dim[axis] = length + (grows ? source->added : 0);
    }
    return sdlf_model_from_onnx(model, source->path,
                                &(sdlf_onnx_options){.dimensions = source->dimension,
                                                     .dimension_count = source->dimension_count,
                                                     .shapes = shapes,
                                                     .shape_count = count,
                                                     .keep_rows = true,
                                                     .leave_weights = true});
}

static bool is_among(const sdlf_onnx_shape *shapes, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(shapes[i].name, name) == 0) return true;
    return false;
}

static bool is_open(const sdlf_onnx_value *input)
{
    for (int axis = 1; input->shape_known && axis < input->shape.rank; axis++)
        if (input->shape.dim[axis] < 0) return true;
    return false;
}

static void add_size(onnx_source *source, int64_t size)
{
    bool known = size < 1;
    for (int i = 0; i < source->size_count; i++) known = known || source->size[i] == size;
    if (!known && source->size_count < STATEFUL_STEPS) source->size[source->size_count++] = size;
}

/* The shapes of the states as in the file; given shapes; those of inputs whose open dimensions are not given. */
static sdlf_status read_shapes(onnx_source *source, const sdlf_stateful_options *options)
{
    sdlf_onnx_report *report = NULL;
    sdlf_status status = sdlf_onnx_inspect(
        &report, source->path,
        &(sdlf_onnx_options){.dimensions = source->dimension, .dimension_count = source->dimension_count});
    for (int i = 0; i < options->state_count && status == SDLF_OK; i++)
        for (int j = 0; j < report->input_count; j++) {
            const sdlf_onnx_value *input = &report->input[j];
            if (options->states[i].input == NULL || strcmp(input->name, options->states[i].input) != 0) continue;
            if (input->shape_known)
                source->shape[source->shape_count++] = (sdlf_onnx_shape){strdup(input->name), input->shape};
            break; /* a file may have a name twice */
        }
    source->state_count = source->shape_count;
    for (int i = 0; i < options->shape_count; i++)
        source->shape[source->shape_count++] =
            (sdlf_onnx_shape){strdup(options->shapes[i].name), options->shapes[i].shape};
    for (int i = 0; i < source->shape_count; i++)
        if (source->shape[i].name == NULL) status = SDLF_ERROR_MEMORY;
    for (int j = 0; status == SDLF_OK && j < report->input_count; j++) {
        const sdlf_onnx_value *input = &report->input[j];
        int last = source->shape_count + source->growing_count;
        if (last == STATEFUL_SHAPES || !is_open(input) || is_among(source->shape, source->shape_count, input->name))
            continue;
        source->shape[last] = (sdlf_onnx_shape){strdup(input->name), input->shape};
        source->growing_count++;
    }
    sdlf_onnx_report_free(report);
    add_size(source, 1);
    for (int i = 0; i < options->dimension_count; i++) add_size(source, options->dimensions[i].size);
    for (int i = 0; i < options->shape_count; i++)
        for (int axis = 1; axis < options->shapes[i].shape.rank; axis++)
            add_size(source, options->shapes[i].shape.dim[axis]);
    return status;
}

sdlf_status stateful_source_fill(onnx_source *source, const char *path, const sdlf_stateful_options *options)
{
    source->path = strdup(path);
    source->dimension = calloc((size_t)options->dimension_count + 1, sizeof *source->dimension);
    source->shape = calloc(STATEFUL_SHAPES, sizeof *source->shape);
    bool ok = source->path != NULL && source->dimension != NULL && source->shape != NULL;
    for (int i = 0; ok && i < options->dimension_count; i++) {
        source->dimension[source->dimension_count++] =
            (sdlf_onnx_dimension){strdup(options->dimensions[i].name), options->dimensions[i].size};
        ok = source->dimension[i].name != NULL;
    }
    sdlf_status status = ok ? read_shapes(source, options) : SDLF_ERROR_MEMORY;
    for (int i = 0; i < source->shape_count + source->growing_count; i++)
        if (source->shape[i].name == NULL) status = SDLF_ERROR_MEMORY;
    return status == SDLF_ERROR_MEMORY ? sdlf_fail(status, "stateful: out of memory") : status;
}
