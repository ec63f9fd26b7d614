/* SPDX-License-Identifier: MIT */
/* The checks of an operation run outside a plan, and its workspace, observed through a calculator class of the test. */
#include "testing.h"

#include <sdlf/calculator.h>

#include <stdlib.h>

typedef struct fake_calculator {
    sdlf_calculator base;
    sdlf_operation seen; /* the kernel's argument */
    int runs, synchronized, live_blocks;
    bool freed_before_synchronize;
    sdlf_status result;
} fake_calculator;

static sdlf_status fake_allocate(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (*memory) ((fake_calculator *)calculator)->live_blocks++;
    return *memory ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "the fake is full");
}

static void fake_deallocate(sdlf_calculator *calculator, void *memory)
{
    fake_calculator *fake = (fake_calculator *)calculator;
    fake->live_blocks--;
    if (!fake->synchronized) fake->freed_before_synchronize = true;
    free(memory);
}

static sdlf_status fake_synchronize(sdlf_calculator *calculator)
{
    ((fake_calculator *)calculator)->synchronized++;
    return SDLF_OK;
}

static sdlf_status fake_kernel(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    fake_calculator *fake = (fake_calculator *)calculator;
    fake->seen = *operation;
    fake->runs++;
    return fake->result;
}

static bool takes_float32(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return operation->out[0].dtype == SDLF_FLOAT32;
}

static int64_t hundred_bytes(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator, (void)operation;
    return 100;
}

static const char *const algorithms[] = {"auto", "slow", "fast", NULL};

static const sdlf_calculator_class fake_class = {
    .name = "fake",
    .size = sizeof(fake_calculator),
    .allocate = fake_allocate,
    .deallocate = fake_deallocate,
    .synchronize = fake_synchronize,
    .kernel =
        {
            [SDLF_FILL] = {.run = fake_kernel},
            [SDLF_ADD] = {.run = fake_kernel, .workspace = hundred_bytes, .algorithms = algorithms},
            [SDLF_ACTIVATION_FORWARD] = {.run = fake_kernel, .supports = takes_float32},
        },
};

static fake_calculator make_fake(void)
{
    return (fake_calculator){.base = {.type = &fake_class, .space = "fake"}};
}

static sdlf_operation add_of(double *memory, sdlf_dtype dtype)
{
    sdlf_shape shape = sdlf_shape(2);
    return (sdlf_operation){
        .kind = SDLF_ADD,
        .in = {sdlf_tensor_view(dtype, shape, memory), sdlf_tensor_view(dtype, shape, memory + 2)},
        .out = {sdlf_tensor_view(dtype, shape, memory + 4)},
    };
}

static void workspace_is_taken_and_given_back(void)
{
    fake_calculator fake = make_fake();
    double memory[6];
    sdlf_operation add = add_of(memory, SDLF_FLOAT64);
    CHECK_OK(sdlf_calculator_run(&fake.base, &add));
    CHECK_EQUAL(fake.runs, 1);
    CHECK_EQUAL(sdlf_tensor_bytes(&fake.seen.workspace), 100);
    CHECK(fake.seen.workspace.data != NULL);
    CHECK_EQUAL(fake.live_blocks, 0);
    CHECK_EQUAL(fake.synchronized, 1);
    CHECK(!fake.freed_before_synchronize);

    fake.result = SDLF_ERROR_DEVICE; /* also after a failure */
    CHECK(sdlf_calculator_run(&fake.base, &add) == SDLF_ERROR_DEVICE);
    CHECK_EQUAL(fake.live_blocks, 0);
    fake.result = SDLF_OK;

    unsigned char own[128]; /* one that is large enough is used directly */
    add.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(sizeof own), own);
    CHECK_OK(sdlf_calculator_run(&fake.base, &add));
    CHECK(fake.seen.workspace.data == own);
    add.workspace = (sdlf_tensor){.dtype = SDLF_NONE};
    test_fail_allocation(1);
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &add), SDLF_ERROR_MEMORY,
                "add: workspace of 100 bytes: the fake is full");
}

static void what_is_not_supported_is_refused(void)
{
    fake_calculator fake = make_fake();
    double memory[6];
    sdlf_operation operation = add_of(memory, SDLF_FLOAT64);
    operation.algorithm = 2;
    CHECK(sdlf_calculator_supports(&fake.base, &operation));
    operation.algorithm = 3;
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &operation), SDLF_ERROR_UNSUPPORTED, "'fake' has no add");
    operation.algorithm = -1;
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));

    operation = add_of(memory, SDLF_FLOAT64);
    operation.kind = SDLF_ACTIVATION_FORWARD;
    operation.in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    operation.activation = (sdlf_activation){.function = SDLF_RELU};
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &operation), SDLF_ERROR_UNSUPPORTED, "activation_forward");
    operation.in[0].dtype = operation.out[0].dtype = SDLF_FLOAT32;
    CHECK_OK(sdlf_calculator_run(&fake.base, &operation));
    operation.algorithm = 1; /* a slot without a list has only "auto" */
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    operation.algorithm = 0;
    operation.kind = SDLF_DROPOUT_FORWARD;
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    CHECK_EQUAL(sdlf_calculator_workspace(&fake.base, &operation), 0);
    operation.kind = SDLF_OPERATION_COUNT;
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &operation), SDLF_ERROR_ARGUMENT, "not a kind of operation");
}

static void memory_of_operands_is_checked(void)
{
    fake_calculator fake = make_fake();
    double memory[8];
    sdlf_operation add = add_of(memory, SDLF_FLOAT64);
    add.in[1].data = NULL;
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &add), SDLF_ERROR_ARGUMENT, "add: operand 'b' has no memory");
    add = add_of(memory, SDLF_FLOAT64);
    add.out[0].data = memory; /* add allows it */
    CHECK_OK(sdlf_calculator_run(&fake.base, &add));
    add.out[0].data = memory + 1; /* but not half of it */
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &add), SDLF_ERROR_ARGUMENT, "operand 'y' overlaps operand 'a'");
    CHECK_EQUAL(fake.runs, 1);

    sdlf_operation empty = {.kind = SDLF_FILL, .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(0, 3), NULL)}};
    CHECK_OK(sdlf_calculator_run(&fake.base, &empty));
}

int main(void)
{
    RUN(workspace_is_taken_and_given_back);
    RUN(what_is_not_supported_is_refused);
    RUN(memory_of_operands_is_checked);
    return test_summary();
}
