/* SPDX-License-Identifier: MIT */
/* Tensor memory from the heap and from a user-defined allocator. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/heap.h"
#include "testing.h"

typedef struct counts {
    int allocated, released;
    bool empty; /* it is exhausted */
} counts;

static void *allocate(size_t bytes, size_t alignment, void *user)
{
    counts *c = user;
    CHECK(bytes > 0 && (alignment & (alignment - 1)) == 0);
    if (c->empty) return NULL;
    void *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory != NULL) memset(memory, 0xcd, bytes);
    c->allocated += memory != NULL;
    return memory;
}

static void release(void *memory, void *user)
{
    ((counts *)user)->released++;
    free(memory);
}

static sdlf_status train_a_step(void)
{
    sdlf_model *model = sdlf_model_create("small");
    sdlf_output(model, "y",
                sdlf_fully_connected(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(5)),
                                     &(sdlf_fully_connected_options){.units = 3}));
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_plan *plan = NULL;
    const float x[10] = {1, 2, 3};
    sdlf_status status =
        sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = cpu});
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x);
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "labels", (int32_t[]){0, 2}, SDLF_INT32, 8);
    if (status == SDLF_OK) status = sdlf_plan_step(plan, 0.1f);
    sdlf_plan_free(plan);
    sdlf_calculator_close(cpu);
    sdlf_model_free(model);
    return status;
}

static void a_program_brings_its_memory(void)
{
    counts c = {0};
    const sdlf_allocator own = {.allocate = allocate, .release = release, .user = &c};
    CHECK_OK(sdlf_set_allocator(&own));
    CHECK_OK(train_a_step());
    CHECK(c.allocated > 1);
    CHECK_EQUAL(c.released, c.allocated);
    c.empty = true;
    CHECK_EQUAL(train_a_step(), SDLF_ERROR_MEMORY);
    CHECK_EQUAL(c.released, c.allocated);
    CHECK_OK(sdlf_set_allocator(NULL));
    CHECK_OK(train_a_step());
    CHECK_EQUAL(c.released, c.allocated);
}

static void not_while_memory_is_in_use(void)
{
    counts c = {0};
    const sdlf_allocator own = {.allocate = allocate, .release = release, .user = &c};
    void *memory = sdlf_heap_allocate(100);
    CHECK(memory != NULL && (uintptr_t)memory % SDLF_HEAP_ALIGNMENT == 0);
    CHECK_FAILS(sdlf_set_allocator(&own), SDLF_ERROR_ARGUMENT, "1 blocks of the allocator before are in use");
    sdlf_heap_free(memory);
    CHECK_FAILS(sdlf_set_allocator(&(sdlf_allocator){.allocate = allocate}), SDLF_ERROR_ARGUMENT, "release is NULL");
    CHECK_FAILS(sdlf_set_allocator(&(sdlf_allocator){.release = release}), SDLF_ERROR_ARGUMENT, "allocate is NULL");
    CHECK_EQUAL(c.allocated, 0);
}

static void nonsense_has_no_memory(void)
{
    CHECK(sdlf_heap_allocate(-1) == NULL && sdlf_heap_allocate(INT64_MAX) == NULL);
    sdlf_heap_free(NULL);
}

int main(void)
{
    RUN(a_program_brings_its_memory);
    RUN(not_while_memory_is_in_use);
    RUN(nonsense_has_no_memory);
    return test_summary();
}
