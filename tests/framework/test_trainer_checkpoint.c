/* SPDX-License-Identifier: MIT */
/* Checkpoints that cannot be written: once, for a while, at the end. Training continues, with a warning; the earlier
 * file stays intact. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "framework/trainer_history.h"

/* The test is linked so that these replace the system's functions: some calls of fsync fail, from the n-th on, and
 * waits are skipped. */
static int fsync_count, fail_from, fail_count, pauses;

int __real_fsync(int file);
int __wrap_fsync(int file);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time, (void)left;
    pauses++;
    return 0;
}

int __wrap_fsync(int file)
{
    fsync_count++;
    if (fsync_count < fail_from || fsync_count >= fail_from + fail_count) return __real_fsync(file);
    errno = fail_count % 2 ? ENOSPC : EIO;
    return -1;
}

static void fail(int from, int count)
{
    fsync_count = pauses = 0;
    fail_from = from;
    fail_count = count;
}

enum { TRIES = 3, SYNCS = 2 /* of a successful save: the file, the folder */ };

/* The outcome of a training run. */
typedef struct outcome {
    history seen;
    const char *path;
    int unsaved, unsaved_epoch; /* how often that was reported, and the last epoch */
    int64_t kept;               /* the epoch that the file had then; -1: there was none */
} outcome;

/* The epoch of the file's checkpoint; -1: there is no file. */
static int64_t epoch_in(const char *path)
{
    sdlf_model *model = NULL;
    if (access(path, F_OK) != 0 || !CHECK_OK(sdlf_model_open(&model, path))) return -1;
    int64_t epoch = sdlf_model_training_state(model)->epoch;
    sdlf_model_free(model);
    return epoch;
}

static void note(const sdlf_progress *now, void *user)
{
    outcome *o = user;
    if (now->event != SDLF_PROGRESS_UNSAVED) {
        watch(now, &o->seen);
        return;
    }
    CHECK(strstr(sdlf_error_message(), o->path) != NULL);
    o->unsaved++;
    o->unsaved_epoch = now->epoch;
    o->kept = epoch_in(o->path);
}

/* Train four epochs, of which the fsyncs from `from` on fail, `count` of them; then, if that failed, without
 * failures. */
static outcome train_with_failures(const char *name, int from, int count, sdlf_status expected)
{
    outcome o = {.path = test_path(name)};
    sdlf_dataset data = synthetic_dataset(50, 1);
    sdlf_trainer_options options = base_options(NULL);
    uint32_t hash = trained_hash(&data, options);
    options.checkpoint = o.path;
    options.callback = note;
    options.user = &o;
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, NULL, &options));
    fail(from, count);
    CHECK_EQUAL(sdlf_trainer_run(trainer), expected);
    CHECK(pauses > 0);
    fail(0, 0);
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    CHECK_EQUAL(o.seen.epochs, 4);
    if (expected != SDLF_OK) {
        CHECK(epoch_in(o.path) < 4);
        CHECK_OK(sdlf_trainer_run(trainer)); /* tries again without training */
        CHECK_EQUAL(o.seen.epochs, 4);
    }
    CHECK_EQUAL(epoch_in(o.path), 4);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
    return o;
}

static void once_is_not_told(void)
{
    for (int at = 1; at <= 4; at++) {
        outcome o = train_with_failures("once", at * SYNCS - 1, 1, SDLF_OK);
        CHECK_EQUAL(o.unsaved, 0);
    }
}

static void training_goes_on_with_the_earlier_file(void)
{
    outcome o = train_with_failures("first", 1, TRIES, SDLF_OK);
    CHECK_EQUAL(o.unsaved, 1);
    CHECK_EQUAL(o.unsaved_epoch, 1);
    CHECK_EQUAL(o.kept, -1);
    o = train_with_failures("later", 1 + SYNCS, 2 * TRIES, SDLF_OK);
    CHECK_EQUAL(o.unsaved, 2);
    CHECK_EQUAL(o.unsaved_epoch, 3);
    CHECK_EQUAL(o.kept, 1);
}

/* Saving fails until the end, and is tried once more on request. */
static void the_last_one_counts(void)
{
    outcome o = train_with_failures("last", 1 + 3 * SYNCS, 1000, SDLF_ERROR_IO);
    CHECK_EQUAL(o.unsaved, 0);
    o = train_with_failures("ever", 1, 1000, SDLF_ERROR_IO);
    CHECK_EQUAL(o.unsaved, 3);
    o = train_with_failures("passing", 1 + 3 * SYNCS, TRIES + 1, SDLF_OK);
    CHECK_EQUAL(o.unsaved, 0);
}

/* A stop that could not save is a failure; when run again, the trainer continues, and is not stopped. */
static void a_stop_that_cannot_save_is_over(void)
{
    outcome o = {.path = test_path("stopped"), .seen = {.stop_after = 2}};
    sdlf_dataset data = synthetic_dataset(50, 1);
    sdlf_trainer_options options = base_options(NULL);
    uint32_t hash = trained_hash(&data, options);
    options.checkpoint = o.path;
    options.callback = note;
    options.user = &o;
    sdlf_model *model = synthetic_model();
    CHECK_OK(sdlf_trainer_create(&o.seen.trainer, model, &data, NULL, &options));
    fail(1, TRIES);
    CHECK_FAILS(sdlf_trainer_run(o.seen.trainer), SDLF_ERROR_IO, o.path);
    CHECK_EQUAL(o.seen.steps, 2);
    CHECK_OK(sdlf_trainer_run(o.seen.trainer));
    CHECK_EQUAL(o.unsaved, 0);
    CHECK_EQUAL(epoch_in(o.path), 4);
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    sdlf_trainer_free(o.seen.trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(once_is_not_told);
    RUN(training_goes_on_with_the_earlier_file);
    RUN(the_last_one_counts);
    RUN(a_stop_that_cannot_save_is_over);
    return test_summary();
}
