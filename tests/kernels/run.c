/* SPDX-License-Identifier: MIT */
/* Running a case on a calculator, its operands between guard bytes in the calculator's memory. */
#include "operands.h"

#include "testing.h"

#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xC3 };

typedef struct guarded {
    void *memory;        /* in the calculator's memory */
    unsigned char *host; /* the bytes sent, then those fetched */
    int64_t before, extent, total;
    bool within; /* part of another block, which is sent, fetched and freed instead */
} guarded;

static int64_t guarded_total(int64_t extent, int64_t skew)
{
    return (GUARD + skew + extent + 63) / 64 * 64 + GUARD;
}

static void guarded_fill(guarded *block, const void *image, int64_t extent, int64_t skew)
{
    block->before = GUARD + skew;
    block->extent = extent;
    block->total = guarded_total(extent, skew);
    memset(block->host, GUARD_BYTE, (size_t)block->total);
    if (extent > 0) memcpy(block->host + block->before, image, (size_t)extent);
}

static void guarded_allocate(guarded *block, sdlf_calculator *calculator, int64_t total)
{
    block->total = total;
    block->host = need(malloc((size_t)total));
    CHECK_OK(calculator->type->allocate(calculator, total, &block->memory));
}

static void guarded_send(guarded *block, sdlf_calculator *calculator)
{
    CHECK_OK(calculator->type->upload(calculator, block->memory, block->host, block->total));
}

static void guarded_make(guarded *block, sdlf_calculator *calculator, const void *image, int64_t extent, int64_t skew)
{
    guarded_allocate(block, calculator, guarded_total(extent, skew));
    guarded_fill(block, image, extent, skew);
    guarded_send(block, calculator);
}

/* Scratch memory, poisoned. */
static sdlf_tensor guarded_scratch(guarded *block, sdlf_calculator *calculator, int64_t bytes)
{
    unsigned char *poison = need(malloc((size_t)bytes));
    memset(poison, POISON, (size_t)bytes);
    guarded_make(block, calculator, poison, bytes, 0);
    free(poison);
    return sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), (char *)block->memory + block->before);
}

static void *guarded_data(const guarded *block)
{
    return (char *)block->memory + block->before;
}

static void guarded_fetch(guarded *block, sdlf_calculator *calculator)
{
    if (block->memory && !block->within)
        CHECK_OK(calculator->type->download(calculator, block->host, block->memory, block->total));
}

static bool guarded_is_whole(const guarded *block)
{
    for (int64_t i = 0; i < block->total; i++) {
        if (i == block->before) i += block->extent;
        if (block->host[i] != GUARD_BYTE) return false;
    }
    return true;
}

static void guarded_free(guarded *block, sdlf_calculator *calculator)
{
    if (block->within) return;
    if (block->memory) calculator->type->deallocate(calculator, block->memory);
    free(block->host);
}

/* Place every operand in the calculator's memory: each in its own block, or all consecutively in `room`. */
static void place_operands(guarded *block, guarded *room, sdlf_operation *operation, const kernel_case *made,
                           const kernel_images *images, sdlf_calculator *calculator, int skew)
{
    kernel_images given = *images;
    int64_t total = 0;
    for (int pass = made->one_block ? 0 : 1; pass < 2; pass++) {
        if (pass == 1 && made->one_block) guarded_allocate(room, calculator, total);
        int64_t at = 0;
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            sdlf_tensor *tensor = sdlf_operand_at(operation, i);
            if (!sdlf_tensor_present(tensor)) continue;
            int64_t extent = kernel_extent(tensor);
            int64_t moved = tensor->layout == SDLF_CSR ? 0 : skew * (int64_t)sdlf_dtype_size(tensor->dtype);
            if (pass == 0) {
                total += guarded_total(extent, moved);
                continue;
            }
            if (made->one_block) {
                block[i] = (guarded){.memory = (char *)room->memory + at, .host = room->host + at, .within = true};
                guarded_fill(&block[i], *image_at(&given, i), extent, moved);
                at += block[i].total;
            } else {
                guarded_make(&block[i], calculator, *image_at(&given, i), extent, moved);
            }
            tensor->data = guarded_data(&block[i]);
        }
    }
    if (made->one_block) guarded_send(room, calculator);
    if (made->aliased) operation->out[0].data = operation->in[made->alias].data;
}

