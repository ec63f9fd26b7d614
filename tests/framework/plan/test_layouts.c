/* Plans for inference whose activations lie channels last: the same results as row-major ones, through all that follows and all
 * that does not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/counting_device.h"
#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 13, IMAGE = BATCH * CHANNELS * SIDE * SIDE, MOST = BATCH * 45 * 7 * 7 };

static sdlf_node conv(sdlf_model *net, sdlf_node x, const char *name, int filters, int kernel, int groups)
{
    return sdlf_conv2d(net, x,
                       &(sdlf_conv2d_options){.name = name,
                                              .filters = filters,
                                              .kernel = {kernel, kernel},
                                              .padding = {kernel / 2, kernel / 2},
                                              .groups = groups});
}

/* Convolutions, and between them pooling, a join, a normalisation in front of a convolution, additions, activations that are no
 * epilogue, scaling by channel, a part of the channels, and products that want rows. */
static sdlf_model *followers(void)
{
    sdlf_model *net = sdlf_model_create("followers");
    sdlf_pool2d_options halve = {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_node stem = sdlf_relu(net, conv(net, image, "stem", 20, 3, 1));
    sdlf_node largest = sdlf_max_pool2d(net, stem, &halve), mean = sdlf_avg_pool2d(net, stem, &halve);
    sdlf_node branch = conv(net, largest, "branch", 5, 1, 1);
    sdlf_node joined = sdlf_concat(net, (sdlf_node[]){largest, mean, branch}, 3, NULL);
    sdlf_node small = sdlf_resize(
        net, image, &(sdlf_resize_options){.sizes = sdlf_shape(7, 7)}); /* row-major, in front of the others */
    sdlf_node mixed = sdlf_concat(net, (sdlf_node[]){small, branch}, 2, NULL);
    sdlf_node normed = sdlf_relu(net, sdlf_batch_norm2d(net, joined, NULL));
    sdlf_node sum = sdlf_add(net, conv(net, normed, "wide", 45, 3, 1), joined);
    sdlf_node gate = sdlf_sigmoid(net, conv(net, sdlf_global_avg_pool2d(net, sum), "gate", 45, 1, 1));
    sdlf_node scaled =
        sdlf_binary(net, (sdlf_node[]){sum, gate}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
    sdlf_node deep = conv(net, scaled, "deep", 45, 3, 45);
    sdlf_node last = sdlf_tanh(net, sdlf_add(net, deep, scaled));
    sdlf_slice_options some = {.axes = sdlf_shape(1), .start = sdlf_shape(7), .end = sdlf_shape(30)};
    sdlf_node part = conv(net, sdlf_slice(net, last, &some), "part", 9, 3, 1);
    sdlf_output(net, "picture", last);
    sdlf_output(net, "rows", sdlf_fully_connected(net, part, &(sdlf_fully_connected_options){.units = 7}));
    sdlf_output(net, "mixed", conv(net, mixed, "after", 11, 3, 1));
    sdlf_output(net, "means", sdlf_global_avg_pool2d(net, last));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void fill_parameters(sdlf_model *net, uint64_t seed)
{
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        float *value = parameter->value.data;
        int64_t count = sdlf_tensor_count(&parameter->value);
        fill_random(value, count, seed + (uint64_t)i);
        bool variance = strstr(parameter->name, "running_var") != NULL;
        for (int64_t e = 0; e < count; e++) value[e] = variance ? 1.5f + value[e] : 0.5f * value[e];
    }
}

static const char *const outputs[] = {"picture", "rows", "means", "mixed"};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

typedef struct results {
    double value[OUTPUTS][MOST];
    int64_t count[OUTPUTS];
} results;

static void run(sdlf_plan *plan, sdlf_dtype dtype, results *found)
{
    static float image[IMAGE], values[MOST];
    static double wide[IMAGE];
    fill_random(image, IMAGE, 5);
    for (int i = 0; i < IMAGE; i++) wide[i] = (double)image[i];
    CHECK_OK(sdlf_plan_write(plan, "image", dtype == SDLF_FLOAT32 ? (void *)image : (void *)wide));
    CHECK_OK(sdlf_plan_forward(plan));
    for (int i = 0; i < OUTPUTS; i++) {
        sdlf_binding output;
        CHECK_OK(sdlf_plan_output(plan, outputs[i], &output));
        found->count[i] = sdlf_tensor_count(&output.tensor);
        bool fits = found->count[i] <= MOST;
        CHECK(fits);
        if (!fits) continue;
        CHECK_OK(sdlf_plan_read(plan, outputs[i], dtype == SDLF_FLOAT32 ? (void *)values : (void *)found->value[i]));
        for (int64_t e = 0; e < found->count[i] && dtype == SDLF_FLOAT32; e++) found->value[i][e] = (double)values[e];
    }
}

static void compare(const results *found, const results *expected, double tolerance)
{
    for (int i = 0; i < OUTPUTS; i++) {
        CHECK_EQUAL(found->count[i], expected->count[i]);
        CHECK(isfinite(expected->value[i][0])); /* NaN would be like NaN */
        for (int64_t e = 0; e < found->count[i]; e++)
            CHECK_CLOSE(found->value[i][e], expected->value[i][e], tolerance * (1 + fabs(expected->value[i][e])));
    }
}

/* The network by reference, an operation a layer. */
static void expect(sdlf_model *net, results *expected)
{
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){.batch = BATCH, .dtype = SDLF_FLOAT64, .forward = reference, .no_fusion = true}));
    if (plan != NULL) run(plan, SDLF_FLOAT64, expected);
    sdlf_plan_free(plan);
    sdlf_calculator_close(reference);
}

