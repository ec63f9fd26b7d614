/* SPDX-License-Identifier: MIT */
/* Progress reports of an epoch that a device runs in slices: after each slice, they equal those of a trainer that looks
 * at every step. On "guarded", which executes queued entries as late as possible, so that slices pile up. The trainer
 * uses the test's clock, so that slices have the same sizes in every run. */
#include <math.h>
#include <stdio.h>

#include "framework/trainer_internal.h"
#include "framework/watched_training.h"

enum { EPOCHS = 2, STEPS = SAMPLES };

typedef struct moment {
    double loss, accuracy, rate;
    int64_t samples;
} moment;

typedef struct record {
    watcher watcher; /* first: options_on's `user` */
    moment after[EPOCHS][STEPS + 1];
    int64_t last; /* the last reported step of this epoch */
    int told, epoch, wrong;
    const struct record *expected; /* NULL: these are the expected ones */
} record;

static void note(const sdlf_progress *progress, void *user)
{
    record *seen = user;
    if (progress->event == SDLF_PROGRESS_EPOCH) {
        seen->wrong += progress->step != progress->steps;
        return;
    }
    if (seen->epoch != progress->epoch) seen->last = 0;
    bool backwards = progress->step <= seen->last;
    seen->epoch = progress->epoch;
    seen->last = progress->step;
    seen->told++;
    if (!CHECK(progress->epoch >= 1 && progress->epoch <= EPOCHS && progress->step > 0 && progress->step <= STEPS))
        return;
    moment *now = &seen->after[progress->epoch - 1][progress->step];
    *now = (moment){progress->loss, progress->accuracy, (double)progress->learning_rate, progress->samples};
    if (seen->expected != NULL) {
        const moment *then = &seen->expected->after[progress->epoch - 1][progress->step];
        bool same = now->samples == then->samples && fabs(now->rate - then->rate) < 1e-12 &&
                    fabs(now->loss - then->loss) < 1e-9 && fabs(now->accuracy - then->accuracy) < 1e-9;
        if (backwards || !same) {
            seen->wrong++;
            printf("    epoch %d step %lld: %lld samples, loss %g, expected %lld, %g\n", progress->epoch,
                   (long long)progress->step, (long long)now->samples, now->loss, (long long)then->samples, then->loss);
        }
    }
    if (seen->told == seen->watcher.stop_after) sdlf_trainer_stop(seen->watcher.trainer);
}

static record expected, found;

/* Clocks: no time passes between two readings, so that slices grow; about the target time of a slice, so that they keep
 * their size; or so much that they have one step. */
static double still_clock(void)
{
    return 0;
}

static double steady_clock(void)
{
    static double seconds;
    return seconds += 0.09;
}

static double hasty_clock(void)
{
    static double seconds;
    return seconds += 1000;
}

/* True if the training was stopped. */
static bool run(record *into, sdlf_model *model, const char *calculator, int64_t batch, int64_t device_data)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_trainer_options options = options_on(calculator, batch, &into->watcher);
    options.callback = note;
    options.device_data = device_data;
    options.resume = sdlf_model_training_state(model)->present;
    sdlf_status status = train(model, &data, &options);
    synthetic_release(&data);
    CHECK(status == SDLF_OK || status == SDLF_ERROR_INTERRUPTED);
    return status == SDLF_ERROR_INTERRUPTED;
}

/* Compare uninterrupted training with training that is stopped after each of its first messages in turn. Returns how
 * often the former reported steps. */
static int compare(int64_t batch, int64_t device_data, double (*clock)(void))
{
    int told = 0, runs = clock == hasty_clock ? 2 : batch == 1 ? 3 : 6;
    for (int stop_after = 0; stop_after < runs; stop_after++) {
        sdlf_model *model = synthetic_model();
        found = (record){.watcher = {.stop_after = stop_after, .clock = clock}, .expected = &expected};
        bool stopped = run(&found, model, "guarded", batch, device_data);
        if (stop_after == 0) told = found.told;
        CHECK(stopped || stop_after != 1); /* later ones may find all of the last epoch queued */
        found.watcher.stop_after = 0;
        if (stopped) CHECK(!run(&found, model, "guarded", batch, device_data));
        CHECK_EQUAL(found.wrong, 0);
        CHECK(found.epoch == EPOCHS && found.last == (SAMPLES + batch - 1) / batch);
        sdlf_model_free(model);
    }
    return told;
}

static void steps_are_told_as_they_were(void)
{
    const int64_t batches[] = {1, 7, SAMPLES - 1, SAMPLES};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        int64_t batch = batches[i];
        sdlf_model *model = synthetic_model();
        expected = (record){.told = 0};
        CHECK(!run(&expected, model, "reference", batch, 0));
        sdlf_model_free(model);
        for (int late = 0; late < 3; late++) { /* data resident, copied as late as allowed, and copied */
            test_guarded_late(late == 1 ? SDLF_QUEUE_TRANSFER : SDLF_QUEUE_COMPUTE);
            int still = compare(batch, late > 0, still_clock), steady = compare(batch, late > 0, steady_clock);
            int hasty = compare(batch, late > 0, hasty_clock);
            CHECK(hasty >= steady && steady >= still && (batch > 1 || hasty > 10 * steady));
        }
    }
}

/* A slice lasts a tenth of a second, is at most four times the last one, and consists of whole recordings of 64 or 8
 * steps if there are that many. */
static void slices_take_a_tenth_of_a_second(void)
{
    static const struct {
        int64_t before, steps;
        double seconds;
        int64_t expected;
    } cases[] = {
        {16, 16, 0.1, 16}, {16, 16, 0.125, 8}, {16, 16, 0.05, 32},      {16, 16, 0.001, 64},
        {16, 16, 0, 64},   {64, 640, 1, 64},   {64, 650, 1, 64},        {64, 630, 1, 56},
        {64, 1270, 1, 64}, {64, 1280, 1, 128}, {1000, 100000, 1, 3968}, {8, 80, 1, 8},
        {8, 79, 1, 7},     {8, 11, 1, 1},      {8, 10, 1, 1},           {8, 9, 1, 1},
        {8, 1, 100, 1},    {1, 5, 1e-9, 4},    {2, 100, 1e-9, 8},       {15, 100, 1e-9, 56},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_EQUAL(sdlf_trainer_slice_size(cases[i].before, cases[i].steps, cases[i].seconds), cases[i].expected);
}

int main(void)
{
    RUN(slices_take_a_tenth_of_a_second);
    RUN(steps_are_told_as_they_were);
    return test_summary();
}