/* Copy an output to `found`, or check that an input is unchanged. */
static void collect(kernel_images *found, const kernel_case *made, const kernel_images *images, guarded block[],
                    int index, const char *who)
{
    kernel_images given = *images;
    const unsigned char *data = block[index].host + block[index].before;
    if (index >= SDLF_MAX_INPUTS) {
        if (index == SDLF_MAX_INPUTS && made->aliased) { /* the output shares the input's memory */
            const guarded *input = &block[made->alias];
            data = input->host + input->before;
        }
        unsigned char *copy = need(aligned_alloc(64, (size_t)(block[index].extent + 64) / 64 * 64));
        memcpy(copy, data, (size_t)block[index].extent);
        *image_at(found, index) = copy;
    } else if (!(made->aliased && made->alias == index) &&
               memcmp(data, *image_at(&given, index), (size_t)block[index].extent) != 0) {
        kernel_fail(made, who, "input '%s' was changed",
                    sdlf_operand_declared(sdlf_operation_type(&made->operation), index)->name);
    }
}

void kernel_run(kernel_images *found, const kernel_case *made, const kernel_images *images, int algorithm,
                sdlf_calculator *calculator, int skew, bool with_prepared, const char *who)
{
    enum { WORKSPACE = SDLF_MAX_OPERANDS, PREPARED, ROOM, BLOCKS };
    guarded block[BLOCKS] = {{.memory = NULL}};
    sdlf_operation operation = made->operation;
    operation.algorithm = algorithm;
    *found = (kernel_images){.in = {NULL}};
    place_operands(block, &block[ROOM], &operation, made, images, calculator, skew);
    sdlf_calculator_supports(calculator, &operation); /* as plans do: creates what it caches for the operation */
    int64_t prepared = with_prepared ? sdlf_calculator_prepared(calculator, &operation) : 0;
    if (prepared > 0) {
        operation.prepared = guarded_scratch(&block[PREPARED], calculator, prepared);
        CHECK_OK(sdlf_calculator_slot(calculator, &operation)->prepare(calculator, &operation));
    }
    /* in host memory, a kernel must not read weights that were prepacked: they are poisoned until it has run */
    bool unread = prepared > 0 && operation.in[0].layout != SDLF_CSR && sdlf_calculator_is_on_host(calculator);
    guarded *weights = &block[1];
    if (unread) memset(operation.in[1].data, POISON, (size_t)weights->extent);
    int64_t bytes = sdlf_calculator_workspace(calculator, &operation);
    sdlf_operation planned = operation; /* plans query before memory exists */
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) planned.in[i].data = NULL;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) planned.out[i].data = NULL;
    planned.prepared.data = NULL;
    if (sdlf_calculator_workspace(calculator, &planned) != bytes)
        kernel_fail(made, who, "the workspace is of another size while operands have no memory");
    if (bytes > 0) operation.workspace = guarded_scratch(&block[WORKSPACE], calculator, bytes);

    int64_t allocations = test_allocations();
    sdlf_status status = sdlf_calculator_run(calculator, &operation);
    if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
    if (status != SDLF_OK) kernel_fail(made, who, "%s", sdlf_error_message());
    if (test_allocations() != allocations) kernel_fail(made, who, "a kernel allocates nothing, this one did");
    if (unread) memcpy(operation.in[1].data, weights->host + weights->before, (size_t)weights->extent);
    for (int i = 0; i < BLOCKS; i++) guarded_fetch(&block[i], calculator);
    for (int i = 0; i < ROOM; i++) {
        if (block[i].memory && !guarded_is_whole(&block[i])) {
            kernel_fail(made, who, "bytes outside of %s were changed",
                        i == WORKSPACE  ? "the workspace"
                        : i == PREPARED ? "the prepared weights"
                                        : sdlf_operand_declared(sdlf_operation_type(&operation), i)->name);
        }
    }
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        if (block[i].memory) collect(found, made, images, block, i, who);
    }
    for (int i = 0; i < BLOCKS; i++) guarded_free(&block[i], calculator);
}
