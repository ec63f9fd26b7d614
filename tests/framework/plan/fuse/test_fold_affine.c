/* SPDX-License-Identifier: MIT */
/* Inference plans: per-channel affine operations such as batch normalisation are folded into the preceding product; no-ops are removed. */
#include <math.h>
#include <string.h>

#include "framework/plan/branching_inputs.h"
#include "framework/plan/networks.h"
#include "testing.h"

static void check_folding(const char *name)
{
    sdlf_calculator *calculator = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&calculator, name, NULL))) return;
    sdlf_model *net = branching_net(0.25f);
    CHECK_OK(sdlf_model_build(net, 3));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        float *value = parameter->value.data;
        if (strstr(parameter->name, "batch_norm2d") == NULL) continue;
        fill_random(value, 3, 40 + (uint64_t)i);
        for (int c = 0; c < 3 && strstr(parameter->name, "var") != NULL; c++) value[c] = fabsf(value[c]) + 0.5f;
    }
    for (int d = 0; d < 2; d++) {
        sdlf_dtype dtype = d == 0 ? SDLF_FLOAT32 : SDLF_FLOAT64;
        double result[2][BATCH * 6];
        for (int fused = 0; fused < 2; fused++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net,
                &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .dtype = dtype, .no_fusion = fused == 0}));
            if (plan == NULL) continue;
            CHECK((count_steps(plan, "batch_norm2d_infer") > 0) == (fused == 0));
            CHECK(count_steps(plan, "dropout_forward") == 0);
            write_images(plan, dtype);
            CHECK_OK(sdlf_plan_forward(plan));
            unsigned char bytes[BATCH * 3 * sizeof(double)];
            const char *outputs[2] = {"class", "side"};
            for (int o = 0; o < 2; o++) {
                CHECK_OK(test_plan_read(plan, outputs[o], bytes));
                sdlf_convert(SDLF_FLOAT64, &result[fused][o * BATCH * 3], dtype, bytes, BATCH * 3);
            }
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < BATCH * 6; i++) CHECK_CLOSE(result[1][i], result[0][i], d == 0 ? 4e-6 : 1e-13);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

static void folded_inference_equals_unfolded(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) check_folding(test_calculator_class_at(i)->name);
}

/* After a product with CHANNELS values per pixel, on CHANNELS x CHANNELS pixels: only strides distinguish its axes. */
enum { CHANNELS = 5, AFFINE_COUNT = BATCH * CHANNELS * CHANNELS * CHANNELS };

enum {
    CONV_SCALE,
    CONV_SHIFT,
    CONV_NUMBER,
    CONV_QUOTIENT,
    LINEAR_SCALE,
    TURNED_SCALE, /* after a copy with channels first */
    TURNED_SHIFT,
    FOLDED_FORMS,
    SCALE_OF_ROWS = FOLDED_FORMS, /* one for each row of pixels */
    TURNED_SCALE_OF_ROWS,
    SCALE_OF_ALL, /* one for each element of an image */
    ONE_SCALE,    /* a parameter, but a scalar */
    READ_TWICE,   /* the product itself is read, too */
    BY_ANOTHER,   /* not a parameter */
    NUMBER_FIRST, /* number / x */
    NUMBER_ADDED, /* x + number */
    SMALL_NUMBER, /* weights would be denormal */
    FOLDED_OR_NOT,
    VALUE = FOLDED_OR_NOT, /* weights that are not a parameter */
    VALUE_OF_ONE,          /* whose first axis has one element */
    FLAT_VALUE,            /* which is reshaped */
    TIED_VALUE,            /* that two products read */
    TWO_FUNCTIONS,         /* after one product */
    AFFINE_FORMS
};

static sdlf_shape scale_shape(int form)
{
    switch (form) {
    case LINEAR_SCALE: return sdlf_shape(CHANNELS);
    case SCALE_OF_ROWS:
    case TURNED_SCALE_OF_ROWS: return sdlf_shape(CHANNELS, 1);
    case SCALE_OF_ALL: return sdlf_shape(CHANNELS, CHANNELS, CHANNELS);
    case ONE_SCALE: return sdlf_shape(1);
    case VALUE:
    case VALUE_OF_ONE:
    case FLAT_VALUE:
    case TIED_VALUE: return sdlf_shape(CHANNELS);
    default: return sdlf_shape(CHANNELS, 1, 1);
    }
}