static int count_kind(const sdlf_plan *plan, sdlf_operation_kind kind, bool last)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        count += op->kind == kind && (!last || sdlf_operation_is_channels_last(op));
    }
    return count;
}

static void results_are_those_of_rows(void)
{
    static results found, expected;
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        const sdlf_calculator_class *type = test_calculator_class_at(c);
        for (int wide = 0; wide < 2; wide++) {
            sdlf_dtype dtype = wide ? SDLF_FLOAT64 : SDLF_FLOAT32;
            sdlf_calculator *calculator = NULL;
            sdlf_plan *plan = NULL;
            sdlf_model *net = followers();
            fill_parameters(net, 40);
            if (sdlf_calculator_open(&calculator, type->name, NULL) == SDLF_OK) {
                expect(net, &expected);
                CHECK_OK(sdlf_plan_create(&plan, net,
                                          &(sdlf_plan_options){.batch = BATCH, .dtype = dtype, .forward = calculator}));
                if (plan != NULL) {
                    run(plan, dtype, &found);
                    compare(&found, &expected, wide ? 1e-12 : 2e-5);
                }
            }
            sdlf_plan_free(plan);
            sdlf_model_free(net);
            sdlf_calculator_close(calculator);
        }
    }
}

/* On cpu, where convolutions like it: all but that of one pixel are so, and conversions stand at the edges alone: the image in,
 * the picture out, the rows that the product reads; and around a join whose first part is row-major: the other part, the whole and what
 * comes of it. The other copies join (3 and 2) and take a part (1). */
static void conversions_stand_at_the_edges(void)
{
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_model *net = followers();
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = cpu}));
    if (plan != NULL) {
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, false), 7);
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), 6);
        CHECK_EQUAL(count_kind(plan, SDLF_MAX_POOL2D_FORWARD, true), 1);
        CHECK_EQUAL(count_kind(plan, SDLF_AVG_POOL2D_FORWARD, true), 1);
        CHECK_EQUAL(count_kind(plan, SDLF_GLOBAL_AVG_POOL2D_FORWARD, true), 2);
        CHECK_EQUAL(count_kind(plan, SDLF_COPY, false), 3 + 3 + 3 + 2 + 1);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* Weights that were made ready are made ready again when parameters are loaded. */
static void new_weights_are_taken(void)
{
    static results before, after, expected;
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_model *net = followers();
    fill_parameters(net, 40);
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = cpu}));
    if (plan != NULL) {
        run(plan, SDLF_FLOAT32, &before);
        fill_parameters(net, 90);
        CHECK_OK(sdlf_plan_load_parameters(plan));
        run(plan, SDLF_FLOAT32, &after);
        expect(net, &expected);
        compare(&after, &expected, 2e-5);
        CHECK(memcmp(before.value[1], after.value[1], sizeof(double) * (size_t)after.count[1]) != 0);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* ---- some like it, some do not ---- */

/* The reference calculator in a space of its own, of whose convolutions those of 8 filters and more like it. */
static bool likes_many_filters(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return operation->in[1].shape.dim[0] >= 8;
}

static sdlf_calculator *make_choosy(void)
{
    sdlf_calculator *device = make_device();
    sdlf_kernel_slot *slot = &device_class.kernel[SDLF_CONV2D_FORWARD];
    slot->channels_last = true;
    slot->likes_channels_last = likes_many_filters;
    return device;
}

/* Another one like it, in another space. */
static sdlf_calculator *make_second(void)
{
    static sdlf_calculator_class second_class;
    second_class = device_class;
    second_class.name = "second";
    sdlf_calculator *second = calloc(1, second_class.size);
    second->type = &second_class;
    second->space = "second";
    return second;
}

/* Convolutions with so many filters, one behind the other, those from number `other` on placed on a second calculator: how many are
 * channels last, and how many copies turn activations. */
static void count_turned(const int *filters, int count, int other, int turned, int copies)
{
    char name[8][16];
    sdlf_placement placement[8];
    sdlf_model *net = sdlf_model_create("chain");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    for (int i = 0; i < count; i++) {
        snprintf(name[i], sizeof name[i], "c%d", i);
        x = conv(net, x, name[i], filters[i], 3, 1);
    }
    sdlf_output(net, "last", x);
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_calculator *device = make_choosy(), *second = make_second();
    sdlf_plan *plan = NULL;
    for (int i = other; i < count; i++) placement[i - other] = (sdlf_placement){.layer = name[i], .forward = second};
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = BATCH, .forward = device, .placement = placement, .placement_count = count - other}));
    if (plan != NULL) {
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, false), count);
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), turned);
        int turns = 0;
        for (int i = 0; i < plan->step_count; i++)
            turns += plan->steps[i].phase != SDLF_PHASE_COPY && plan->steps[i].operation.kind == SDLF_COPY;
        CHECK_EQUAL(turns, copies);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    free(second);
}

