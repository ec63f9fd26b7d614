/* SPDX-License-Identifier: MIT */
/* Training against float targets: learning, testing, files, resuming, rejected arguments. */
#include <math.h>
#include <stdio.h>

#include "framework/trainer_history.h"

enum { COUNT = 50, TEST = 23 };

/* Rows of three values u with the targets of `loss`: u0 + 2 u1 and u0 - u2; or whether each is above 0. */
typedef struct rows {
    float sample[COUNT][3], target[COUNT][2];
    sdlf_dataset data;
} rows;

static void make_rows(rows *r, int count, uint64_t seed, bool several)
{
    static char name[] = "rows";
    for (int n = 0; n < count; n++) {
        sdlf_philox draw = sdlf_philox4x32(seed, (uint64_t)n, SDLF_STREAM_DATASET, 0);
        float *u = r->sample[n], *t = r->target[n];
        for (int i = 0; i < 3; i++) u[i] = 2 * sdlf_uniform_from_word(draw.word[i]) - 1;
        t[0] = u[0] + 2 * u[1];
        t[1] = u[0] - u[2];
        for (int k = 0; several && k < 2; k++) t[k] = t[k] > 0;
    }
    r->data = (sdlf_dataset){.name = name,
                             .samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count, 3), r->sample),
                             .labels = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count, 2), r->target),
                             .class_count = 2,
                             .scale = 1};
}

static sdlf_model *linear(void)
{
    sdlf_model *model = sdlf_model_create("linear");
    sdlf_node x = sdlf_input(model, "u", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_output(model, "value",
                sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = 2}));
    return model;
}

static sdlf_trainer_options options_of(history *seen, sdlf_loss loss, const char *calculator)
{
    return (sdlf_trainer_options){.batch = 8,
                                  .epochs = 30,
                                  .loss = loss,
                                  .optimizer = sdlf_adam(.beta1 = 0.9),
                                  .schedule = sdlf_constant(.peak = 0.05f),
                                  .forward = calculator,
                                  .callback = watch,
                                  .user = seen};
}

/* Check the library's metrics of the model by recomputing them. */
static void check_figures(sdlf_model *model, const rows *test, sdlf_loss loss, sdlf_calculator *calculator)
{
    sdlf_evaluation found;
    const float *w = sdlf_model_find_parameter(model, "f.weight")->value.data;
    const float *b = sdlf_model_find_parameter(model, "f.bias")->value.data;
    double absolute = 0, squared = 0, sum = 0;
    int64_t right = 0, all = 0, hits[2] = {0, 0}, wrong[2] = {0, 0};
    for (int n = 0; n < TEST; n++) {
        int good = 0;
        for (int k = 0; k < 2; k++) {
            double x = (double)b[k], t = (double)test->target[n][k];
            for (int i = 0; i < 3; i++) x += (double)w[3 * k + i] * (double)test->sample[n][i];
            double d = fabs(x - t);
            absolute += d;
            squared += d * d;
            sum += loss == SDLF_LOSS_MSE     ? d * d
                   : loss == SDLF_LOSS_MAE   ? d
                   : loss == SDLF_LOSS_HUBER ? (d < 1 ? d * d / 2 : d - 0.5)
                                             : log1p(exp(x)) - x * t;
            good += (x > 0) == (t > 0.5);
            hits[k] += x > 0 && t > 0.5;
            wrong[k] += (x > 0) != (t > 0.5);
        }
        right += good;
        all += good == 2;
    }
    if (!CHECK_OK(sdlf_evaluate(&found, model, &test->data, calculator, 7))) return;
    CHECK(found.kind == loss && found.samples == TEST && found.class_count == 2 && found.confusion == NULL);
    CHECK_CLOSE(found.loss, sum / (2 * TEST), 1e-5);
    CHECK_CLOSE(sdlf_evaluation_mae(&found), absolute / (2 * TEST), 1e-5);
    CHECK_CLOSE(sdlf_evaluation_rmse(&found), sqrt(squared / (2 * TEST)), 1e-5);
    if (loss == SDLF_LOSS_BCE) {
        double f1 = 0;
        for (int k = 0; k < 2; k++) f1 += 2.0 * (double)hits[k] / (2 * (double)hits[k] + (double)wrong[k]) / 2;
        CHECK_CLOSE(sdlf_evaluation_accuracy(&found), (double)right / (2 * TEST), 1e-12);
        CHECK_CLOSE(sdlf_evaluation_f1(&found), f1, 1e-12);
        CHECK_EQUAL(found.correct, all);
    } else {
        CHECK(isnan(sdlf_evaluation_accuracy(&found)) && isnan(sdlf_evaluation_f1(&found)) && found.correct == 0);
    }
    sdlf_evaluation_release(&found);
}

