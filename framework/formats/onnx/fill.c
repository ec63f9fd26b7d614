/* Parameters get their memory and their values: each weight is read once, from the file into its parameter. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import.h"

static sdlf_status find(const onnx_import *import, const onnx_fill *fill, sdlf_parameter **parameter)
{
    const model_layer *layer = &import->model->layers[fill->layer];
    for (int i = 0; i < layer->parameter_count; i++) {
        *parameter = &import->model->parameters[layer->first_parameter + i];
        if (strcmp((*parameter)->spec.name, fill->parameter) == 0) return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer '%s' has no parameter '%s'", layer->layer.name, fill->parameter);
}

enum { CHUNK = 1 << 16 }; /* elements on their way */

/* Elements first .. first + count - 1 in the parameter's type. What is still in the file is read into `room` first, of CHUNK
 * elements, and not kept: never are both copies of a large weight there. Without conversion it is read to where it belongs. */
static sdlf_status bring(const onnx_tensor *tensor, int64_t first, int64_t count, sdlf_dtype to, void *room, void *out)
{
    size_t size = onnx_type_size(tensor->type), to_size = sdlf_dtype_size(to);
    sdlf_status status = SDLF_OK;
    if (tensor->map == NULL || tensor->uniform) {
        onnx_tensor_convert(tensor, first, count, to, out);
        return SDLF_OK;
    }
    const char *from = (const char *)tensor->data + (size_t)first * size;
    if (onnx_type_dtype(tensor->type) == to && tensor->type != ONNX_BOOL)
        return onnx_map_read(tensor->map, from, (uint64_t)count * size, out);
    for (int64_t i = 0; i < count && status == SDLF_OK; i += CHUNK) {
        int64_t length = count - i < CHUNK ? count - i : CHUNK;
        onnx_tensor piece = {.type = tensor->type, .count = length, .data = room};
        status = onnx_map_read(tensor->map, from + (size_t)i * size, (uint64_t)length * size, room);
        if (status == SDLF_OK) onnx_tensor_convert(&piece, 0, length, to, (char *)out + (size_t)i * to_size);
    }
    return status;
}

/* A row-major matrix (A,B), which becomes (B,A): some rows at a time, in square blocks. */
static sdlf_status transpose(sdlf_shape shape, const onnx_tensor *tensor, int64_t first, void *room, float *out)
{
    enum { SIDE = 64, LEAST = 16 };
    int64_t rows = shape.dim[1], columns = shape.dim[0]; /* of the tensor */
    int64_t most = columns < CHUNK / SIDE ? SIDE : columns < CHUNK / LEAST ? CHUNK / columns : LEAST;
    if (most > rows) most = rows;
    float *strip = columns > 0 ? malloc((size_t)(most * columns) * sizeof *strip) : NULL;
    sdlf_status status = SDLF_OK;
    if (strip == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory filling a parameter");
    for (int64_t i = 0; i < rows && status == SDLF_OK; i += most) {
        int64_t length = rows - i < most ? rows - i : most;
        status = bring(tensor, first + i * columns, length * columns, SDLF_FLOAT32, room, strip);
        for (int64_t j = 0; j < columns && status == SDLF_OK; j += SIDE)
            for (int64_t r = 0; r < length; r++)
                for (int64_t k = j; k < columns && k < j + SIDE; k++) out[k * rows + i + r] = strip[r * columns + k];
    }
    free(strip);
    return status;
}

static void repeat(const onnx_tensor *tensor, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i += tensor->count) {
        int64_t length = count - i < tensor->count ? count - i : tensor->count;
        onnx_tensor_convert(tensor, 0, length, SDLF_FLOAT32, out + i);
    }
}

/* Does it fill the parameter? */
static sdlf_status check_fill(const onnx_fill *fill, const sdlf_parameter *parameter)
{
    const onnx_tensor *tensor = &fill->tensor;
    if (tensor->type == ONNX_UNDEFINED) return SDLF_OK;
    int64_t count = sdlf_shape_count(parameter->spec.shape);
    if (tensor->count - fill->first >= (fill->repeat ? 1 : count)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s of shape %s cannot be filled from '%s' of shape %s", parameter->name,
                     sdlf_shape_print(parameter->spec.shape).text, tensor->name, sdlf_shape_print(tensor->shape).text);
}

/* Do some of the parameter's values come from as many elements that follow one another? */
static bool is_straight(const onnx_fill *fill)
{
    return !fill->transpose && !fill->repeat;
}