/* In front of one that likes it, a convolution is turned where those that like it have half of the FLOPs, and else left as it is;
 * behind one it follows in any case. One alone is not worth conversions. */
static void most_of_the_work_decides_for_all(void)
{
    count_turned((int[]){2, 3, 16, 16}, 4, 4, 4, 2); /* they have nearly all: all are, conversions at both ends */
    count_turned((int[]){7, 7, 7, 7, 7, 8, 8}, 7, 7, 2, 2); /* they have less than half: those two */
    count_turned((int[]){7, 7, 8, 7, 8}, 5, 5, 3, 2);       /* the one between them follows */
    count_turned((int[]){2, 3, 64}, 3, 3, 0, 0);            /* one alone */
}

/* ---- parts that look like parts of images, and are none ---- */

static sdlf_node odd_join(sdlf_model *net, sdlf_node x)
{
    sdlf_node part[3];
    for (int i = 0; i < 3; i++)
        part[i] = sdlf_conv2d(net, x,
                              &(sdlf_conv2d_options){.filters = 1, .kernel = {i < 2 ? 13 : 12, 3}, .padding = {0, 1}});
    return sdlf_tanh(net, sdlf_concat(net, part, 3, &(sdlf_concat_options){.axis = 2}));
}

static sdlf_node odd_part(sdlf_model *net, sdlf_node x)
{
    x = conv(net, conv(net, x, "first", 5, 3, 1), "second", 5, 3, 1);
    x = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(1, 5 * SIDE, SIDE)});
    sdlf_slice_options some = {.axes = sdlf_shape(2), .start = sdlf_shape(9), .end = sdlf_shape(20)};
    return sdlf_tanh(net, sdlf_slice(net, x, &some));
}

/* The residual is the convolution's own input under another shape. */
static sdlf_node odd_sum(sdlf_model *net, sdlf_node x)
{
    sdlf_slice_options some = {.axes = sdlf_shape(1, 2, 3), .start = sdlf_shape(0, 0, 0), .end = sdlf_shape(2, 8, 8)};
    x = sdlf_slice(net, x, &some);
    sdlf_node half = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {2, 2}, .stride = {2, 2}});
    sdlf_node turned = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(8, 4, 4)});
    return conv(net, sdlf_add(net, half, turned), "last", 3, 3, 1);
}

static void compute(sdlf_model *net, const char *name, sdlf_dtype dtype, double *values, int64_t *count)
{
    static float image[IMAGE], narrow[MOST];
    static double wide[IMAGE];
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding output;
    bool reference = strcmp(name, "reference") == 0;
    fill_random(image, IMAGE, 6);
    for (int i = 0; i < IMAGE; i++) wide[i] = (double)image[i];
    CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){.batch = BATCH, .dtype = dtype, .forward = calculator, .no_fusion = reference}));
    if (plan != NULL) {
        CHECK_OK(sdlf_plan_write(plan, "image", dtype == SDLF_FLOAT32 ? (void *)image : (void *)wide));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_output(plan, "out", &output));
        *count = sdlf_tensor_count(&output.tensor);
        CHECK_OK(sdlf_plan_read(plan, "out", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)values));
        for (int64_t e = 0; e < *count && dtype == SDLF_FLOAT32; e++) values[e] = (double)narrow[e];
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
}

static void odd_parts_stay_what_they_are(void)
{
    static sdlf_node (*const networks[])(sdlf_model *, sdlf_node) = {odd_join, odd_part, odd_sum};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        static double found[MOST], expected[MOST];
        int64_t count = 0, same = -1;
        sdlf_model *net = sdlf_model_create("odd");
        sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
        sdlf_output(net, "out", networks[i](net, x));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_parameters(net, 70);
        compute(net, "reference", SDLF_FLOAT64, expected, &count);
        compute(net, "cpu", SDLF_FLOAT32, found, &same);
        CHECK_EQUAL(same, count);
        for (int64_t e = 0; e < count; e++) CHECK_CLOSE(found[e], expected[e], 2e-5 * (1 + fabs(expected[e])));
        sdlf_model_free(net);
    }
}

/* What one calculator likes says nothing of another's work: not the share of it, and not whether there is more than one. */
static void each_calculator_decides_for_itself(void)
{
    count_turned((int[]){7, 7, 7, 7, 8, 8, 64, 64}, 8, 6, 4, 2); /* not the first four */
    count_turned((int[]){2, 64, 64}, 3, 2, 0, 0);                /* one on each */
}

int main(void)
{
    RUN(each_calculator_decides_for_itself);
    RUN(odd_parts_stay_what_they_are);
    RUN(results_are_those_of_rows);
    RUN(conversions_stand_at_the_edges);
    RUN(new_weights_are_taken);
    RUN(most_of_the_work_decides_for_all);
    return test_summary();
}
