/* SPDX-License-Identifier: MIT */
/* mse, mae, huber, bce_with_logits: rejected inputs, loss and metrics computed by hand, gradients of both inputs. */
#include "layers/gradients.h"

typedef struct loss_kind {
    const char *name;
    float delta;
} loss_kind;

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    const loss_kind *kind = options;
    if (strcmp(kind->name, "mse") == 0) return sdlf_mse(model, x[0], x[1]);
    if (strcmp(kind->name, "mae") == 0) return sdlf_mae(model, x[0], x[1]);
    if (strcmp(kind->name, "bce_with_logits") == 0) return sdlf_bce_with_logits(model, x[0], x[1]);
    return sdlf_huber(model, x[0], x[1], &(sdlf_huber_options){.delta = kind->delta});
}

static const loss_kind kinds[] = {{"mse", 0}, {"mae", 0}, {"huber", 0.5f}, {"huber", 3}, {"bce_with_logits", 0}};
enum { KINDS = sizeof kinds / sizeof kinds[0], ROWS = 3, COLUMNS = 2 };

static double term(const loss_kind *kind, double x, double t)
{
    double d = x - t, delta = (double)kind->delta;
    if (strcmp(kind->name, "mse") == 0) return d * d;
    if (strcmp(kind->name, "mae") == 0) return fabs(d);
    if (strcmp(kind->name, "huber") == 0) return fabs(d) < delta ? d * d / 2 : delta * (fabs(d) - delta / 2);
    double p = 1 / (1 + exp(-x));
    return -t * log(p) - (1 - t) * log(1 - p);
}

static void check_loss(const char *calculator_name, const loss_kind *kind)
{
    static const float x[ROWS * COLUMNS] = {1, -2, 0.25f, 4, -0.5f, 2}, t[ROWS * COLUMNS] = {1, 0, 0, 1, 1, 0.75f};
    double expected = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) expected += term(kind, (double)x[i], (double)t[i]) / (ROWS * COLUMNS);
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_metrics metrics;
    float loss = 0;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("loss");
    sdlf_node in[2] = {sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(COLUMNS)),
                       sdlf_input(model, "t", SDLF_FLOAT32, sdlf_shape(COLUMNS))};
    sdlf_output(model, "cost", build(model, in, kind));
    if (CHECK_OK(sdlf_plan_create(&plan, model,
                                  &(sdlf_plan_options){.batch = ROWS, .mode = SDLF_TRAIN, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(test_plan_write(plan, "t", t));
        for (int pass = 1; pass <= 2; pass++) {
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "cost", &loss));
            CHECK_CLOSE(loss, expected, 1e-6);
            CHECK_OK(sdlf_plan_metrics(plan, &metrics));
            CHECK_CLOSE(metrics.loss_sum, ROWS * pass * expected, 1e-5);
            CHECK_CLOSE(metrics.samples, ROWS * pass, 0);
            bool counts = strcmp(kind->name, "bce_with_logits") == 0; /* the third and the fifth element are wrong */
            CHECK_CLOSE(metrics.correct, counts ? ROWS * pass * 4.0 / 6 : 0, 1e-6);
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void losses_match(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++)
        for (int k = 0; k < KINDS; k++) check_loss(test_calculator_class_at(i)->name, &kinds[k]);
}

/* Against targets that are a constant too, and large logits, whose exponentials are not numbers. */
static void large_logits(void)
{
    static const float x[2] = {200, -200}, t[2] = {1, 1};
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float loss = 0;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL));
        sdlf_model *model = sdlf_model_create("loss");
        sdlf_node in[2] = {sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(1)),
                           sdlf_input(model, "t", SDLF_FLOAT32, sdlf_shape(1))};
        sdlf_output(model, "cost", sdlf_bce_with_logits(model, in[0], in[1]));
        if (CHECK_OK(sdlf_plan_create(&plan, model,
                                      &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = calculator}))) {
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(test_plan_write(plan, "t", t));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "cost", &loss));
            CHECK_CLOSE(loss, 100, 1e-4);
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

/* The inputs are far enough from each other, and from a difference of delta, for differences of them. */
static void gradients_match(void)
{
    layer_case cases[KINDS];
    for (int k = 0; k < KINDS; k++)
        cases[k] = (layer_case){.what = kinds[k].name,
                                .build = build,
                                .options = &kinds[k],
                                .input = {sdlf_shape(3, 2, 2), sdlf_shape(3, 2, 2)},
                                .input_count = 2,
                                .unit = 0.23};
    check_all_gradients(cases, KINDS);
}

static sdlf_node build_from_halves(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node t = sdlf_input(model, "t", SDLF_FLOAT32, sdlf_shape(5));
    return build(model, (const sdlf_node[]){x[0], t}, options);
}

static sdlf_node build_from_integers(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node t = sdlf_input(model, "t", SDLF_INT32, sdlf_shape(3));
    return build(model, (const sdlf_node[]){x[0], t}, options);
}

static sdlf_node build_twice(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return build(model, (const sdlf_node[]){x[0], x[0]}, options);
}

static void shapes_are_checked(void)
{
    for (int k = 0; k < KINDS; k++) {
        check_refused(build_from_halves, &kinds[k], sdlf_shape(3), SDLF_ERROR_SHAPE,
                      "expected targets of shape 1x3, as what is compared with them, found 1x5");
        check_refused(build_from_integers, &kinds[k], sdlf_shape(3), SDLF_ERROR_SHAPE, "int32");
        CHECK(sdlf_layer_class_find(kinds[k].name)->is_loss && sdlf_layer_class_find(kinds[k].name)->has_metrics);
    }
    check_output(build_twice, &(loss_kind){"huber", 0}, sdlf_shape(5), SDLF_SCALAR); /* delta 1 */
    check_refused(build_from_halves, &(loss_kind){"huber", -1}, sdlf_shape(5), SDLF_ERROR_ARGUMENT, "delta: expected");
}

int main(void)
{
    RUN(shapes_are_checked);
    RUN(losses_match);
    RUN(large_logits);
    RUN(gradients_match);
    return test_summary();
}
