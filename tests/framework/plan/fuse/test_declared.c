/* SPDX-License-Identifier: MIT */
/* A user-defined fusion: the plan finds its pattern and offers it only to the calculator that declares it. Here it is
 * tanh followed by softmax. */
#include <math.h>
#include <string.h>

#include <sdlf/fusion.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { TANH, SOFTMAX, MEMBERS };
enum { BATCH = 3, CLASSES = 5, NUMBERS = BATCH * CLASSES };

static const char *const name = "tanh_softmax";

/* ---- the fusion; its option is softmax's ---- */

static sdlf_status check(const sdlf_operation *operation)
{
    bool same = sdlf_shape_equal(operation->in[0].shape, operation->out[0].shape);
    return same ? SDLF_OK : sdlf_fail(SDLF_ERROR_SHAPE, "x and y are of different shapes");
}

static bool join(const sdlf_operation *const *member, sdlf_operation *fused)
{
    if (member[TANH]->activation.function != SDLF_TANH) return false;
    fused->in[0] = member[TANH]->in[0];
    fused->out[0] = member[SOFTMAX]->out[0];
    memcpy(fused->fused.options, &member[SOFTMAX]->softmax.axis, sizeof(int));
    return true;
}

static unsigned split(const sdlf_operation *fused, sdlf_operation *member)
{
    sdlf_tensor between = sdlf_tensor_view(fused->in[0].dtype, fused->in[0].shape, NULL);
    member[TANH] = (sdlf_operation){.in = {fused->in[0]}, .out = {between}, .activation = {.function = SDLF_TANH}};
    member[SOFTMAX] = (sdlf_operation){.in = {between}, .out = {fused->out[0]}};
    memcpy(&member[SOFTMAX].softmax.axis, fused->fused.options, sizeof(int));
    return 1u << TANH | 1u << SOFTMAX;
}

static const sdlf_fusion fusion = {
    .type = {.name = "tanh_softmax", .in = {{.name = "x"}}, .out = {{.name = "y"}}, .check = check},
    .members = MEMBERS,
    .member = {SDLF_ACTIVATION_FORWARD, SDLF_SOFTMAX_FORWARD},
    .edges = 1,
    .edge = {{TANH, 0, SOFTMAX, 0}},
    .variant = {1u << TANH | 1u << SOFTMAX},
    .infer = true,
    .join = join,
    .split = split,
};

/* ---- calculators that declare it: one with a kernel, one that has it computed in parts ---- */

static int runs;

static sdlf_status run(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const float *x = operation->in[0].data;
    float *y = operation->out[0].data;
    int64_t count = sdlf_tensor_count(&operation->out[0]);
    for (int64_t row = 0; row < count / CLASSES; row++, x += CLASSES, y += CLASSES) {
        float sum = 0;
        for (int i = 0; i < CLASSES; i++) sum += y[i] = expf(tanhf(x[i]));
        for (int i = 0; i < CLASSES; i++) y[i] /= sum;
    }
    runs++;
    return SDLF_OK;
}

static bool supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return operation->in[0].shape.dim[1] == CLASSES;
}

static const sdlf_fused_slot with_kernel[] = {{&fusion, {.run = run, .supports = supports}}, {.fusion = NULL}};
static const sdlf_fused_slot without[] = {{.fusion = &fusion}, {.fusion = NULL}};

static const sdlf_calculator_class fusing = {
    .name = "fusing",
    .summary = "tanh and softmax in one",
    .size = sizeof(sdlf_calculator),
    .inherits = "cpu",
    .fusions = with_kernel,
};
static const sdlf_calculator_class splitting = {
    .name = "splitting",
    .summary = "tanh and softmax as one, in parts",
    .size = sizeof(sdlf_calculator),
    .inherits = "reference",
    .fusions = without,
};

/* ---- another one, which moves a product behind steps that may change what it reads: dx = (dy w) relu'(y) ---- */

enum { PRODUCT, SLOPE };

static sdlf_status check_slope(const sdlf_operation *operation)
{
    bool same = sdlf_tensor_count(&operation->in[2]) == sdlf_tensor_count(&operation->out[0]);
    return same ? SDLF_OK : sdlf_fail(SDLF_ERROR_SHAPE, "y and dx are of different sizes");
}

static bool join_slope(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *product = member[PRODUCT], *slope = member[SLOPE];
    if (product->gemm.transpose_a || product->gemm.transpose_b || sdlf_tensor_present(&product->in[2])) return false;
    if (slope->activation.function != SDLF_RELU || !sdlf_shape_equal(slope->in[1].shape, product->out[0].shape))
        return false;
    fused->in[0] = product->in[0], fused->in[1] = product->in[1], fused->in[2] = slope->in[0];
    fused->out[0] = slope->out[0];
    return true;
}

