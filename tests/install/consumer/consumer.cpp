/* SPDX-License-Identifier: MIT */
// The headers in C++, as strict as compilers are: what is a macro with C's initialisers has another form there.
#include <cstddef>

#include <sdlf/sdlf.h>

static void shapes()
{
    const std::size_t side = 28;
    const sdlf_shape image = sdlf_shape(1, side, 28), scalar = SDLF_SCALAR;
    if (sdlf_shape_count(image) != 784 || image.rank != 3 || scalar.rank != 0 || sdlf_shape_count(scalar) != 1) throw 1;
}

static void optimizers()
{
    sdlf_optimizer optimizer = sdlf_adam();
    sdlf_schedule schedule = sdlf_one_cycle();
    if (sdlf_optimizer_complete(&optimizer) != SDLF_OK || schedule.kind != SDLF_SCHEDULE_ONE_CYCLE) throw 2;
#if __cplusplus >= 202002L
    schedule = sdlf_cosine(.peak = 0.5f, .final = 0.25f);
    optimizer = sdlf_sgd(.momentum = 0.5f);
    if (schedule.kind != SDLF_SCHEDULE_COSINE || !(schedule.peak > 0.4f) || !(optimizer.options.sgd.momentum > 0.4f))
        throw 3;
#endif
}

// x (4) -> relu -> y
static void networks()
{
    const float x[4] = {-1, 2, -3, 4};
    float y[4] = {};
    sdlf_model *model = sdlf_model_create("net");
    sdlf_output(model, "y", sdlf_relu(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(4))));
    sdlf_calculator *calculator = nullptr;
    sdlf_plan *plan = nullptr;
    sdlf_plan_options options = {};
    sdlf_status status = sdlf_calculator_open(&calculator, "cpu", nullptr);
    options.batch = 1;
    options.forward = calculator;
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, model, &options);
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_read(plan, "y", y, SDLF_FLOAT32, sizeof y);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    if (status != SDLF_OK || y[0] > 0 || y[1] < 2 || y[3] < 4) throw 4;
}

int main()
{
    shapes();
    optimizers();
    networks();
}
