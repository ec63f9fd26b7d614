/* SPDX-License-Identifier: MIT */
/* sdlf train --log: one JSON object per line, with every option of the training, whatever its origin. */
#include "testing.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "apps/train/log.h"

#define SMALL "--net", small_network(), "--data", "digits:600,3", "--calculator", "reference"

/* Several options with values that are not the defaults. */
#define OPTIONS                                                                                                        \
    "--batch", "48", "--seed", "5", "--optimizer", "adamw", "--weight-decay", "0.01", "--schedule", "step", "--every", \
        "2", "--learning-rate", "0.01", "--label-smoothing", "0.1", "--clip-norm", "1", "--augment-shift", "2"

/* The first line of a log; NULL if there is none. */
static json_t *start_of(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return NULL;
    json_t *start = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(file);
    CHECK_TEXT(json_string_value(json_object_get(start, "event")), "start");
    return start;
}

/* The initial learning rate of a run, from its log. */
static double rate_with(const char *batch, const char *optimizer)
{
    const char *path = test_path("rate.jsonl");
    SDLF(0, "train", "--net", small_network(), "--data", "digits:100", "--no-test", "--epochs", "1", "--no-save",
         "--batch", batch, "--optimizer", optimizer, "--log", path);
    json_t *start = start_of(path);
    double rate = json_number_value(json_object_get(start, "learning_rate"));
    json_decref(start);
    return rate;
}

static void small_batches_take_smaller_rates(void)
{
    CHECK_CLOSE(rate_with("64", "sgd"), 0.05, 1e-8);
    CHECK_CLOSE(rate_with("100", "sgd"), 0.05, 1e-8);
    CHECK_CLOSE(rate_with("16", "sgd"), 0.0125, 1e-8);
    CHECK_CLOSE(rate_with("16", "adam"), 0.001, 1e-9);
}

/* The loss scale as reported by an epoch and its log line; a checkpoint keeps the scale and its option. */
static void a_loss_scale_is_told(void)
{
    char weights[1024];
    snprintf(weights, sizeof weights, "%s", test_path("scaled.safetensors"));
    const char *path = test_path("scaled.jsonl");
    const program *p =
        SDLF(0, "train", SMALL, "--epochs", "1", "--out", weights, "--log", path, "--loss-scale", "dynamic");
    CHECK_SAYS(p, "  scale 65536  weights ");
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return;
    CHECK(getdelim(&text, &size, 0, file) > 0);
    fclose(file);
    CHECK(text != NULL && strstr(text, "\"loss_scale\":\"dynamic\"") != NULL);
    CHECK(text != NULL && strstr(text, "\"loss_scale\":65536.0,\"skipped_steps\":0") != NULL);
    free(text);
    CHECK_SAYS(SDLF(0, "train", "--resume", weights, "--epochs", "2", "--no-save"), "  scale 65536  weights ");
    CHECK_SAYS(SDLF(2, "train", "--resume", weights, "--epochs", "2", "--no-save", "--loss-scale", "64"),
               "loss_scale is not what the checkpoint was trained with");
    CHECK_SAYS(SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--loss-scale", "48"), "  scale 48  weights ");
    p = SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--loss-scale", "1");
    CHECK(strstr(p->out, "scale") == NULL);
    CHECK_SAYS(SDLF(2, "train", SMALL, "--loss-scale", "often"),
               "expected a number above 0 or 'dynamic', found 'often'");
    CHECK_SAYS(SDLF(2, "train", SMALL, "--loss-scale", "0"), "expected a number above 0 or 'dynamic', found '0'");
}

/* Every line of the log is an object; the events come in order. */
static void logs_json_lines(void)
{
    const char *path = test_path("log.jsonl");
    SDLF(0, "train", SMALL, "--epochs", "2", "--no-save", "--log", path, "--log-steps", "4");
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return;
    char line[65536];
    int starts = 0, steps = 0, epochs = 0, ends = 0, count = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL);
        if (!CHECK(json_is_object(object))) break;
        const char *event = json_string_value(json_object_get(object, "event"));
        starts += strcmp(event, "start") == 0 && count == 0;
        steps += strcmp(event, "step") == 0;
        if (strcmp(event, "epoch") == 0) {
            CHECK_EQUAL(json_integer_value(json_object_get(object, "epoch")), ++epochs);
            CHECK_EQUAL(json_integer_value(json_object_get(object, "samples")), 600);
            CHECK_EQUAL((int64_t)json_string_length(json_object_get(object, "weights")), 8);
            CHECK(json_is_number(json_object_get(object, "test_accuracy")));
        }
        if (strcmp(event, "end") == 0) {
            ends++;
            CHECK_TEXT(json_string_value(json_object_get(object, "status")), "ok");
            json_t *test = json_object_get(object, "test");
            CHECK_EQUAL(json_integer_value(json_object_get(test, "samples")), 100);
            CHECK_EQUAL((int64_t)json_array_size(json_object_get(test, "classes")), 10);
        }
        json_decref(object);
        count++;
    }
    fclose(file);
    CHECK_EQUAL(starts, 1);
    CHECK_EQUAL(steps, 4); /* 10 steps per epoch: 4th and 8th of each */
    CHECK_EQUAL(epochs, 2);
    CHECK_EQUAL(ends, 1);
}