static unsigned split_slope(const sdlf_operation *fused, sdlf_operation *member)
{
    sdlf_tensor between = sdlf_tensor_view(fused->out[0].dtype, fused->out[0].shape, NULL);
    member[PRODUCT] = (sdlf_operation){.in = {fused->in[0], fused->in[1]}, .out = {between}, .gemm = {.alpha = 1}};
    member[SLOPE] =
        (sdlf_operation){.in = {fused->in[2], between}, .out = {fused->out[0]}, .activation = {.function = SDLF_RELU}};
    return 1u << PRODUCT | 1u << SLOPE;
}

static const sdlf_fusion late = {
    .type = {.name = "gemm_slope",
             .in = {{.name = "dy"}, {.name = "w"}, {.name = "y"}},
             .out = {{.name = "dx"}},
             .check = check_slope},
    .members = 2,
    .member = {SDLF_GEMM, SDLF_ACTIVATION_BACKWARD},
    .edges = 1,
    .edge = {{PRODUCT, 0, SLOPE, 1}},
    .variant = {1u << PRODUCT | 1u << SLOPE},
    .train = true,
    .join = join_slope,
    .split = split_slope,
};

static const sdlf_fused_slot moved[] = {{.fusion = &late}, {.fusion = NULL}};
static const sdlf_calculator_class moving = {
    .name = "moving",
    .summary = "a product and a slope as one, in parts",
    .size = sizeof(sdlf_calculator),
    .inherits = "reference",
    .fusions = moved,
};

/* ---- tests ---- */

static sdlf_model *network(int classes, bool seen)
{
    sdlf_model *net = sdlf_model_create("net");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(classes)), h = sdlf_tanh(net, x);
    sdlf_output(net, "y", sdlf_softmax(net, h));
    if (seen) sdlf_output(net, "h", h);
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* Run the plan; returns the number of its steps that are the fusion. */
static int compute(const char *calculator_name, sdlf_model *net, bool no_fusion, float *y)
{
    sdlf_calculator *calculator = test_open(calculator_name);
    sdlf_plan *plan = NULL;
    float x[BATCH * 2 * CLASSES];
    fill_random(x, BATCH * 2 * CLASSES, 5);
    sdlf_plan_options options = {.batch = BATCH, .forward = calculator, .no_fusion = no_fusion};
    int count = -1;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        count = count_steps(plan, name);
        CHECK_EQUAL(sdlf_plan_step_count(plan) - count, count > 0 ? 0 : 2);
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    return count;
}

static void it_is_offered_to_those_that_declare_it(void)
{
    static const char *const names[] = {"fusing", "splitting", "cpu", "reference"};
    float expected[NUMBERS], found[NUMBERS];
    sdlf_model *net = network(CLASSES, false);
    CHECK_EQUAL(compute("reference", net, true, expected), 0);
    for (int i = 0; i < 4; i++) {
        runs = 0;
        CHECK_EQUAL(compute(names[i], net, false, found), i < 2);
        CHECK_EQUAL(runs, i == 0);
        for (int e = 0; e < NUMBERS; e++) CHECK_CLOSE((double)found[e], (double)expected[e], 1e-6);
        CHECK_EQUAL(compute(names[i], net, true, found), 0);
    }
    sdlf_model_free(net);
}

static void it_stays_in_parts_elsewhere(void)
{
    float found[BATCH * 2 * CLASSES];
    sdlf_model *seen = network(CLASSES, true), *wide = network(2 * CLASSES, false);
    CHECK_EQUAL(compute("fusing", seen, false, found), 0); /* the intermediate value is an output */
    CHECK_EQUAL(compute("fusing", wide, false, found), 0); /* the kernel does not support it */
    CHECK_EQUAL(compute("splitting", wide, false, found), 1);
    sdlf_model_free(seen);
    sdlf_model_free(wide);
}

