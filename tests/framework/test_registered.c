/* SPDX-License-Identifier: MIT */
/* Classes registered by a program: layers by name in network files, calculators that inherit missing operations.
 * apps/examples/extend.c trains with both. */
#include <stdatomic.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/registered.h"
#include "testing.h"

/* ---- a layer: twice its input ---- */

typedef struct doubled_options {
    const char *name;
    int unused;
} doubled_options;

static const sdlf_field fields[] = {
    {.name = "unused", .offset = offsetof(doubled_options, unused), .maximum = 9, .help = "nothing"}, {.name = NULL}};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    return sdlf_signature_add_output(signature, signature->input_dtype[0], signature->input_shape[0]);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_emit(
        context,
        &(sdlf_operation){.kind = SDLF_ADD, .in = {context->input[0], context->input[0]}, .out = {context->output[0]}});
}

static const sdlf_layer_class doubled = {
    .name = "doubled",
    .summary = "twice its input",
    .options_size = sizeof(doubled_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
};

static void a_layer_is_known_by_its_name(void)
{
    int before = 0, after = 0;
    while (sdlf_layer_class_at(before) != NULL) before++;
    CHECK(sdlf_layer_class_find("doubled") == NULL);
    CHECK_OK(sdlf_register_layer(&doubled));
    CHECK_OK(sdlf_register_layer(&doubled)); /* once more: nothing */
    while (sdlf_layer_class_at(after) != NULL) after++;
    CHECK_EQUAL(after, before + 1);
    CHECK(sdlf_layer_class_at(before) == &doubled && sdlf_layer_class_find("doubled") == &doubled);
}

static const char network[] = "{\"name\": \"own\", \"input\": {\"name\": \"x\", \"shape\": [3]}, \"layers\": ["
                              "{\"type\": \"doubled\"}, {\"type\": \"fully_connected\", \"units\": 2}]}";

static sdlf_model *parse(void)
{
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_network_parse(&model, network, strlen(network), NULL));
    return model;
}

/* Outputs of the network on that calculator. */
static void compute(const char *name, float y[4])
{
    sdlf_model *model = parse();
    sdlf_calculator *calculator = test_open(name);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_model_build(model, 5));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .forward = calculator}));
    const float x[6] = {1, -2, 3, 0.5f, 4, -1};
    CHECK_OK(sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_read(plan, sdlf_model_output_name(model, 0), y, SDLF_FLOAT32, 4 * sizeof *y));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

static void files_have_it(void)
{
    sdlf_model *model = parse(), *again = NULL;
    CHECK(sdlf_model_layer(model, 1)->type == &doubled);
    CHECK_OK(sdlf_model_build(model, 5));
    const char *path = test_path("own.safetensors");
    CHECK_OK(sdlf_model_save(model, path));
    CHECK_OK(sdlf_model_open(&again, path));
    CHECK(sdlf_model_layer(again, 1)->type == &doubled);
    sdlf_status status = sdlf_model_to_onnx(model, test_path("own.onnx"), NULL, NULL);
    CHECK_EQUAL(status, SDLF_ERROR_UNSUPPORTED); /* it has no writer, or the build has none */
    CHECK(strstr(sdlf_error_message(), "doubled") != NULL || strstr(sdlf_error_message(), "ONNX") != NULL);
    sdlf_model_free(again);
    sdlf_model_free(model);
}

/* Check that a copy of the class with one error is rejected, with this message. */
static void check_layer_refused(sdlf_layer_class wrong, const char *said)
{
    CHECK_FAILS(sdlf_register_layer(&wrong), SDLF_ERROR_ARGUMENT, said);
}

