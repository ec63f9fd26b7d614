/* SPDX-License-Identifier: MIT */
/* Weights that stay in their file until a plan takes them. Of the parsed file only their locations are kept: its graph
 * is in the model by then, and can be as large as the weights of a small one. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/fill.h"

typedef struct weights_left {
    onnx_file *file;
    onnx_fill *fill; /* of each parameter */
    bool *filled;    /* whether there is one */
    sdlf_shape *shape;
    void *room;
} weights_left;

static sdlf_status read_pieces(void *self, int parameter, int64_t first, int64_t count, float *values)
{
    const weights_left *left = self;
    sdlf_status status = SDLF_OK;
    if (left->filled[parameter])
        status = onnx_fill_values(&left->fill[parameter], left->shape[parameter], first, count, left->room, values);
    if (status == SDLF_OK) status = onnx_file_check(left->file);
    return sdlf_fail_context(status, "%s", left->file->path);
}

static bool reads_pieces(const void *self, int parameter)
{
    const weights_left *left = self;
    return left->filled[parameter] && onnx_fill_is_straight(&left->fill[parameter]);
}

/* A scale per unit, or a single one, is shared by all inputs. */
static int64_t shared_scale(const void *self, int parameter)
{
    const weights_left *left = self;
    const onnx_fill *fill = &left->fill[parameter];
    const onnx_tensor *tensor = &fill->tensor;
    if (!left->filled[parameter] || tensor->scale_length == 0 || tensor->shape.rank != 2 || fill->repeat ||
        fill->block > 0)
        return 0;
    if (fill->first != 0 || (fill->scale != 0 && fill->scale != 1)) return 0;
    int axis = fill->transpose ? 0 : 1; /* of the inputs */
    return tensor->scale_axis == axis ? tensor->scale_length : tensor->shape.dim[axis];
}

static void close_lazily_read(void *self)
{
    weights_left *left = self;
    if (left->file != NULL) {
        onnx_file_close(left->file);
        free(left->file);
    }
    free(left->fill);
    free(left->filled);
    free(left->shape);
    free(left->room);
    free(left);
}

static sdlf_status list_fills(const onnx_import *import, weights_left *left)
{
    for (int i = 0; i < import->model->parameter_count; i++) left->shape[i] = import->model->parameters[i].spec.shape;
    for (int i = 0; i < import->fill_count; i++) {
        sdlf_parameter *parameter = NULL;
        sdlf_status status = onnx_fill_find(import, &import->fill[i], &parameter);
        if (status != SDLF_OK) return status;
        ptrdiff_t index = parameter - import->model->parameters;
        left->fill[index] = import->fill[i];
        left->filled[index] = true;
    }
    return SDLF_OK;
}

/* Bytes of elements that are not in a file: small constants, and folded ones. */
static size_t bytes_of(const onnx_fill *fill)
{
    const onnx_tensor *tensor = &fill->tensor;
    if (tensor->type == ONNX_UNDEFINED || tensor->map != NULL) return 0;
    return (size_t)(tensor->uniform ? 1 : tensor->count) * onnx_type_size(tensor->type);
}

/* Frees the parsed file and everything derived from it; elements stored there are moved. If these are many, or memory
 * is out, everything is kept. */
static void forget_file(onnx_file *file, const weights_left *left, int count)
{
    enum { MANY = 1 << 20 };
    onnx_arena kept = {.block = NULL};
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += left->filled[i] ? bytes_of(&left->fill[i]) : 0;
    char *to = bytes <= MANY ? onnx_arena_take(&kept, bytes + 1) : NULL;
    if (to == NULL) return;
    for (int i = 0; i < count; i++) {
        onnx_fill *fill = &left->fill[i];
        size_t size = left->filled[i] ? bytes_of(fill) : 0;
        fill->parameter = fill->tensor.name = "";
        if (size == 0) continue;
        fill->tensor.data = memcpy(to, fill->tensor.data, size);
        to += size;
    }
    onnx_blocks_release(&file->blocks);
    onnx_arena_release(&file->arena);
    onnx_map_forget(&file->map);
    *file = (onnx_file){.path = file->path, .arena = kept, .map = file->map, .folder = {.files = file->folder.files}};
}

sdlf_status onnx_defer_parameters(onnx_import *import)
{
    size_t count = (size_t)import->model->parameter_count + 1;
    weights_left *left = calloc(1, sizeof *left);
    if (left == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", import->file->path);
    left->fill = calloc(count, sizeof *left->fill);
    left->filled = calloc(count, sizeof *left->filled);
    left->shape = calloc(count, sizeof *left->shape);
    left->room = malloc((size_t)ONNX_FILL_CHUNK * sizeof(double));
    bool complete = left->fill != NULL && left->filled != NULL && left->shape != NULL && left->room != NULL;
    sdlf_status status =
        complete ? list_fills(import, left) : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", import->file->path);
    if (status != SDLF_OK) {
        close_lazily_read(left);
        return status;
    }
    left->file = import->file; /* from here on the model owns it */
    forget_file(left->file, left, import->model->parameter_count);
    model_defer_values(import->model, (model_source){.read = read_pieces,
                                                     .in_pieces = reads_pieces,
                                                     .shared_scale = shared_scale,
                                                     .close = close_lazily_read,
                                                     .file = left});
    return SDLF_OK;
}