/* Values first .. first + count - 1 of a parameter of that shape; all of it, unless the fill is straight. */
static sdlf_status fill_values(const onnx_fill *fill, sdlf_shape shape, int64_t first, int64_t count, void *room,
                               float *values)
{
    const onnx_tensor *tensor = &fill->tensor;
    if (tensor->type == ONNX_UNDEFINED) {
        for (int64_t i = 0; i < count; i++) values[i] = (float)fill->value;
        return SDLF_OK;
    }
    sdlf_status status = SDLF_OK;
    if (fill->transpose)
        status = transpose(shape, tensor, fill->first, room, values);
    else if (fill->repeat)
        repeat(tensor, count, values);
    else
        status = bring(tensor, fill->first + first, count, SDLF_FLOAT32, room, values);
    if (fill->scale != 0 && fill->scale != 1)
        for (int64_t i = 0; i < count; i++) values[i] *= fill->scale;
    return status;
}

static sdlf_status fill_parameter(const onnx_import *import, const onnx_fill *fill, void *room)
{
    sdlf_parameter *parameter = NULL;
    sdlf_status status = find(import, fill, &parameter);
    if (status == SDLF_OK) status = check_fill(fill, parameter);
    if (status != SDLF_OK) return status;
    return fill_values(fill, parameter->spec.shape, 0, sdlf_tensor_count(&parameter->value), room,
                       parameter->value.data);
}

sdlf_status onnx_fill_parameters(onnx_import *import)
{
    sdlf_status status = model_allocate(import->model, NULL);
    void *room = malloc((size_t)CHUNK * sizeof(double));
    if (status == SDLF_OK && room == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory filling parameters");
    for (int i = 0; i < import->fill_count && status == SDLF_OK; i++) {
        status = fill_parameter(import, &import->fill[i], room);
        if (status != SDLF_OK) status = sdlf_fail_context(status, "%s", import->file->path);
    }
    free(room);
    return status;
}

/* ---- values that stay in the file ---- */

typedef struct weights_left {
    onnx_file *file;
    const onnx_fill **of; /* of each parameter */
    sdlf_shape *shape;
    void *room;
} weights_left;

static sdlf_status read_left(void *self, int parameter, int64_t first, int64_t count, float *values)
{
    const weights_left *left = self;
    const onnx_fill *fill = left->of[parameter];
    sdlf_status status =
        fill != NULL ? fill_values(fill, left->shape[parameter], first, count, left->room, values) : SDLF_OK;
    if (status == SDLF_OK) status = onnx_file_check(left->file);
    return sdlf_fail_context(status, "%s", left->file->path);
}

static bool reads_pieces(const void *self, int parameter)
{
    const weights_left *left = self;
    return left->of[parameter] != NULL && is_straight(left->of[parameter]);
}

static void close_left(void *self)
{
    weights_left *left = self;
    if (left->file != NULL) {
        onnx_file_close(left->file);
        free(left->file);
    }
    free(left->of);
    free(left->shape);
    free(left->room);
    free(left);
}

static sdlf_status list_fills(const onnx_import *import, weights_left *left)
{
    for (int i = 0; i < import->model->parameter_count; i++) left->shape[i] = import->model->parameters[i].spec.shape;
    for (int i = 0; i < import->fill_count; i++) {
        sdlf_parameter *parameter = NULL;
        sdlf_status status = find(import, &import->fill[i], &parameter);
        if (status == SDLF_OK) status = check_fill(&import->fill[i], parameter);
        if (status != SDLF_OK) return sdlf_fail_context(status, "%s", import->file->path);
        left->of[parameter - import->model->parameters] = &import->fill[i];
    }
    return SDLF_OK;
}

sdlf_status onnx_leave_parameters(onnx_import *import)
{
    size_t count = (size_t)import->model->parameter_count + 1;
    weights_left *left = calloc(1, sizeof *left);
    if (left == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", import->file->path);
    left->of = calloc(count, sizeof *left->of);
    left->shape = calloc(count, sizeof *left->shape);
    left->room = malloc((size_t)CHUNK * sizeof(double));
    sdlf_status status = left->of != NULL && left->shape != NULL && left->room != NULL
                             ? list_fills(import, left)
                             : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", import->file->path);
    if (status != SDLF_OK) {
        close_left(left);
        return status;
    }
    left->file = import->file; /* from here on it is the model's */
    model_leave_values(import->model,
                       (model_source){.read = read_left, .in_pieces = reads_pieces, .close = close_left, .file = left});
    return SDLF_OK;
}