static void unsound_layers_are_refused(void)
{
    static const sdlf_field outside[] = {{.name = "far", .offset = sizeof(doubled_options), .help = "-"},
                                         {.name = NULL}};
    static const sdlf_field in_the_name[] = {{.name = "near", .offset = 0, .help = "-"}, {.name = NULL}};
    static const sdlf_field typeless[] = {{.name = "odd", .type = (sdlf_field_type)77, .offset = 8}, {.name = NULL}};
    static const sdlf_field choiceless[] = {{.name = "pick", .type = SDLF_FIELD_CHOICE, .offset = 8}, {.name = NULL}};
    sdlf_layer_class w = doubled;
    check_layer_refused(w, "there is a layer 'doubled' already"); /* another table of that name */
    w.name = "relu", check_layer_refused(w, "there is a layer 'relu' already");
    w.name = "Mine", check_layer_refused(w, "the name 'Mine'");
    w.name = "", check_layer_refused(w, "the name ''");
    w.name = "input", check_layer_refused(w, "not 'input'");
    w.name = NULL, check_layer_refused(w, "(NULL)");
    w.name = "mine", w.infer = NULL, check_layer_refused(w, "'mine': infer is NULL");
    w = doubled, w.name = "mine", w.summary = NULL, check_layer_refused(w, "summary is NULL");
    w = doubled, w.name = "mine", w.fields = NULL, check_layer_refused(w, "fields is NULL");
    w = doubled, w.name = "mine", w.options_size = 4, check_layer_refused(w, "options_size has no room");
    w = doubled, w.name = "mine", w.maximum_inputs = 17, check_layer_refused(w, "must be a range within 0 to 16");
    w = doubled, w.name = "mine", w.backward = forward, w.forward = NULL,
    check_layer_refused(w, "a backward but no forward");
    w = doubled, w.name = "mine", w.reserved[3] = &w, check_layer_refused(w, "reserved members must be zero");
    w = doubled, w.name = "mine", w.fields = outside, check_layer_refused(w, "field 'far': it is outside");
    w.fields = in_the_name, check_layer_refused(w, "field 'near': it overlaps the layer's name");
    w.fields = typeless, check_layer_refused(w, "field 'odd': there is no such type");
    w.fields = choiceless, check_layer_refused(w, "field 'pick': there are no choices");
    w = doubled, w.name = "mine";
    CHECK_FAILS(sdlf_register_layer_sized(&w, sizeof w + 8), SDLF_ERROR_UNSUPPORTED, "was compiled for a newer one");
    CHECK_FAILS(sdlf_register_layer_sized(&w, 16), SDLF_ERROR_ARGUMENT, "smaller than the smallest valid table");
    CHECK(sdlf_layer_class_find("mine") == NULL);
}

/* A table compiled when it had fewer members: the rest is not read, and is zero in the copy. */
static void shorter_layer_tables_are_completed(void)
{
    static sdlf_layer_class older;
    size_t size = offsetof(sdlf_layer_class, reserved);
    memset(&older, 0xff, sizeof older);
    memcpy(&older, &doubled, size);
    older.name = "older_doubled";
    CHECK_OK(sdlf_register_layer_sized(&older, size));
    CHECK_OK(sdlf_register_layer_sized(&older, size)); /* once more: nothing */
    const sdlf_layer_class *found = sdlf_layer_class_find("older_doubled");
    CHECK(found != NULL && found != &older && found->forward == forward && found->reserved[0] == NULL);
    sdlf_layer_class other = doubled;
    other.name = "older_doubled";
    CHECK_FAILS(sdlf_register_layer(&other), SDLF_ERROR_ARGUMENT, "there is a layer 'older_doubled' already");
}

/* ---- calculators ---- */

static atomic_int sums, opened;

static sdlf_status add_counting(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const float *a = operation->in[0].data, *b = operation->in[1].data;
    float *y = operation->out[0].data;
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->out[0]); i++) y[i] = a[i] + b[i];
    atomic_fetch_add(&sums, 1);
    return SDLF_OK;
}

