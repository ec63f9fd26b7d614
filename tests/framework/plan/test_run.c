/* SPDX-License-Identifier: MIT */
/* Inputs and outputs of a plan: the caller specifies the type and shape of its memory. While a plan exists, the model
 * keeps its outputs. */
#include <sdlf/sdlf.h>

#include "testing.h"

typedef struct made {
    sdlf_model *model;
    sdlf_node last;
    sdlf_calculator *calculator;
    sdlf_plan *plan;
} made;

static made make(sdlf_dtype dtype)
{
    made m = {.model = sdlf_model_create("small"), .calculator = test_open("cpu")};
    m.last = sdlf_relu(m.model, sdlf_input(m.model, "x", SDLF_FLOAT32, sdlf_shape(3)));
    sdlf_output(m.model, "y", m.last);
    CHECK_OK(
        sdlf_plan_create(&m.plan, m.model, &(sdlf_plan_options){.batch = 2, .dtype = dtype, .forward = m.calculator}));
    return m;
}

static void release(made *m)
{
    sdlf_plan_free(m->plan);
    sdlf_calculator_close(m->calculator);
    sdlf_model_free(m->model);
}

static void type_and_size_are_checked(void)
{
    made m = make(SDLF_FLOAT32);
    float x[6] = {-1, 2, -3, 4, -5, 6}, y[6] = {0};
    CHECK_FAILS(sdlf_plan_write(m.plan, "x", x, SDLF_FLOAT64, sizeof x), SDLF_ERROR_SHAPE,
                "input 'x' is float32 2x3, 24 bytes; found float64, 24 bytes");
    CHECK_FAILS(sdlf_plan_write(m.plan, "x", x, SDLF_FLOAT32, 12), SDLF_ERROR_SHAPE, "found float32, 12 bytes");
    CHECK_FAILS(sdlf_plan_write(m.plan, "x", x, SDLF_FLOAT32, -24), SDLF_ERROR_SHAPE, "found float32, -24 bytes");
    CHECK_OK(sdlf_plan_write(m.plan, "x", x, SDLF_FLOAT32, sizeof x));
    CHECK_OK(sdlf_plan_forward(m.plan));
    CHECK_FAILS(sdlf_plan_read(m.plan, "y", y, SDLF_INT32, sizeof y), SDLF_ERROR_SHAPE,
                "output 'y' is float32 2x3, 24 bytes; found int32, 24 bytes");
    CHECK_FAILS(sdlf_plan_read(m.plan, "y", y, SDLF_FLOAT32, sizeof y + 4), SDLF_ERROR_SHAPE, "28 bytes");
    CHECK_OK(sdlf_plan_read(m.plan, "y", y, SDLF_FLOAT32, sizeof y));
    for (int i = 0; i < 6; i++) CHECK_CLOSE(y[i], x[i] > 0 ? x[i] : 0, 0);
    release(&m);
    m = make(SDLF_FLOAT64);
    CHECK_FAILS(sdlf_plan_write(m.plan, "x", x, SDLF_FLOAT32, sizeof x), SDLF_ERROR_SHAPE,
                "input 'x' is float64 2x3, 48 bytes; found float32, 24 bytes");
    release(&m);
}

/* Between two plans of one device: the output of one is the input of the other. */
static void device_memory_goes_in(void)
{
    sdlf_model *model = sdlf_model_create("small");
    float x[6] = {-1, 2, -3, 4, -5, 6}, y[6] = {0};
    sdlf_binding from = {.calculator = NULL};
    sdlf_output(model, "y", sdlf_relu(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3))));
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        sdlf_calculator *calculator = test_open(type->name);
        sdlf_plan *first = NULL, *second = NULL;
        sdlf_plan_options options = {.batch = 2, .forward = calculator};
        if (CHECK_OK(sdlf_plan_create(&first, model, &options)) &&
            CHECK_OK(sdlf_plan_create(&second, model, &options)) && type->copy_from_device != NULL) {
            CHECK_OK(sdlf_plan_write(first, "x", x, SDLF_FLOAT32, sizeof x));
            CHECK_OK(sdlf_plan_forward(first));
            CHECK_OK(sdlf_plan_synchronize(first));
            CHECK_OK(sdlf_plan_output(first, "y", &from));
            CHECK_FAILS(sdlf_plan_write_device(second, "x", from.tensor.data, SDLF_FLOAT32, 12), SDLF_ERROR_SHAPE,
                        "input 'x' is float32 2x3, 24 bytes; found float32, 12 bytes");
            CHECK_OK(sdlf_plan_write_device(second, "x", from.tensor.data, SDLF_FLOAT32, sizeof x));
            CHECK_OK(sdlf_plan_forward(second));
            CHECK_OK(sdlf_plan_read(second, "y", y, SDLF_FLOAT32, sizeof y));
            for (int k = 0; k < 6; k++) CHECK_CLOSE(y[k], x[k] > 0 ? x[k] : 0, 0);
        } else if (second != NULL) {
            CHECK_FAILS(sdlf_plan_write_device(second, "x", x, SDLF_FLOAT32, sizeof x), SDLF_ERROR_UNSUPPORTED,
                        "input 'x' is in the memory of host, which accepts nothing from a device");
        }
        sdlf_plan_free(first);
        sdlf_plan_free(second);
        sdlf_calculator_close(calculator);
    }
    sdlf_model_free(model);
}

static void outputs_stay_while_a_plan_is_there(void)
{
    made m = make(SDLF_FLOAT32);
    sdlf_output(m.model, "more", m.last);
    CHECK_FAILS(sdlf_model_status(m.model), SDLF_ERROR_ARGUMENT,
                "network 'small' is in use by a plan: its outputs cannot be changed");
    CHECK_EQUAL(sdlf_model_output_count(m.model), 1);
    release(&m);
    m = make(SDLF_FLOAT32);
    sdlf_model_clear_outputs(m.model);
    CHECK_FAILS(sdlf_model_status(m.model), SDLF_ERROR_ARGUMENT, "its outputs cannot be changed");
    CHECK_EQUAL(sdlf_model_output_count(m.model), 1);
    release(&m);
    m = make(SDLF_FLOAT32);
    sdlf_plan_free(m.plan);
    m.plan = NULL;
    sdlf_model_clear_outputs(m.model);
    sdlf_output(m.model, "more", m.last);
    CHECK_OK(sdlf_model_status(m.model));
    CHECK_EQUAL(sdlf_model_output_count(m.model), 1);
    release(&m);
}

int main(void)
{
    RUN(type_and_size_are_checked);
    RUN(device_memory_goes_in);
    RUN(outputs_stay_while_a_plan_is_there);
    return test_summary();
}
