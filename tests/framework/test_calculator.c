/* Calculators: the registry, memory of every class, and what running an operation outside a plan checks. */
#include "testing.h"

#include <sdlf/calculator.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the registry and every registered class ---- */

static void classes_are_listed(void)
{
    CHECK(sdlf_calculator_class_at(-1) == NULL);
    bool reference = false;
    int count = 0;
    while (sdlf_calculator_class_at(count)) count++;
    for (int i = 0; i < count; i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        CHECK(type->name && type->summary && type->size >= sizeof(sdlf_calculator));
        for (int j = 0; j < i; j++) CHECK(strcmp(type->name, sdlf_calculator_class_at(j)->name) != 0);
        if (strcmp(type->name, "reference") == 0) reference = true;
    }
    CHECK(reference);
}

static void unknown_names_are_answered_with_the_known(void)
{
    sdlf_calculator *calculator = NULL;
    CHECK_FAILS(sdlf_calculator_open(&calculator, "abacus", NULL), SDLF_ERROR_ARGUMENT, "abacus");
    CHECK(strstr(sdlf_error_message(), "reference"));
    CHECK(calculator == NULL);
    CHECK_FAILS(sdlf_calculator_open(&calculator, NULL, NULL), SDLF_ERROR_ARGUMENT, "no calculator");
    const char *name, *reason;
    for (int i = 0; (name = sdlf_calculator_left_out(i, &reason)); i++) {
        CHECK_FAILS(sdlf_calculator_open(&calculator, name, NULL), SDLF_ERROR_UNSUPPORTED, reason);
        CHECK(calculator == NULL);
        for (int j = 0; sdlf_calculator_class_at(j); j++) CHECK(strcmp(sdlf_calculator_class_at(j)->name, name) != 0);
    }
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.threads = -1}),
                SDLF_ERROR_ARGUMENT, "threads is -1");
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.device = -2}),
                SDLF_ERROR_ARGUMENT, "device is -2");
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.math = SDLF_MATH_COUNT}),
                SDLF_ERROR_ARGUMENT, "no math mode 4");
    sdlf_calculator_close(NULL);
}

static void memory_of(const char *name)
{
    sdlf_calculator *calculator = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&calculator, name, NULL))) return;
    const sdlf_calculator_class *type = calculator->type;
    char text[128] = "";
    type->describe(calculator, text, sizeof text);
    CHECK(strlen(text) > 0);
    CHECK(calculator->space != NULL);

    unsigned char sent[1000], received[1000] = {0};
    for (int i = 0; i < 1000; i++) sent[i] = (unsigned char)(i * 31);
    void *memory = NULL, *nothing = NULL;
    CHECK_OK(type->allocate(calculator, sizeof sent, &memory));
    CHECK_EQUAL((int64_t)((uintptr_t)memory % 64), 0);
    CHECK_OK(type->upload(calculator, memory, sent, sizeof sent));
    CHECK_OK(type->download(calculator, received, memory, sizeof received));
    CHECK_OK(type->synchronize(calculator));
    CHECK(memcmp(sent, received, sizeof sent) == 0);
    CHECK_OK(type->upload(calculator, memory, sent, 0));
    CHECK_OK(type->download(calculator, received, memory, 0));
    CHECK_OK(type->allocate(calculator, 0, &nothing));
    type->deallocate(calculator, nothing);
    type->deallocate(calculator, memory);
    CHECK_FAILS(type->allocate(calculator, INT64_MAX, &memory), SDLF_ERROR_MEMORY, "");
    sdlf_calculator_close(calculator);
}

static void every_class_moves_memory(void)
{
    int64_t live = test_live_allocations();
    for (int i = 0; test_calculator_class_at(i); i++) memory_of(test_calculator_class_at(i)->name);
    CHECK_EQUAL(test_live_allocations(), live);
}

static sdlf_status open_and_close(void *name)
{
    sdlf_calculator *calculator = NULL;
    sdlf_status status = sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.threads = 2});
    sdlf_calculator_close(calculator);
    return status;
}