/* Returns the hash of the weights after three steps; *count: how many steps of the plan are `late`. */
static uint32_t train(sdlf_plan_options options, int *count)
{
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CLASSES));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 7}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    float samples[NUMBERS];
    fill_random(samples, NUMBERS, 5);
    options.batch = BATCH, options.mode = SDLF_TRAIN;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        CHECK_OK(test_plan_write(plan, "x", samples));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[BATCH]){0, 2, 4}));
        for (int i = 0; i < 3; i++) CHECK_OK(sdlf_plan_step(plan, 0.1f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        *count = count_steps(plan, "gemm_slope");
    }
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

/* If updates follow each layer's gradients, the product's weights change before the slope is computed: nothing is
 * fused. If all updates come last, the operations are fused. */
static void members_read_what_they_should(void)
{
    sdlf_calculator *calculator = test_open("moving");
    sdlf_plan_options options = {.forward = calculator, .optimizer = sdlf_adam(.beta1 = 0.9)};
    int fused = 0, apart = 0;
    options.no_fusion = true;
    uint32_t expected = train(options, &apart);
    options.no_fusion = false;
    CHECK_EQUAL(train(options, &fused), expected);
    CHECK(fused == 0 && apart == 0);
    options.clip_norm = 0.5f;
    uint32_t clipped = train(options, &fused);
    CHECK_EQUAL(fused, 1);
    options.no_fusion = true;
    CHECK_EQUAL(train(options, &apart), clipped);
    sdlf_calculator_close(calculator);
}

/* A table that would be read out of bounds, or whose NULL functions would be called, is rejected. */
static void broken_tables_are_refused(void)
{
    static const struct {
        size_t offset;
        int value;
        const char *told;
    } breaks[] = {
        {offsetof(sdlf_fusion, members), 9, "members"},
        {offsetof(sdlf_fusion, edges), 9, "edges"},
        {offsetof(sdlf_fusion, shares), -1, "shared operands"},
        {offsetof(sdlf_fusion, member), SDLF_OPERATION_COUNT, "kind"},
        {offsetof(sdlf_fusion, edge), 1, "edge"},
        {offsetof(sdlf_fusion, variant), 0, "variants"},
        {offsetof(sdlf_fusion, variant), 8, "members that do not exist"},
        {offsetof(sdlf_fusion, early), 8, "early"},
    };
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        sdlf_fusion broken = fusion;
        memcpy((char *)&broken + breaks[i].offset, &breaks[i].value, sizeof breaks[i].value);
        const sdlf_fused_slot slots[] = {{.fusion = &broken}, {.fusion = NULL}};
        sdlf_calculator_class class = fusing;
        class.name = "broken";
        class.fusions = slots;
        CHECK_FAILS(sdlf_register_calculator(&class), SDLF_ERROR_ARGUMENT, breaks[i].told);
    }
    sdlf_fusion broken = fusion;
    broken.split = NULL;
    const sdlf_fused_slot slots[] = {{.fusion = &broken}, {.fusion = NULL}};
    sdlf_calculator_class class = fusing;
    class.name = "broken";
    class.fusions = slots;
    CHECK_FAILS(sdlf_register_calculator(&class), SDLF_ERROR_ARGUMENT, "split");
}

/* A class has its own fusions and those of the class that it inherits from. */
static void fusions_are_inherited(void)
{
    sdlf_calculator *own = test_open("fusing"), *cpu = test_open("cpu");
    CHECK(sdlf_fusion_find(name) == &fusion && sdlf_fused_slot_in(own->type->fusions, &fusion) != NULL);
    const sdlf_fused_slot *its = cpu->type->fusions;
    for (; its != NULL && its->fusion != NULL; its++) {
        const sdlf_fused_slot *passed = sdlf_fused_slot_in(own->type->fusions, its->fusion);
        if (!CHECK(passed != NULL && passed->slot.run != NULL)) continue;
        CHECK((passed->slot.prepare == NULL) == (its->slot.prepare == NULL));
        CHECK(passed->slot.channels_last == its->slot.channels_last);
    }
    CHECK(sdlf_fused_slot_in(cpu->type->fusions, &fusion) == NULL);
    const sdlf_fusion *update = sdlf_fusion_find("gemm_backward_sgd");
    sdlf_calculator *replacing = test_open("replacing"); /* its own products should run, not fusions of cpu */
    CHECK(update != NULL && sdlf_fused_slot_in(own->type->fusions, update) != NULL);
    CHECK(sdlf_fused_slot_in(replacing->type->fusions, update) == NULL);
    sdlf_calculator_close(replacing);
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(own);
}

static const sdlf_calculator_class replacing_class = {
    .name = "replacing",
    .summary = "products of its own",
    .size = sizeof(sdlf_calculator),
    .inherits = "cpu",
    .kernel = {[SDLF_GEMM] = {.run = run}},
};

int main(void)
{
    CHECK_OK(sdlf_register_calculator(&replacing_class));
    CHECK_OK(sdlf_register_calculator(&fusing));
    CHECK_OK(sdlf_register_calculator(&splitting));
    CHECK_OK(sdlf_register_calculator(&moving));
    RUN(it_is_offered_to_those_that_declare_it);
    RUN(members_read_what_they_should);
    RUN(broken_tables_are_refused);
    RUN(it_stays_in_parts_elsewhere);
    RUN(fusions_are_inherited);
    return test_summary();
}
