/* Running a case on a calculator, its operands between guard bytes in the calculator's memory. */
#include "operands.h"

#include "testing.h"

#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xC3 };

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