static void opening_survives_failing_allocations(void)
{
    for (int i = 0; test_calculator_class_at(i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", test_calculator_class_at(i)->name);
        test_every_allocation(name, open_and_close, name);
    }
}

static void one_space_is_shared(void)
{
    sdlf_calculator *a = NULL, *b = NULL;
    CHECK_OK(sdlf_calculator_open(&a, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&b, "reference", NULL));
    sdlf_calculator elsewhere = {.type = a->type, .space = "moon:0"};
    CHECK(sdlf_calculator_shares_memory(a, b));
    CHECK(sdlf_calculator_shares_memory(a, a));
    CHECK(!sdlf_calculator_shares_memory(a, &elsewhere));
    sdlf_calculator_close(a);
    sdlf_calculator_close(b);
}

/* ---- running, watched through a class of the test's own ---- */

typedef struct fake_calculator {
    sdlf_calculator base;
    sdlf_operation seen; /* what the kernel was given */
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

    unsigned char own[128]; /* one that is large enough is used as it is */
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
    operation.algorithm = 1; /* a slot without a list has "auto" alone */
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    operation.algorithm = 0;
    operation.kind = SDLF_DROPOUT_FORWARD;
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    CHECK_EQUAL(sdlf_calculator_workspace(&fake.base, &operation), 0);
    operation.kind = SDLF_OPERATION_COUNT;
    CHECK(!sdlf_calculator_supports(&fake.base, &operation));
    CHECK_FAILS(sdlf_calculator_run(&fake.base, &operation), SDLF_ERROR_ARGUMENT, "no kind of operation");
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

/* Notes follow the names; what is not told is what the operation itself asks for. */
static void algorithms_are_described(void)
{
    sdlf_calculator *cpu = NULL, *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_operation conv = {.kind = SDLF_CONV2D_FORWARD,
                           .in = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2, 5, 6), NULL),
                                  sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(3, 2, 3, 3), NULL)},
                           .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 3, 5, 6), NULL)},
                           .conv2d = {.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, .groups = 1}};
    sdlf_cost asked = sdlf_operation_cost(&conv);
    CHECK_EQUAL(asked.flops, 2 * 3 * 30 * 18);
    const sdlf_kernel_slot *slot = &cpu->type->kernel[SDLF_CONV2D_FORWARD];
    for (int i = 0; slot->algorithms[i]; i++) {
        conv.algorithm = i;
        sdlf_algorithm_note note = sdlf_calculator_note(cpu, &conv);
        CHECK(note.summary && strlen(note.summary) > 0);
        bool request = strcmp(slot->algorithms[i], "naive") == 0 || strncmp(slot->algorithms[i], "winograd", 8) == 0;
        CHECK(note.on_request == request);
        sdlf_cost work = sdlf_calculator_work(cpu, &conv);
        if (strcmp(slot->algorithms[i], "im2col") == 0) { /* the patches, written and read */
            CHECK_EQUAL(work.bytes, asked.bytes + 2 * 18 * 30 * 4);
            CHECK_EQUAL(work.flops, asked.flops);
        }
        if (strcmp(slot->algorithms[i], "winograd-4x4") == 0) { /* 2 tiles by 2 */
            CHECK_EQUAL(work.bytes, asked.bytes + 2 * 36 * (3 * 2 + 4 * (2 + 3)) * 4);
            CHECK_EQUAL(work.flops, 3 * 2 * 108 + 4 * (2 * 228 + 3 * 130) + 2 * 36 * 4 * 3 * 2);
        }
    }
    conv.algorithm = 0;
    const char *taken = sdlf_calculator_algorithm(cpu, &conv);
    CHECK(strcmp(taken, "im2col") == 0 || strcmp(taken, "direct") == 0);
    conv.in[0] = sdlf_tensor_channels_last(conv.in[0]);
    conv.out[0] = sdlf_tensor_channels_last(conv.out[0]);
    CHECK_TEXT(sdlf_calculator_algorithm(cpu, &conv), "implicit-gemm");
    CHECK(sdlf_calculator_note(reference, &conv).summary == NULL);
    CHECK_EQUAL(sdlf_calculator_work(reference, &conv).flops, asked.flops);
    CHECK_EQUAL(sdlf_calculator_work(reference, &conv).bytes, asked.bytes);
    conv.algorithm = 99;
    CHECK(sdlf_calculator_note(cpu, &conv).summary == NULL);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* Of every calculator: each algorithm of a convolution has a note, and "auto" takes one that takes the operation and does not
 * wait to be asked for. */