static void check_loss(const char *calculator, sdlf_loss loss)
{
    rows train_rows, test_rows;
    history seen = {0};
    sdlf_trainer_options options = options_of(&seen, loss, calculator);
    make_rows(&train_rows, COUNT, 1, loss == SDLF_LOSS_BCE);
    make_rows(&test_rows, TEST, 2, loss == SDLF_LOSS_BCE);
    sdlf_model *model = linear();
    CHECK_OK(train(model, &train_rows.data, &test_rows.data, &options));
    CHECK(seen.last_loss < (loss == SDLF_LOSS_BCE ? 0.2 : 0.05)); /* from 0.6 and more */
    CHECK(loss == SDLF_LOSS_BCE ? seen.test_accuracy > 0.8 : isnan(seen.test_accuracy));
    CHECK_EQUAL(sdlf_model_loss(model), loss);
    sdlf_calculator *opened = test_open(calculator);
    check_figures(model, &test_rows, loss, opened);
    /* a file says it too */
    sdlf_model *file = NULL;
    CHECK_OK(sdlf_model_save(model, test_path("targets.safetensors")));
    if (CHECK_OK(sdlf_model_open(&file, test_path("targets.safetensors"))))
        check_figures(file, &test_rows, loss, opened);
    sdlf_calculator_close(opened);
    sdlf_model_free(file);
    sdlf_model_free(model);
}

static void every_loss_is_learnt(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++)
        for (int loss = SDLF_LOSS_MSE; loss < SDLF_LOSS_COUNT; loss++) check_loss(type->name, (sdlf_loss)loss);
}

static void stopping_changes_nothing(void)
{
    rows r;
    history seen = {0};
    make_rows(&r, COUNT, 1, false);
    sdlf_trainer_options options = options_of(&seen, SDLF_LOSS_HUBER, synthetic_calculator());
    sdlf_model *whole = linear(), *parts = linear();
    CHECK_OK(train(whole, &r.data, NULL, &options));
    seen = (history){.stop_after = 40};
    CHECK_FAILS(train(parts, &r.data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    seen.stop_after = 0;
    options.resume = true;
    options.loss = SDLF_LOSS_MSE;
    CHECK_FAILS(train(parts, &r.data, NULL, &options), SDLF_ERROR_ARGUMENT, "trained with loss huber");
    sdlf_trainer_options restored = options;
    CHECK_OK(sdlf_trainer_restore_options(&restored, sdlf_model_training_state(parts)));
    CHECK_EQUAL(restored.loss, SDLF_LOSS_HUBER);
    CHECK_OK(train(parts, &r.data, NULL, &restored));
    CHECK_EQUAL(sdlf_model_hash(parts), sdlf_model_hash(whole));
    sdlf_model_free(parts);
    sdlf_model_free(whole);
}

/* Check the test metrics of huber with that delta. */
static void check_huber(sdlf_model *model, const rows *test, double delta)
{
    sdlf_evaluation found;
    const float *w = sdlf_model_find_parameter(model, "f.weight")->value.data;
    const float *b = sdlf_model_find_parameter(model, "f.bias")->value.data;
    double loss = 0;
    for (int n = 0; n < TEST; n++)
        for (int k = 0; k < 2; k++) {
            double y = (double)b[k];
            for (int i = 0; i < 3; i++) y += (double)w[3 * k + i] * (double)test->sample[n][i];
            double d = fabs(y - (double)test->target[n][k]);
            loss += (d < delta ? d * d / 2 : delta * (d - delta / 2)) / 2 / TEST;
        }
    sdlf_calculator *calculator = test_open("reference");
    CHECK_CLOSE(sdlf_model_huber_delta(model), delta, 1e-7);
    if (CHECK_OK(sdlf_evaluate(&found, model, &test->data, calculator, 0))) {
        CHECK_CLOSE(found.loss, loss, 1e-5);
        CHECK_CLOSE(found.huber_delta, delta, 1e-7);
        sdlf_evaluation_release(&found);
    }
    sdlf_calculator_close(calculator);
}

/* The delta of huber affects training and tests, is stored in files, and may not change during training. */
static void huber_has_a_delta(void)
{
    rows r, t;
    history seen = {0};
    make_rows(&r, COUNT, 1, false);
    make_rows(&t, TEST, 2, false);
    sdlf_trainer_options options = options_of(&seen, SDLF_LOSS_HUBER, synthetic_calculator());
    options.epochs = 2;
    sdlf_model *usual = linear(), *own = linear(), *file = NULL;
    CHECK_OK(train(usual, &r.data, NULL, &options));
    options.huber_delta = 0.25f;
    CHECK_OK(train(own, &r.data, NULL, &options));
    CHECK(sdlf_model_hash(usual) != sdlf_model_hash(own));
    check_huber(usual, &t, 1);
    check_huber(own, &t, 0.25);
    CHECK_OK(sdlf_model_save(own, test_path("huber.safetensors")));
    if (CHECK_OK(sdlf_model_open(&file, test_path("huber.safetensors")))) check_huber(file, &t, 0.25);
    options.resume = true;
    options.epochs = 3;
    options.huber_delta = 0;
    CHECK_FAILS(train(own, &r.data, NULL, &options), SDLF_ERROR_ARGUMENT, "huber_delta is not what");
    options.huber_delta = -1;
    CHECK_FAILS(train(own, &r.data, NULL, &options), SDLF_ERROR_ARGUMENT, "huber_delta");
    CHECK_FAILS(sdlf_model_set_huber_delta(own, 0), SDLF_ERROR_ARGUMENT, "expected a number from 1e-6 to 1e6");
    sdlf_model_free(file);
    sdlf_model_free(own);
    sdlf_model_free(usual);
}

/* For a loss without accuracy, the best epoch is the one with the lowest loss. */
static void the_best_is_told_by_loss(void)
{
    rows r, t;
    history seen = {0};
    double loss = NAN, accuracy = 0;
    make_rows(&r, COUNT, 1, false);
    make_rows(&t, TEST, 2, false);
    sdlf_trainer_options options = options_of(&seen, SDLF_LOSS_MSE, synthetic_calculator());
    options.keep = SDLF_KEEP_BEST_ACCURACY;
    sdlf_model *model = linear();
    sdlf_trainer *trainer = NULL;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &r.data, &t.data, &options));
    seen.trainer = trainer;
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK(sdlf_trainer_best_epoch(trainer, &loss, &accuracy) > 5 && loss < 0.01 && isnan(accuracy));
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
}