static sdlf_model *affine(int form)
{
    sdlf_model *net = sdlf_model_create("affine");
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, CHANNELS, CHANNELS)), x;
    const bool turned = form == TURNED_SCALE || form == TURNED_SHIFT || form == TURNED_SCALE_OF_ROWS;
    const bool number = form == CONV_NUMBER || form == CONV_QUOTIENT || form == NUMBER_FIRST || form == NUMBER_ADDED ||
                        form == SMALL_NUMBER;
    const bool value = form >= VALUE && form <= TIED_VALUE;
    if (value) {
        const sdlf_shape flat = sdlf_shape(CHANNELS * CHANNELS), whole = sdlf_shape(CHANNELS, CHANNELS);
        const sdlf_shape shape = form == FLAT_VALUE     ? flat
                                 : form == VALUE_OF_ONE ? sdlf_shape(1, CHANNELS, CHANNELS)
                                                        : whole;
        sdlf_node w = sdlf_value(net, &(sdlf_value_options){.name = "w", .shape = shape});
        if (form == FLAT_VALUE) w = sdlf_reshape(net, w, &(sdlf_reshape_options){.shape = whole, .whole = true});
        x = sdlf_matmul(net, image, w, &(sdlf_matmul_options){.transpose_b = true});
        if (form == TIED_VALUE) x = sdlf_matmul(net, x, w, &(sdlf_matmul_options){.transpose_b = true});
    } else if (form == LINEAR_SCALE || turned) {
        x = sdlf_fully_connected(net, image, &(sdlf_fully_connected_options){.units = CHANNELS, .axis = -1});
        if (turned) x = sdlf_transpose(net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 3, 1, 2)});
    } else {
        x = sdlf_conv2d(net, image, &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}});
    }
    sdlf_binary_layer_options options = {.function = SDLF_LAYER_MULTIPLY, .scalar = 0.3f};
    if (form == SMALL_NUMBER) options.scalar = 1e-20f;
    if (form == CONV_SHIFT || form == TURNED_SHIFT || form == NUMBER_ADDED) options.function = SDLF_LAYER_ADD;
    if (form == CONV_QUOTIENT || form == NUMBER_FIRST) options.function = SDLF_LAYER_DIVIDE;
    options.scalar_first = form == NUMBER_FIRST;
    sdlf_node other = image, y;
    if (form != BY_ANOTHER && !number)
        other = sdlf_value(net, &(sdlf_value_options){.name = "scale", .shape = scale_shape(form)});
    y = sdlf_binary(net, (sdlf_node[]){x, other}, number ? 1 : 2, &options);
    if (form == READ_TWICE) y = sdlf_add(net, y, x);
    if (form == TWO_FUNCTIONS) {
        other = sdlf_value(net, &(sdlf_value_options){.name = "shift", .shape = scale_shape(form)});
        y = sdlf_binary(net, (sdlf_node[]){y, other}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_ADD});
    }
    sdlf_output(net, "y", y);
    CHECK_OK(sdlf_model_build(net, 3));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        fill_random(parameter->value.data, (int)sdlf_tensor_count(&parameter->value), 60 + (uint64_t)i);
    }
    return net;
}

static void check_affine(sdlf_calculator *calculator, int form, sdlf_dtype dtype, int batch)
{
    static float image[AFFINE_COUNT];
    static double found[2][AFFINE_COUNT];
    sdlf_model *net = affine(form);
    const int count = AFFINE_COUNT / BATCH * batch;
    fill_random(image, AFFINE_COUNT, 8);
    for (int parts = 0; parts < 2; parts++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = batch, .forward = calculator, .no_fusion = parts != 0, .dtype = dtype};
        if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
            if (form < FOLDED_OR_NOT) CHECK_EQUAL(count_steps(plan, "binary"), form >= FOLDED_FORMS || parts ? 1 : 0);
            CHECK_OK(sdlf_plan_write_converted(plan, "image", image, SDLF_FLOAT32, count));
            CHECK_OK(sdlf_plan_forward(plan));
            unsigned char bytes[AFFINE_COUNT * sizeof(double)];
            CHECK_OK(test_plan_read(plan, "y", bytes));
            sdlf_convert(SDLF_FLOAT64, found[parts], dtype, bytes, count);
        }
        sdlf_plan_free(plan);
    }
    for (int i = 0; i < count; i++) {
        /* Sums of the products of numbers of size 1, whose order may differ, err by about size; so does 0.3 / sum by its slope. */
        const double expected = found[1][i], slope = expected * expected / 0.3;
        const double size = form == NUMBER_FIRST ? slope : form == SMALL_NUMBER ? 1e-20 : 1;
        CHECK_CLOSE(found[0][i], expected, (dtype == SDLF_FLOAT32 ? 1e-5 : 1e-13) * (size + fabs(expected)));
    }
    sdlf_model_free(net);
}

static void what_is_affine_by_channel_is_folded(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int form = 0; form < AFFINE_FORMS; form++) {
            check_affine(calculator, form, SDLF_FLOAT32, BATCH);
            check_affine(calculator, form, SDLF_FLOAT32, 1);
            check_affine(calculator, form, SDLF_FLOAT64, BATCH);
        }
        sdlf_calculator_close(calculator);
    }
}

/* Windows of one element, which exporters write if a size is already correct. */
static void pooling_of_single_elements_goes(void)
{
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    float found[2 * 2 * 2];
    static const float image[2 * 2 * 2] = {1, -2, 3, -4, 5, -6, 7, -8};
    sdlf_model *net = sdlf_model_create("single");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2, 2, 2));
    x = sdlf_avg_pool2d(net, x, &(sdlf_pool2d_options){.window = {1, 1}, .stride = {1, 1}});
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {1, 1}});
    sdlf_node all = sdlf_relu(net, x);
    sdlf_output(net, "all", all);
    sdlf_output(net, "some", sdlf_avg_pool2d(net, all, &(sdlf_pool2d_options){.window = {1, 1}, .stride = {1, 2}}));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    CHECK(count_steps(plan, "max_pool2d_forward") == 0);
    CHECK_EQUAL(count_steps(plan, "avg_pool2d_forward"), 1);
    CHECK_OK(test_plan_write(plan, "x", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "all", found));
    for (int i = 0; i < 8; i++) CHECK_CLOSE(found[i], image[i] > 0 ? image[i] : 0, 0);
    CHECK_OK(test_plan_read(plan, "some", found));
    for (int i = 0; i < 4; i++) CHECK_CLOSE(found[i], image[2 * i] > 0 ? image[2 * i] : 0, 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(folded_inference_equals_unfolded);
    RUN(what_is_affine_by_channel_is_folded);
    RUN(pooling_of_single_elements_goes);
    return test_summary();
}