static sdlf_status open_counting(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options;
    CHECK(strcmp(calculator->space, SDLF_HOST_SPACE) == 0); /* inherited members are already set */
    atomic_fetch_add(&opened, 1);
    return SDLF_OK;
}

static sdlf_status open_elsewhere(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options;
    calculator->space = "elsewhere";
    return SDLF_OK;
}

static void close_counting(sdlf_calculator *calculator)
{
    (void)calculator;
    atomic_fetch_sub(&opened, 1);
}

static const sdlf_calculator_class counting = {
    .name = "counting",
    .summary = "counts its sums",
    .size = sizeof(sdlf_calculator),
    .inherits = "cpu",
    .open = open_counting,
    .close = close_counting,
    .kernel[SDLF_ADD].run = add_counting,
};

static void missing_kinds_are_inherited(void)
{
    float expected[4], found[4] = {0};
    CHECK_OK(sdlf_register_calculator(&counting));
    CHECK_OK(sdlf_register_calculator(&counting));
    compute("cpu", expected);
    CHECK_EQUAL(atomic_load(&sums), 0);
    compute("counting", found);
    CHECK_EQUAL(atomic_load(&sums), 1);
    CHECK_EQUAL(atomic_load(&opened), 0);
    for (int i = 0; i < 4; i++) CHECK_CLOSE(found[i], expected[i], 1e-6);
    sdlf_calculator *own = test_open("counting"), *cpu = test_open("cpu");
    char text[256] = "", its[256] = "";
    own->type->describe(own, text, sizeof text);
    cpu->type->describe(cpu, its, sizeof its);
    CHECK(strcmp(text, its) == 0);
    CHECK(sdlf_calculator_shares_memory(own, cpu) && strcmp(own->type->name, "counting") == 0);
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        const sdlf_kernel_slot *slot = &own->type->kernel[kind], *from = &cpu->type->kernel[kind];
        CHECK((slot->run == NULL) == (from->run == NULL));
        if (kind == SDLF_ADD) continue;
        CHECK(slot->algorithms == from->algorithms && slot->channels_last == from->channels_last);
        CHECK((slot->supports == NULL) == (from->supports == NULL));
        CHECK((slot->prepare == NULL) == (from->prepare == NULL));
    }
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(own);
}

/* Convolutions use the slots' other functions: workspaces, prepacked weights, algorithms. */
static void a_convolution_is_the_same(void)
{
    static float expected[2 * 4 * 9 * 9], found[2 * 4 * 9 * 9], x[2 * 3 * 9 * 9];
    const char *const names[] = {"cpu", "counting"};
    for (int i = 0; i < 2 * 3 * 9 * 9; i++) x[i] = (float)(i * 7 % 11) - 5;
    for (int i = 0; i < 2; i++) {
        sdlf_model *model = sdlf_model_create("convolution");
        sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3, 9, 9));
        node = sdlf_conv2d(model, node, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
        sdlf_output(model, "y", sdlf_relu(model, node));
        sdlf_calculator *calculator = test_open(names[i]);
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_model_build(model, 3));
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .forward = calculator}));
        CHECK_OK(sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_read(plan, "y", i == 0 ? expected : found, SDLF_FLOAT32, sizeof found));
        sdlf_plan_free(plan);
        sdlf_calculator_close(calculator);
        sdlf_model_free(model);
    }
    CHECK(memcmp(found, expected, sizeof found) == 0);
}

static void another_memory_is_refused(void)
{
    static sdlf_calculator_class away;
    away = counting;
    away.name = "away", away.open = open_elsewhere;
    CHECK_OK(sdlf_register_calculator(&away));
    sdlf_calculator *calculator = NULL;
    CHECK_FAILS(sdlf_calculator_open(&calculator, "away", NULL), SDLF_ERROR_ARGUMENT,
                "it inherits from 'cpu', which computes in 'host', but it has chosen 'elsewhere'");
    CHECK(calculator == NULL);
    atomic_store(&opened, 0); /* it was closed, and had not been counted */
}