/* Without --resume the log of an earlier run is renamed, each to a unique name; empty files and non-files stay. */
static void older_logs_are_kept(void)
{
    char path[512], older[520];
    snprintf(path, sizeof path, "%s", test_path("older.jsonl"));
    test_write_file(path, "", 0);
    for (int run = 0; run < 3; run++) {
        const program *p = SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", path, "--seed",
                                run == 0   ? "7"
                                : run == 1 ? "8"
                                           : "9");
        snprintf(older, sizeof older, "%s.%d", path, run);
        if (run == 0)
            CHECK_TEXT(p->err, "");
        else
            CHECK_SAYS(p, strrchr(older, '/') + 1);
    }
    for (int run = 0; run < 3; run++) {
        snprintf(older, sizeof older, run < 2 ? "%s.%d" : "%s", path, run + 1);
        json_t *start = start_of(older);
        CHECK_EQUAL(json_integer_value(json_object_get(start, "seed")), run + 7);
        json_decref(start);
    }
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", "/dev/null");
}

/* Each option that --help lists, so that a new one cannot be left out. */
static void the_log_names_every_option(void)
{
    const char *path = test_path("options.jsonl");
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", path);
    json_t *start = start_of(path);
    const program *p = SDLF(0, "train", "--help");
    int count = 0;
    for (const char *at = p->out; (at = strstr(at, "--")) != NULL;) {
        bool begins_line = strncmp(at - 3, "\n  ", 3) == 0 || (at[-2] == ',' && strncmp(at - 7, "\n  -", 4) == 0);
        at += 2;
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-"), at);
        for (char *c = key; *c; c++) *c = *c == '-' ? '_' : *c;
        if (!begins_line || strcmp(key, "config") == 0 || strcmp(key, "help") == 0)
            continue; /* options of every command */
        count++;
        if (!CHECK(json_object_get(start, key) != NULL)) printf("  %s\n", key);
    }
    CHECK(count > 45);
    json_decref(start);
}

static void check_number(const json_t *start, const char *key, double expected)
{
    const json_t *value = json_object_get(start, key);
    if (!CHECK(json_is_number(value)) || !CHECK_CLOSE(json_number_value(value), expected, 1e-6 * expected))
        printf("  %s\n", key);
}

/* Given options, defaults, and options from a checkpoint. */
static void the_log_says_what_was_trained_with(void)
{
    const char *weights = test_path("logged.safetensors"), *first = test_path("first.jsonl"),
               *second = test_path("second.jsonl");
    SDLF(0, "train", SMALL, OPTIONS, "--decay-all", "--epochs", "1", "--out", weights, "--log", first);
    SDLF(0, "train", "--resume", weights, "--epochs", "2", "--calculator", "reference", "--log", second);
    const char *const paths[] = {first, second};
    for (int i = 0; i < 2; i++) {
        json_t *start = start_of(paths[i]);
        check_number(start, "batch", 48);
        check_number(start, "weight_decay", 0.01);
        check_number(start, "beta2", 0.999);
        check_number(start, "every", 2);
        check_number(start, "gamma", 0.1);
        check_number(start, "label_smoothing", 0.1);
        check_number(start, "clip_norm", 1);
        check_number(start, "augment_shift", 2);
        check_number(start, "learning_rate", 0.01);
        CHECK_TEXT(json_string_value(json_object_get(start, "optimizer")), "adamw");
        CHECK_TEXT(json_string_value(json_object_get(start, "schedule")), "step");
        CHECK_TEXT(json_string_value(json_object_get(start, "forward")), "reference");
        CHECK(json_is_true(json_object_get(start, "decay_all")));
        CHECK(json_is_null(json_object_get(start, "momentum")) &&
              json_is_null(json_object_get(start, "start_divisor")));
        json_decref(start);
    }
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", first);
    json_t *start = start_of(first);
    check_number(start, "momentum", 0.9);
    check_number(start, "warmup", 0.3);
    check_number(start, "start_divisor", 25);
    CHECK(json_is_null(json_object_get(start, "clip_norm")) && json_is_null(json_object_get(start, "beta1")));
    json_decref(start);
}

