/* Operands of kernel tests: what fills them, the guards around them, how outputs are compared. */
#include "kernels.h"

#include "testing.h"

#include <sdlf/random.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xC3, POISON = 0xFF, OPERANDS = SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS };

static void *need(void *memory)
{
    if (memory) return memory;
    printf("the test itself has run out of memory\n");
    exit(1);
}

static int64_t failures;

int64_t kernel_failures(void)
{
    return failures;
}

void kernel_fail(const kernel_case *made, const char *who, const char *format, ...)
{
    char text[400], line[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s on %s: %s", made->name, who, text);
    test_check(false, __FILE__, __LINE__, line);
    failures++;
}

/* ---- operands, inputs before outputs ---- */

static const sdlf_tensor *tensor_at(const sdlf_operation *operation, int index)
{
    return index < SDLF_MAX_INPUTS ? &operation->in[index] : &operation->out[index - SDLF_MAX_INPUTS];
}

static const sdlf_operand *declared_at(const sdlf_operation *operation, int index)
{
    const sdlf_operation_class *type = sdlf_operation_class_of(operation->kind);
    return index < SDLF_MAX_INPUTS ? &type->in[index] : &type->out[index - SDLF_MAX_INPUTS];
}

static unsigned char **image_at(kernel_images *images, int index)
{
    return index < SDLF_MAX_INPUTS ? &images->in[index] : &images->out[index - SDLF_MAX_INPUTS];
}

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

/* Elements of row r of `rows`, when `stored` are left for it and the rows behind it. */
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

void kernel_images_make(kernel_images *images, const kernel_case *made, sdlf_calculator *host)
{
    uint64_t seed = hash_of(made->name);
    *images = (kernel_images){.in = {NULL}};
    for (int i = 0; i < OPERANDS; i++) {
        const sdlf_tensor *tensor = tensor_at(&made->operation, i);
        if (!sdlf_tensor_present(tensor)) continue;
        int64_t extent = kernel_extent(tensor);
        unsigned char *image = need(aligned_alloc(64, (size_t)(extent + 64) / 64 * 64));
        memset(image, POISON, (size_t)extent);
        bool input = i < SDLF_MAX_INPUTS;
        if (input || declared_at(&made->operation, i)->updated) {
            kernel_fill fill = input ? made->in[i] : made->out[i - SDLF_MAX_INPUTS];
            (tensor->layout == SDLF_CSR ? fill_graph : fill_image)(image, tensor, fill, seed, i);
        }
        *image_at(images, i) = image;
    }
    sdlf_operation bound = kernel_bind(made, images);
    if (made->prepare) made->prepare(host, &bound);
}

void kernel_images_copy_outputs(kernel_images *images, const kernel_images *from, const kernel_case *made)
{
    *images = (kernel_images){.in = {NULL}};
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (!from->out[i]) continue;
        int64_t extent = kernel_extent(&made->operation.out[i]);
        images->out[i] = need(aligned_alloc(64, (size_t)(extent + 64) / 64 * 64));
        memcpy(images->out[i], from->out[i], (size_t)extent);
    }
}