static void check_calculator_refused(sdlf_calculator_class wrong, const char *said)
{
    CHECK_FAILS(sdlf_register_calculator(&wrong), SDLF_ERROR_ARGUMENT, said);
}

static void unsound_calculators_are_refused(void)
{
    sdlf_calculator_class w = counting;
    check_calculator_refused(w, "there is a calculator 'counting' already");
    w.name = "cpu", check_calculator_refused(w, "there is a calculator 'cpu' already");
    w.name = "my calculator", check_calculator_refused(w, "the name 'my calculator'");
    w.name = "mine", w.summary = NULL, check_calculator_refused(w, "summary is NULL");
    w = counting, w.name = "mine", w.size = 1, check_calculator_refused(w, "size is less than");
    w = counting, w.name = "mine", w.inherits = "gpu",
    check_calculator_refused(w, "inherits from 'gpu', which is not registered");
    w.inherits = "mine", check_calculator_refused(w, "inherits from 'mine', which is not registered");
    w.inherits = NULL, check_calculator_refused(w, "describe is NULL");
    w = counting, w.name = "mine", w.reserved[0] = &w, check_calculator_refused(w, "reserved members must be zero");
    w = counting, w.name = "mine";
    CHECK_FAILS(sdlf_register_calculator_sized(&w, sizeof w + 8), SDLF_ERROR_UNSUPPORTED,
                "was compiled for a newer one");
    CHECK_FAILS(sdlf_register_calculator_sized(&w, 16), SDLF_ERROR_ARGUMENT, "smaller than the smallest valid table");
}

/* A table compiled when there were fewer kinds of operations: the rest is not read. */
static void shorter_tables_are_completed(void)
{
    static sdlf_calculator_class older;
    memset(&older, 0xff, sizeof older);
    size_t size = offsetof(sdlf_calculator_class, kernel) + (SDLF_ADD + 1) * sizeof(sdlf_kernel_slot);
    memcpy(&older, &counting, size);
    older.name = "older";
    CHECK_OK(sdlf_register_calculator_sized(&older, size));
    CHECK_OK(sdlf_register_calculator_sized(&older, size)); /* once more: nothing */
    int before = atomic_load(&sums);
    float expected[4], found[4] = {0};
    compute("cpu", expected);
    compute("older", found);
    CHECK_EQUAL(atomic_load(&sums), before + 1);
    for (int i = 0; i < 4; i++) CHECK_CLOSE(found[i], expected[i], 1e-6);
}

/* ---- the list ---- */

static bool same(const void *a, const void *b)
{
    return *(const int *)a == *(const int *)b;
}

static void a_list_has_its_end(void)
{
    static registered list;
    static int numbers[REGISTERED_MAX + 1];
    for (int i = 0; i <= REGISTERED_MAX; i++) numbers[i] = i;
    for (int i = 0; i < REGISTERED_MAX; i++) CHECK(registered_add(&list, &numbers[i], same) == &numbers[i]);
    CHECK(registered_add(&list, &numbers[REGISTERED_MAX], same) == NULL);
    CHECK(registered_add(&list, &(int){7}, same) == &numbers[7]);
    CHECK(registered_at(&list, 3) == &numbers[3]);
    CHECK(registered_at(&list, -1) == NULL && registered_at(&list, REGISTERED_MAX) == NULL);
}

int main(void)
{
    RUN(a_layer_is_known_by_its_name);
    RUN(files_have_it);
    RUN(unsound_layers_are_refused);
    RUN(shorter_layer_tables_are_completed);
    RUN(missing_kinds_are_inherited);
    RUN(a_convolution_is_the_same);
    RUN(another_memory_is_refused);
    RUN(unsound_calculators_are_refused);
    RUN(shorter_tables_are_completed);
    RUN(a_list_has_its_end);
    return test_summary();
}