/* fast_cnn's own options apply unless they, or another optimizer, are given; the log lists them. */
static void a_network_brings_its_options(void)
{
    const char *path = test_path("own.jsonl"), *weights = test_path("own.safetensors");
#define FAST "train", "--net", "fast_cnn", "--data", "digits:200", "--no-test"
    const program *p = SDLF(0, FAST, "--epochs", "1", "--seed", "3", "--out", weights, "--log", path);
    json_t *start = start_of(path);
    sdlf_trainer_options own = {.batch = 0};
    CHECK(sdlf_network_builtin_training(&own, "fast_cnn"));
    check_number(start, "batch", (double)own.batch);
    check_number(start, "learning_rate", (double)own.schedule.peak);
    check_number(start, "label_smoothing", (double)own.label_smoothing);
    check_number(start, "weight_decay", own.optimizer.options.sgd.weight_decay);
    check_number(start, "augment_shift", (double)own.augment.shift);
    CHECK(json_is_string(json_object_get(start, "own_options")));
    CHECK_SAYS(p, "with   fast_cnn's own --batch ");
    CHECK_SAYS(p, json_string_value(json_object_get(start, "own_options")));
    json_decref(start);

    SDLF(0, FAST, "--epochs", "1", "--no-save", "--log", path, "--batch", "64"); /* one of them: only it differs */
    start = start_of(path);
    check_number(start, "batch", 64);
    check_number(start, "learning_rate", (double)own.schedule.peak);
    check_number(start, "weight_decay", own.optimizer.options.sgd.weight_decay);
    json_decref(start);

    CHECK_SAYS(SDLF(0, FAST, "--class-weights", "balanced", "--dry-run"), "--class-weights balanced"); /* a text */
    p = SDLF(0, "train", "--net", "cifar_fast", "--data", "digits:200", "--lr-scale", "head=0.5", "--dry-run");
    CHECK_SAYS(p, "--lr-scale head=0.5");
    CHECK_SAYS(p, "--decay 'head=0.19"); /* the network's own */

    SDLF(0, FAST, "--epochs", "1", "--no-save", "--log", path, "--optimizer", "sgd"); /* all are defaults */
    start = start_of(path);
    check_number(start, "learning_rate", 0.05);
    CHECK(json_is_null(json_object_get(start, "own_options")));
    CHECK_CLOSE(json_number_value(json_object_get(start, "weight_decay")), 0, 0);
    json_decref(start);

    SDLF(0, "train", "--resume", weights, "--epochs", "2", "--no-test", "--log", path); /* from the checkpoint */
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", path);
    start = start_of(path);
    CHECK(json_is_null(json_object_get(start, "own_options")));
    json_decref(start);
}

/* A killed process has left an incomplete line: the resumed run begins a new one. Text from other programs is kept. */
static void what_a_killed_run_left_can_be_read(void)
{
    static const char unfinished[] = "{\"event\":\"start\"}\n{\"event\":\"ep", foreign[] = "a note\nwithout an end";
    static const char whole[] = "{\"event\":\"start\"}\n{\"event\":\"epoch\",\"epoch\":1}";
    const char *weights = test_path("goes_on.safetensors"), *path = test_path("goes_on.jsonl");
    char line[64] = "";
    SDLF(0, "train", SMALL, "--epochs", "1", "--out", weights);
    test_write_file(path, unfinished, sizeof unfinished - 1);
    SDLF(0, "train", "--resume", weights, "--epochs", "2", "--calculator", "reference", "--log", path);
    CHECK_SAYS(SDLF(0, "compare", path, "--json"), "\"epochs\": 1");
    test_write_file(path, whole, sizeof whole - 1);
    SDLF(0, "train", "--resume", weights, "--epochs", "3", "--calculator", "reference", "--log", path);
    CHECK_SAYS(SDLF(0, "compare", path, "--json"), "\"epochs\": 2");
    test_write_file(path, foreign, sizeof foreign - 1);
    SDLF(0, "train", "--resume", weights, "--epochs", "4", "--calculator", "reference", "--log", path);
    FILE *file = fopen(path, "r");
    for (int i = 0; i < 2; i++) CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    CHECK(strncmp(line, "without an end", 14) == 0);
    if (file != NULL) fclose(file);
}

/* Lines that a full disk rejects are missing; those before and after them are complete. */
static void a_full_disk_tears_no_line(void)
{
    const char *path = test_path("full.jsonl");
    struct rlimit before, little;
    training_log log;
    sdlf_progress now = {.event = SDLF_PROGRESS_STEP, .epoch = 1, .epochs = 1, .steps = 20};
    CHECK_OK(training_log_open(&log, path, false, 1));
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    little = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
    for (int half = 0; half < 2; half++) {
        CHECK(setrlimit(RLIMIT_FSIZE, half == 0 ? &little : &before) == 0);
        for (int i = 0; i < 10; i++, now.step++) training_log_progress(&log, &now);
    }
    signal(SIGXFSZ, handler);
    training_log_end(&log, SDLF_OK, NULL);
    training_log_close(&log);
    FILE *file = fopen(path, "r");
    char line[1024] = "";
    int count = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *record = json_loads(line, 0, NULL);
        CHECK(json_is_object(record) && strchr(line, '\n') != NULL);
        json_decref(record);
        count++;
    }
    if (file != NULL) fclose(file);
    CHECK(count > 11 && count < 21);
    CHECK(strstr(line, "\"end\"") != NULL);
}

int main(void)
{
    RUN(small_batches_take_smaller_rates);
    RUN(a_loss_scale_is_told);
    RUN(logs_json_lines);
    RUN(older_logs_are_kept);
    RUN(the_log_names_every_option);
    RUN(the_log_says_what_was_trained_with);
    RUN(a_network_brings_its_options);
    RUN(what_a_killed_run_left_can_be_read);
    RUN(a_full_disk_tears_no_line);
    return test_summary();
}