static void refuse(sdlf_model *model, const sdlf_dataset *data, sdlf_trainer_options options, sdlf_status status,
                   const char *words)
{
    sdlf_trainer *trainer = NULL;
    CHECK_FAILS(sdlf_trainer_create(&trainer, model, data, NULL, &options), status, words);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
}

static void what_does_not_fit_is_refused(void)
{
    rows r;
    history seen = {0};
    make_rows(&r, COUNT, 1, false);
    sdlf_trainer_options options = options_of(&seen, SDLF_LOSS_MSE, synthetic_calculator());
    sdlf_dataset pictures = synthetic_dataset(20, 1);
    refuse(synthetic_model(), &pictures, options, SDLF_ERROR_SHAPE,
           "its loss mse is of float targets, but synthetic has");
    options.loss = SDLF_LOSS_CROSS_ENTROPY;
    refuse(linear(), &r.data, options, SDLF_ERROR_SHAPE, "its loss cross_entropy is of classes, but rows has float");
    options.loss = SDLF_LOSS_BCE;
    refuse(linear(), &r.data, options, SDLF_ERROR_ARGUMENT, "expected 0 to 1, found");
    options.loss = SDLF_LOSS_COUNT;
    refuse(linear(), &r.data, options, SDLF_ERROR_ARGUMENT, "there is no loss 5");
    options.loss = SDLF_LOSS_MSE;
    snprintf(options.class_weights, sizeof options.class_weights, "balanced");
    refuse(linear(), &r.data, options, SDLF_ERROR_ARGUMENT, "class_weights is for classes, but the loss is mse");
    options.class_weights[0] = '\0';
    r.target[7][1] = NAN;
    refuse(linear(), &r.data, options, SDLF_ERROR_ARGUMENT, "sample 7, target 1: expected a finite number, found nan");
    r.target[7][1] = 0;
    r.data.class_count = 3;
    refuse(linear(), &r.data, options, SDLF_ERROR_SHAPE, "or float32 targets (50,3), found float32 50x2");
    r.data.class_count = 2;
    sdlf_model *softmax = linear();
    sdlf_model_clear_outputs(softmax);
    sdlf_output(softmax, "class", sdlf_softmax(softmax, (sdlf_node){.layer = 1}));
    refuse(softmax, &r.data, options, SDLF_ERROR_SHAPE, "mse is of the values themselves, and output 'softmax' is a");
    synthetic_release(&pictures);
}

/* A model with its own loss layer. */
static void the_models_own_loss_counts(void)
{
    rows r;
    history seen = {0};
    make_rows(&r, COUNT, 1, false);
    sdlf_trainer_options options = options_of(&seen, SDLF_LOSS_CROSS_ENTROPY, synthetic_calculator());
    sdlf_model *own = linear(), *added = linear();
    sdlf_node t = sdlf_input(own, "t", SDLF_FLOAT32, sdlf_shape(2));
    sdlf_mse(own, (sdlf_node){.layer = 1}, t);
    CHECK_EQUAL(sdlf_model_loss(own), SDLF_LOSS_MSE);
    CHECK_FAILS(sdlf_model_set_loss(own, SDLF_LOSS_MAE), SDLF_ERROR_ARGUMENT, "so that mae cannot be added");
    CHECK_OK(train(own, &r.data, NULL, &options));
    options.loss = SDLF_LOSS_MSE;
    CHECK_OK(train(added, &r.data, NULL, &options));
    CHECK_EQUAL(sdlf_model_hash(own), sdlf_model_hash(added));
    sdlf_model_free(added);
    sdlf_model_free(own);
}

int main(void)
{
    RUN(every_loss_is_learnt);
    RUN(huber_has_a_delta);
    RUN(stopping_changes_nothing);
    RUN(the_best_is_told_by_loss);
    RUN(what_does_not_fit_is_refused);
    RUN(the_models_own_loss_counts);
    return test_summary();
}
