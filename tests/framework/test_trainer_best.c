/* SPDX-License-Identifier: MIT */
/* Keeping the epoch with the best test result, and early stopping. */
#include "framework/trainer_history.h"

enum { EPOCHS = 8 };

typedef struct epochs_seen {
    history seen;
    uint32_t weights[EPOCHS + 1];
    double loss[EPOCHS + 1], accuracy[EPOCHS + 1];
    int best; /* the last one reported as best */
    sdlf_trainer *stop;
    int stop_epoch;
} epochs_seen;

static void note(const sdlf_progress *now, void *user)
{
    epochs_seen *e = user;
    watch(now, &e->seen);
    if (now->event == SDLF_PROGRESS_STEP && e->stop != NULL && now->epoch == e->stop_epoch) sdlf_trainer_stop(e->stop);
    if (now->event != SDLF_PROGRESS_EPOCH) return;
    e->weights[now->epoch] = now->weights;
    e->loss[now->epoch] = now->test_loss;
    e->accuracy[now->epoch] = now->test_accuracy;
    if (now->best) e->best = now->epoch;
}

/* A learning rate at which the test result fluctuates. */
static sdlf_trainer_options options_of(epochs_seen *e, const char *calculator)
{
    sdlf_trainer_options options = base_options(&e->seen);
    options.forward = calculator;
    options.epochs = EPOCHS;
    options.schedule = sdlf_constant(.peak = 0.4f);
    options.callback = note;
    options.user = e;
    return options;
}

static int best_of(const epochs_seen *e, sdlf_keep keep, int epochs)
{
    int best = 1;
    for (int i = 2; i <= epochs; i++) {
        bool better =
            e->accuracy[i] > e->accuracy[best] || (e->accuracy[i] == e->accuracy[best] && e->loss[i] < e->loss[best]);
        if (keep == SDLF_KEEP_BEST_LOSS) better = e->loss[i] < e->loss[best];
        if (better) best = i;
    }
    return best;
}

static void check_kept(const char *calculator, sdlf_keep keep, int patience)
{
    epochs_seen all = {.best = 0}, e = {.best = 0};
    sdlf_dataset data = synthetic_dataset(50, 1), test = synthetic_dataset(40, 2);
    sdlf_model *model = synthetic_model(), *other = synthetic_model(), *file = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_trainer_options options = options_of(&all, calculator);
    CHECK_OK(train(other, &data, &test, &options));
    CHECK_EQUAL(all.best, 0); /* the best epoch is not tracked */
    options = options_of(&e, calculator);
    options.keep = keep;
    options.patience = patience;
    options.checkpoint = test_path("best.safetensors");
    if (CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &test, &options)) && CHECK_OK(sdlf_trainer_run(trainer))) {
        int ran = (int)e.seen.epochs, best = best_of(&all, keep, ran);
        CHECK(patience > 0 ? ran <= EPOCHS && (ran == EPOCHS || ran == best + patience) : ran == EPOCHS);
        for (int i = 1; i <= ran; i++) CHECK_EQUAL(e.weights[i], all.weights[i]); /* the same training */
        CHECK_EQUAL(e.best, best);
        double loss, accuracy;
        CHECK_EQUAL(sdlf_trainer_best_epoch(trainer, &loss, &accuracy), best);
        CHECK(loss == all.loss[best] && accuracy == all.accuracy[best]);
        int kept = keep != SDLF_KEEP_LAST ? best : ran;
        CHECK_EQUAL(sdlf_model_hash(model), all.weights[kept]);
        CHECK_EQUAL(sdlf_model_training_state(model)->epoch, kept);
        if (CHECK_OK(sdlf_model_open(&file, options.checkpoint))) {
            CHECK_EQUAL(sdlf_model_hash(file), all.weights[kept]);
            CHECK_EQUAL(sdlf_model_training_state(file)->epoch, kept);
        }
        CHECK_OK(sdlf_trainer_run(trainer)); /* nothing is left to do */
        CHECK_EQUAL(e.seen.epochs, ran);
        CHECK_EQUAL(sdlf_model_hash(model), all.weights[kept]);
    }
    sdlf_trainer_free(trainer);
    sdlf_model_free(file);
    sdlf_model_free(model);
    sdlf_model_free(other);
    synthetic_release(&data);
    synthetic_release(&test);
}

static void the_best_is_kept(void)
{
    check_kept(synthetic_calculator(), SDLF_KEEP_BEST_ACCURACY, 0);
    check_kept(synthetic_calculator(), SDLF_KEEP_BEST_LOSS, 0);
    check_kept("reference", SDLF_KEEP_BEST_LOSS, 0);
}

static void patience_ends(void)
{
    check_kept(synthetic_calculator(), SDLF_KEEP_LAST, 2);
    check_kept(synthetic_calculator(), SDLF_KEEP_BEST_LOSS, 1);
    check_kept(synthetic_calculator(), SDLF_KEEP_BEST_ACCURACY, 3);
}

/* When resumed, the stored epoch is the best so far, and training is as it was from there. */
static void going_on_from_the_best(void)
{
    epochs_seen first = {.best = 0}, second = {.best = 0};
    sdlf_dataset data = synthetic_dataset(50, 1), test = synthetic_dataset(40, 2);
    sdlf_model *model = synthetic_model(), *file = NULL;
    sdlf_trainer_options options = options_of(&first, synthetic_calculator());
    options.keep = SDLF_KEEP_BEST_LOSS;
    options.checkpoint = test_path("resumed.safetensors");
    sdlf_trainer *trainer = NULL;
    if (CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &test, &options))) {
        first.stop = trainer;
        first.stop_epoch = 6;
        CHECK_FAILS(sdlf_trainer_run(trainer), SDLF_ERROR_INTERRUPTED, "; the best epoch is in ");
    }
    sdlf_trainer_free(trainer);
    int kept = best_of(&first, SDLF_KEEP_BEST_LOSS, 5);
    if (CHECK_OK(sdlf_model_open(&file, options.checkpoint))) {
        CHECK_EQUAL(sdlf_model_training_state(file)->epoch, kept);
        options.resume = true;
        options.user = &second;
        CHECK_OK(train(file, &data, &test, &options));
        for (int i = kept + 1; i <= 5; i++) CHECK_EQUAL(second.weights[i], first.weights[i]);
        CHECK_EQUAL(second.weights[kept], 0);
        if (second.best == 0) CHECK_EQUAL(sdlf_model_hash(file), first.weights[kept]);
    }
    sdlf_model_free(file);
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&test);
}

static void wrong_options(void)
{
    epochs_seen e = {.best = 0};
    sdlf_dataset data = synthetic_dataset(20, 1);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_of(&e, "reference");
    options.keep = SDLF_KEEP_BEST_LOSS;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT, "keep needs a test set");
    options.keep = SDLF_KEEP_LAST;
    options.patience = 1;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT, "patience needs a test set");
    options.patience = -1;
    CHECK_FAILS(train(model, &data, &data, &options), SDLF_ERROR_ARGUMENT, "patience -1");
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(the_best_is_kept);
    RUN(patience_ends);
    RUN(going_on_from_the_best);
    RUN(wrong_options);
    return test_summary();
}
