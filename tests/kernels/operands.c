/* SPDX-License-Identifier: MIT */
/* Filling the operands of kernel tests on the host. */
#include "operands.h"

#include "testing.h"

#include <math.h>
#include <string.h>

#include <sdlf/random.h>

int64_t kernel_extent(const sdlf_tensor *tensor)
{
    if (tensor->layout == SDLF_CSR) return sdlf_tensor_bytes(tensor);
    if (sdlf_tensor_count(tensor) <= 0) return 0;
    int64_t last = 0;
    for (int i = 0; i < tensor->shape.rank; i++) last += (tensor->shape.dim[i] - 1) * tensor->stride[i];
    return (last + 1) * (int64_t)sdlf_dtype_size(tensor->dtype);
}

/* ---- filling ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static double anything(double u, const uint32_t word[4])
{
    switch (word[2] % 23) {
    case 0: return (double)NAN;
    case 1: return (double)INFINITY;
    case 2: return -(double)INFINITY;
    case 3: return -0.0;
    default: return ldexp(2 * u - 1, (int)(word[3] % 60) - 28);
    }
}

static double draw(kernel_fill fill, const uint32_t word[4])
{
    double u = ((double)word[0] + (double)word[1] * 0x1p-32) * 0x1p-32;
    switch (fill.values) {
    case VALUES_GRID_NAN:
        if (word[2] % 13 == 0) return (double)NAN;
        return (double)(word[0] % 9) / 4 - 1;
    case VALUES_GRID: return (double)(word[0] % 9) / 4 - 1;
    case VALUES_WIDE: return (word[2] % 7 == 0 ? 1000 : 20) * (2 * u - 1);
    case VALUES_POSITIVE: return 0.1 + u;
    case VALUES_OFFSET: return 99 + 2 * u;
    case VALUES_INTEGERS: return (double)(word[0] % (uint64_t)fill.limit);
    case VALUES_ANYTHING: return anything(u, word);
    case VALUES_HUGE: return (word[2] & 1 ? -1 : 1) * ldexp(1 + u, 4 + (int)(word[3] % (uint64_t)(fill.limit - 4)));
    default: return 2 * u - 1;
    }
}

static void fill_image(unsigned char *image, const sdlf_tensor *tensor, kernel_fill fill, uint64_t seed, int stream)
{
    size_t size = sdlf_dtype_size(tensor->dtype);
    int64_t count = kernel_extent(tensor) / (int64_t)size;
    bool any_bits = fill.values == VALUES_ANYTHING && !sdlf_dtype_is_float(tensor->dtype);
    for (int64_t e = 0; e < count; e++) {
        sdlf_philox random = sdlf_philox4x32(seed, (uint64_t)e, (uint32_t)stream, 0);
        double value = draw(fill, random.word);
        if (any_bits) {
            memcpy(image + (size_t)e * size, random.word, size);
            if (tensor->dtype == SDLF_BOOL) image[e] &= 1;
        } else {
            sdlf_convert(tensor->dtype, image + (size_t)e * size, SDLF_FLOAT64, &value, 1);
        }
    }
}

/* Elements of row r of `rows`, if `left` of all `stored` remain for it and the following rows. */
static int64_t row_length(kernel_graph graph, int64_t r, int64_t rows, int64_t stored, int64_t left)
{
    if (r == rows - 1) return left;
    int64_t wanted = stored / rows + (r < stored % rows);
    if (graph == GRAPH_LAST) return 0;
    if (graph == GRAPH_HUB) wanted = r == rows / 2 ? stored / 2 : r % 3 == 0 ? 0 : stored / (2 * rows);
    return wanted < left ? wanted : left;
}

static void fill_graph(unsigned char *image, const sdlf_tensor *tensor, kernel_fill fill, uint64_t seed, int stream)
{
    sdlf_tensor matrix = *tensor;
    matrix.data = image;
    int64_t *offsets = sdlf_csr_offsets(&matrix), rows = matrix.shape.dim[0], left = matrix.stored;
    int32_t *columns = sdlf_csr_columns(&matrix);
    offsets[0] = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t length = row_length((kernel_graph)fill.limit, r, rows, matrix.stored, left);
        offsets[r + 1] = offsets[r] + length;
        left -= length;
    }
    for (int64_t e = 0; e < matrix.stored; e++) {
        sdlf_philox random = sdlf_philox4x32(seed, (uint64_t)e, (uint32_t)stream, 1);
        columns[e] = (int32_t)(random.word[0] % (uint64_t)matrix.shape.dim[1]);
    }
    sdlf_tensor values = sdlf_tensor_view(matrix.dtype, sdlf_shape(matrix.stored), NULL);
    fill_image(sdlf_csr_values(&matrix), &values, (kernel_fill){VALUES_UNIFORM, 0}, seed, stream);
    if (rows > 0) CHECK_OK(sdlf_csr_check(&matrix));
}

/* ---- all operands of a case ---- */

void kernel_images_make(kernel_images *images, const kernel_case *made, sdlf_calculator *host)
{
    uint64_t seed = hash_of(made->name);
    *images = (kernel_images){.in = {NULL}};
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *tensor = sdlf_operand_at(&made->operation, i);
        if (!sdlf_tensor_present(tensor)) continue;
        int64_t extent = kernel_extent(tensor);
        unsigned char *image = need(aligned_alloc(64, (size_t)(extent + 64) / 64 * 64));
        memset(image, POISON, (size_t)extent);
        bool input = i < SDLF_MAX_INPUTS;
        if (input || sdlf_operand_declared(sdlf_operation_type(&made->operation), i)->updated) {
            kernel_fill fill = input ? made->in[i] : made->out[i - SDLF_MAX_INPUTS];
            (tensor->layout == SDLF_CSR ? fill_graph : fill_image)(image, tensor, fill, seed, i);
        }
        *image_at(images, i) = image;
    }
    sdlf_operation bound = kernel_bind(made, images);
    if (made->prepare) made->prepare(host, &bound);
}

void kernel_images_free(kernel_images *images)
{
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) free(*image_at(images, i));
    *images = (kernel_images){.in = {NULL}};
}

sdlf_operation kernel_bind(const kernel_case *made, const kernel_images *images)
{
    sdlf_operation bound = made->operation;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) bound.in[i].data = images->in[i];
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) bound.out[i].data = images->out[i];
    return bound;
}

void kernel_prepare(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    CHECK_OK(sdlf_calculator_run(calculator, operation));
}
