/* SPDX-License-Identifier: MIT */
/* Trajectories of the optimizers, with and without clipping, compared with PyTorch's. */
#include "torch/fixtures.h"

enum { MAXIMUM_WEIGHTS = 16 };

/* The operands of an update, in the calculator's memory. */
typedef struct operands {
    sdlf_binding weight, gradient, rate, step, state[3];
    sdlf_binding squares, scale; /* for clipping */
    sdlf_dtype dtype;
} operands;

static operands make_operands(sdlf_calculator *calculator, sdlf_dtype dtype, int64_t count)
{
    static const double zeros[MAXIMUM_WEIGHTS] = {0};
    operands made = {
        .weight = test_tensor(calculator, dtype, sdlf_shape(count), NULL),
        .gradient = test_tensor(calculator, dtype, sdlf_shape(count), NULL),
        .rate = test_tensor(calculator, dtype, sdlf_shape(1), NULL),
        .step = test_tensor(calculator, SDLF_INT64, sdlf_shape(1), NULL),
        .squares = test_tensor(calculator, dtype, sdlf_shape(1), NULL),
        .scale = test_tensor(calculator, dtype, sdlf_shape(1), NULL),
        .dtype = dtype,
    };
    for (int index = 0; index < 3; index++)
        made.state[index] = test_tensor(calculator, dtype, sdlf_shape(count), zeros);
    return made;
}

/* Convert values of the fixture to the operands' type. */
static int64_t numbers_of(const json_t *array, sdlf_dtype dtype, void *to)
{
    double number[MAXIMUM_WEIGHTS] = {0};
    int64_t count = (int64_t)json_array_size(array);
    if (!CHECK(count <= MAXIMUM_WEIGHTS)) return 0;
    for (int64_t index = 0; index < count; index++)
        number[index] = json_number_value(json_array_get(array, (size_t)index));
    sdlf_convert(dtype, to, SDLF_FLOAT64, number, count);
    return count;
}

/* float64: tight for adam and rmsprop, whose updates are in double; sgd's coefficients are floats. float32: 0.99f is
 * off by 1e-8, and each step rounds a weight by up to half a unit in the last place. */
static double tolerance(const char *optimizer, sdlf_dtype dtype)
{
    if (dtype == SDLF_FLOAT32) return 5e-7;
    return strcmp(optimizer, "sgd") == 0 ? 1e-7 : 1e-14;
}

static void release_operands(operands *all)
{
    sdlf_binding *const each[] = {&all->weight, &all->gradient, &all->rate,     &all->step,    &all->squares,
                                  &all->scale,  &all->state[0], &all->state[1], &all->state[2]};
    for (size_t index = 0; index < sizeof each / sizeof each[0]; index++) test_release(each[index]);
}

/* Compute the factor that scales the gradients' norm down to clip_norm, with the operations that a plan uses. */
static void clip(sdlf_calculator *calculator, float clip_norm, const operands *all)
{
    CHECK_OK(sdlf_calculator_run(calculator, &(sdlf_operation){
                                                 .kind = SDLF_REDUCE,
                                                 .in = {all->gradient.tensor},
                                                 .out = {all->squares.tensor},
                                                 .reduce = {.function = SDLF_REDUCE_SUM_SQUARES, .axis = 0},
                                             }));
    CHECK_OK(sdlf_calculator_run(calculator, &(sdlf_operation){
                                                 .kind = SDLF_CLIP_SCALE,
                                                 .in = {all->squares.tensor},
                                                 .out = {all->scale.tensor},
                                                 .clip = {.max_norm = clip_norm},
                                             }));
}

static sdlf_operation describe_update(const sdlf_optimizer *optimizer, const operands *all, bool clipped)
{
    sdlf_operation update = {.kind = SDLF_FILL};
    optimizer->type->update(optimizer, true, &update);
    update.in[0] = all->gradient.tensor;
    update.in[1] = all->rate.tensor;
    if (clipped) update.in[2] = all->scale.tensor;
    if (sdlf_operation_type(&update)->in[3].name != NULL) update.in[3] = all->step.tensor;
    update.out[0] = all->weight.tensor;
    for (int index = 0; index < optimizer->type->state_count(optimizer); index++)
        update.out[1 + index] = all->state[index].tensor;
    return update;
}

/* Perform one step with the case's learning rate and gradients. Returns whether the weights agree. */
static bool check_step(const json_t *c, int64_t step, sdlf_calculator *calculator, const operands *all,
                       const sdlf_operation *update)
{
    const char *name = fixture_text(c, "optimizer");
    double found[MAXIMUM_WEIGHTS], number[MAXIMUM_WEIGHTS], rate;
    json_t *rates = json_pack("[O]", json_array_get(json_object_get(c, "rates"), (size_t)step));
    float clip_norm = (float)fixture_number(c, "clip_norm", 0);
    numbers_of(rates, all->dtype, &rate);
    json_decref(rates);
    int64_t count = numbers_of(json_array_get(json_object_get(c, "gradients"), (size_t)step), all->dtype, number);
    test_upload(&all->gradient, number);
    test_upload(&all->rate, &rate);
    test_upload(&all->step, &step);
    if (clip_norm > 0) clip(calculator, clip_norm, all);
    if (!CHECK_OK(sdlf_calculator_run(calculator, update)) || !test_download(&all->weight, number)) return false;
    sdlf_convert(SDLF_FLOAT64, found, all->dtype, number, count);
    const json_t *weights = json_array_get(json_object_get(c, "weights"), (size_t)step);
    for (int64_t index = 0; index < count; index++) {
        double expected = json_number_value(json_array_get(weights, (size_t)index));
        if (CHECK(fabs(found[index] - expected) <= tolerance(name, all->dtype) * (1 + fabs(expected)))) continue;
        printf("  %s in %s after step %d: %.17g, PyTorch has %.17g\n", name, sdlf_dtype_name(all->dtype), (int)step + 1,
               found[index], expected);
        return false;
    }
    return true;
}

static void check_case(const json_t *c, sdlf_calculator *calculator, sdlf_dtype dtype)
{
    sdlf_optimizer optimizer = {.type = sdlf_optimizer_class_find(fixture_text(c, "optimizer"))};
    if (!CHECK(optimizer.type != NULL)) return;
    fixture_options(json_object_get(c, "options"), optimizer.type->fields, &optimizer.options);
    CHECK_OK(sdlf_optimizer_complete(&optimizer));
    double start[MAXIMUM_WEIGHTS];
    int64_t count = numbers_of(json_object_get(c, "start"), dtype, start);
    int64_t steps = (int64_t)json_array_size(json_object_get(c, "rates"));
    operands all = make_operands(calculator, dtype, count);
    test_upload(&all.weight, start);
    sdlf_operation update = describe_update(&optimizer, &all, fixture_number(c, "clip_norm", 0) > 0);
    for (int64_t step = 0; step < steps && check_step(c, step, calculator, &all, &update); step++) continue;
    release_operands(&all);
}

static void trajectories_agree(void)
{
    json_t *root = fixtures_open("torch_optimizers.json"), *c;
    size_t index;
    for (int which = 0; test_calculator_class_at(which) != NULL; which++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(which)->name, NULL));
        json_array_foreach(json_object_get(root, "cases"), index, c)
        {
            check_case(c, calculator, SDLF_FLOAT32);
            check_case(c, calculator, SDLF_FLOAT64);
        }
        sdlf_calculator_close(calculator);
    }
    json_decref(root);
}

int main(void)
{
    RUN(trajectories_agree);
    return test_summary();
}