static void check_automatic(sdlf_calculator *calculator, sdlf_operation operation)
{
    const sdlf_kernel_slot *slot = &calculator->type->kernel[operation.kind];
    for (int i = 0; slot->notes && slot->algorithms[i]; i++) CHECK(slot->notes[i].summary && *slot->notes[i].summary);
    if (!slot->automatic || !sdlf_calculator_supports(calculator, &operation)) return;
    const char *auto_name = slot->algorithms[0];
    CHECK(strcmp(sdlf_calculator_algorithm(calculator, &operation), auto_name) != 0);
    sdlf_cost least = sdlf_operation_cost(&operation), work = sdlf_calculator_work(calculator, &operation);
    CHECK(work.bytes >= least.bytes && work.flops > 0);
    operation.algorithm = slot->automatic(calculator, &operation);
    CHECK(!sdlf_calculator_note(calculator, &operation).on_request);
    CHECK(sdlf_calculator_supports(calculator, &operation));
}

static void what_auto_takes_is_told(void)
{
    static const struct {
        int n, c, side, k, size, stride, groups;
    } shapes[] = {{1, 3, 31, 1, 3, 1, 1},     {2, 64, 56, 64, 3, 1, 1},  {1, 512, 14, 512, 3, 1, 1},
                  {1, 32, 112, 32, 3, 1, 32}, {32, 96, 28, 24, 1, 1, 1}, {1, 3, 64, 64, 7, 2, 1},
                  {1, 2, 40, 3, 33, 1, 1}};
    for (int i = 0; test_calculator_class_at(i); i++) {
        sdlf_calculator *calculator = NULL;
        if (sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL) != SDLF_OK) continue;
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
            int size = shapes[j].size, stride = shapes[j].stride, out = (shapes[j].side - 1) / stride + 1;
            sdlf_tensor x = sdlf_tensor_view(
                SDLF_FLOAT32, sdlf_shape(shapes[j].n, shapes[j].c, shapes[j].side, shapes[j].side), NULL);
            sdlf_tensor w = sdlf_tensor_view(SDLF_FLOAT32,
                                             sdlf_shape(shapes[j].k, shapes[j].c / shapes[j].groups, size, size), NULL);
            sdlf_tensor y = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(shapes[j].n, shapes[j].k, out, out), NULL);
            sdlf_operation operation = {
                .kind = SDLF_CONV2D_FORWARD,
                .in = {x, w},
                .out = {y},
                .conv2d = {
                    .window = {{size, size}, {stride, stride}, {1, 1}, {size / 2, size / 2}, {size / 2, size / 2}},
                    .groups = shapes[j].groups}};
            CHECK_OK(sdlf_operation_check(&operation));
            check_automatic(calculator, operation);
            operation.kind = SDLF_CONV2D_BACKWARD_INPUT;
            operation.in[0] = y;
            operation.out[0] = x;
            check_automatic(calculator, operation);
            operation.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
            operation.in[0] = x;
            operation.in[1] = y;
            operation.out[0] = w;
            check_automatic(calculator, operation);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(classes_are_listed);
    RUN(unknown_names_are_answered_with_the_known);
    RUN(every_class_moves_memory);
    RUN(opening_survives_failing_allocations);
    RUN(one_space_is_shared);
    RUN(workspace_is_taken_and_given_back);
    RUN(what_is_not_supported_is_refused);
    RUN(memory_of_operands_is_checked);
    RUN(algorithms_are_described);
    RUN(what_auto_takes_is_told);
    return test_summary();
}