void kernel_images_free(kernel_images *images)
{
    for (int i = 0; i < OPERANDS; i++) free(*image_at(images, i));
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

/* ---- guarded blocks in a calculator's memory ---- */

typedef struct guarded {
    void *memory;
    unsigned char *host; /* what was sent, then what came back */
    int64_t before, extent, total;
} guarded;

static void guarded_make(guarded *block, sdlf_calculator *calculator, const void *image, int64_t extent, int64_t skew)
{
    block->before = GUARD + skew;
    block->extent = extent;
    block->total = (block->before + extent + 63) / 64 * 64 + GUARD;
    block->host = need(malloc((size_t)block->total));
    memset(block->host, GUARD_BYTE, (size_t)block->total);
    if (extent > 0) memcpy(block->host + block->before, image, (size_t)extent);
    CHECK_OK(calculator->type->allocate(calculator, block->total, &block->memory));
    CHECK_OK(calculator->type->upload(calculator, block->memory, block->host, block->total));
}

static void *guarded_data(const guarded *block)
{
    return (char *)block->memory + block->before;
}

/* Fetch the block; are its guards whole? */
static bool guarded_fetch(guarded *block, sdlf_calculator *calculator)
{
    CHECK_OK(calculator->type->download(calculator, block->host, block->memory, block->total));
    for (int64_t i = 0; i < block->total; i++) {
        if (i == block->before) i += block->extent;
        if (block->host[i] != GUARD_BYTE) return false;
    }
    return true;
}

static void guarded_free(guarded *block, sdlf_calculator *calculator)
{
    if (block->memory) calculator->type->deallocate(calculator, block->memory);
    free(block->host);
}

/* Copy an output to `found`, or see that an input is what it was. */
static void collect(kernel_images *found, const kernel_case *made, const kernel_images *images, guarded block[],
                    int index, const char *who)
{
    kernel_images given = *images;
    const unsigned char *data = block[index].host + block[index].before;
    if (index >= SDLF_MAX_INPUTS) {
        if (index == SDLF_MAX_INPUTS && made->aliased) { /* it lies where the input lay */
            const guarded *input = &block[made->alias];
            data = input->host + input->before;
        }
        unsigned char *copy = need(aligned_alloc(64, (size_t)(block[index].extent + 64) / 64 * 64));
        memcpy(copy, data, (size_t)block[index].extent);
        *image_at(found, index) = copy;
    } else if (!(made->aliased && made->alias == index) &&
               memcmp(data, *image_at(&given, index), (size_t)block[index].extent) != 0) {
        kernel_fail(made, who, "input '%s' was changed", declared_at(&made->operation, index)->name);
    }
}

void kernel_run(kernel_images *found, const kernel_case *made, const kernel_images *images, int algorithm,
                sdlf_calculator *calculator, int skew, bool with_prepared, const char *who)
{
    kernel_images given = *images;
    guarded block[OPERANDS + 2] = {{.memory = NULL}}; /* the workspace and prepared weights behind */
    sdlf_operation operation = made->operation;
    operation.algorithm = algorithm;
    *found = (kernel_images){.in = {NULL}};
    for (int i = 0; i < OPERANDS; i++) {
        sdlf_tensor *tensor = i < SDLF_MAX_INPUTS ? &operation.in[i] : &operation.out[i - SDLF_MAX_INPUTS];
        if (!sdlf_tensor_present(tensor)) continue;
        guarded_make(&block[i], calculator, *image_at(&given, i), kernel_extent(tensor),
                     tensor->layout == SDLF_CSR ? 0 : skew * (int64_t)sdlf_dtype_size(tensor->dtype));
        tensor->data = guarded_data(&block[i]);
    }
    if (made->aliased) operation.out[0].data = operation.in[made->alias].data;
    int64_t prepared = with_prepared ? sdlf_calculator_prepared(calculator, &operation) : 0;
    if (prepared > 0) {
        unsigned char *poison = need(malloc((size_t)prepared));
        memset(poison, POISON, (size_t)prepared);
        guarded_make(&block[OPERANDS + 1], calculator, poison, prepared, 0);
        operation.prepared = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(prepared), guarded_data(&block[OPERANDS + 1]));
        free(poison);
        CHECK_OK(calculator->type->kernel[operation.kind].prepare(calculator, &operation));
    }
    int64_t bytes = sdlf_calculator_workspace(calculator, &operation);
    if (bytes > 0) {
        unsigned char *poison = need(malloc((size_t)bytes));
        memset(poison, POISON, (size_t)bytes);
        guarded_make(&block[OPERANDS], calculator, poison, bytes, 0);
        operation.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), guarded_data(&block[OPERANDS]));
        free(poison);
    }

    int64_t allocations = test_allocations();
    sdlf_status status = sdlf_calculator_run(calculator, &operation);
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    if (status != SDLF_OK) kernel_fail(made, who, "%s", sdlf_error_message());
    if (test_allocations() != allocations) kernel_fail(made, who, "a kernel allocates nothing, this one did");
    for (int i = 0; i < OPERANDS + 2; i++) {
        if (block[i].memory && !guarded_fetch(&block[i], calculator)) {
            kernel_fail(made, who, "bytes outside of %s were changed",
                        i == OPERANDS       ? "the workspace"
                        : i == OPERANDS + 1 ? "the prepared weights"
                                            : declared_at(&operation, i)->name);
        }
    }
    for (int i = 0; i < OPERANDS; i++) {
        if (block[i].memory) collect(found, made, images, block, i, who);
    }
    for (int i = 0; i < OPERANDS + 2; i++) guarded_free(&block[i], calculator);
}

/* ---- comparing ---- */

static double rounding_error(sdlf_dtype dtype)
{
    return dtype == SDLF_FLOAT64 ? 0x1p-53 : 0x1p-24;
}

static bool close_enough(double found, double expected, double allowed)
{
    if (isnan(found) || isnan(expected)) return isnan(found) && isnan(expected);
    return found == expected || fabs(found - expected) <= allowed;
}

bool kernel_compare(const kernel_case *made, const kernel_images *found, const kernel_images *expected, const char *who)
{
    if (made->tolerance == 0) return kernel_compare_bits(made, found, expected, who);
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *tensor = &made->operation.out[i];
        const char *name = declared_at(&made->operation, SDLF_MAX_INPUTS + i)->name;
        double unit = made->tolerance * rounding_error(kernel_dtype(&made->operation));
        if (!sdlf_dtype_is_float(tensor->dtype)) unit = 0;
        size_t size = sdlf_dtype_size(tensor->dtype);
        for (int64_t e = 0; e < sdlf_tensor_count(tensor); e++) {
            double a, b, least = made->floor > 0 ? made->floor : 1;
            sdlf_convert(SDLF_FLOAT64, &a, tensor->dtype, found->out[i] + (size_t)e * size, 1);
            sdlf_convert(SDLF_FLOAT64, &b, tensor->dtype, expected->out[i] + (size_t)e * size, 1);
            double allowed = unit * (fabs(b) > least ? fabs(b) : least) + 3 * made->rounding * sqrt(made->tolerance);
            if (close_enough(a, b, allowed)) continue;
            kernel_fail(made, who, "%s[%" PRId64 "] is %.9g, expected %.9g (difference %.2g, allowed %.2g)", name, e, a,
                        b, a - b, allowed);
            return false;
        }
    }
    return true;
}

bool kernel_compare_bits(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                         const char *who)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *tensor = &made->operation.out[i];
        int64_t size = (int64_t)sdlf_dtype_size(tensor->dtype), extent = kernel_extent(tensor);
        for (int64_t byte = 0; byte < extent; byte += size) {
            const unsigned char *a = found->out[i] + byte, *b = expected->out[i] + byte;
            if (memcmp(a, b, (size_t)size) == 0) continue;
            double x, y;
            sdlf_convert(SDLF_FLOAT64, &x, tensor->dtype, a, 1);
            sdlf_convert(SDLF_FLOAT64, &y, tensor->dtype, b, 1);
            if (isnan(x) && isnan(y) && sdlf_dtype_is_float(tensor->dtype)) continue; /* whatever its payload */
            kernel_fail(made, who, "%s at element %" PRId64 " is %.17g, expected the same bits as %.17g",
                        declared_at(&made->operation, SDLF_MAX_INPUTS + i)->name, byte / size, x, y);
            return false;
        }
    }
    return true;
}
