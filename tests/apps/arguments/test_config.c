/* SPDX-License-Identifier: MIT */
/* Options from files: what a file expands to, and errors in files. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "apps/arguments/config.h"
#include "apps/program.h"

static const char *config(const char *text)
{
    const char *path = test_path("run.conf");
    test_write_file(path, text, strlen(text));
    return path;
}

static void check_words(const config_words *found, const char *const *expected)
{
    int count = 0, at = 0;
    for (; expected[count] && at < found->count; count++, at++) {
        at += strncmp(found->word[at], CONFIG_ORIGIN, strlen(CONFIG_ORIGIN)) == 0;
        CHECK_TEXT(at < found->count ? found->word[at] : "", expected[count]);
    }
    CHECK(expected[count] == NULL && at == found->count);
}

static void a_file_stands_for_its_options(void)
{
    char at[600];
    const char *path = config("# a run\n\nepochs = 5\n  augment_flip  \ndata=folder:my pictures = nice \r\nnet =\n");
    snprintf(at, sizeof at, "@%s", path);
    config_words found;
    char *words[] = {"sdlf", "train", at, "--epochs", "7", "--", at};
    CHECK_OK(config_expand(&found, 7, words, 2));
    check_words(&found,
                (const char *const[]){"sdlf", "train", "--epochs=5", "--augment-flip",
                                      "--data=folder:my pictures = nice", "--net=", "--epochs", "7", "--", at, NULL});
    config_release(&found);
    CHECK_OK(config_expand(&found, 7, words, 2));
    found.word[0] = found.word[1]; /* as reading them moves operands to the front */
    config_release(&found);
    char *named[] = {"--config", at + 1, "@"};
    CHECK_OK(config_expand(&found, 3, named, 0));
    CHECK_EQUAL(found.count, 9);
    CHECK(strstr(found.word[2], "run.conf:4") != NULL && strncmp(found.word[2], CONFIG_ORIGIN, 4) == 0);
    CHECK_TEXT(found.word[8], "@");
    config_release(&found);
}

static void a_byte_order_mark_is_passed_over(void)
{
    char at[600];
    snprintf(at, sizeof at, "@%s",
             config("\xEF\xBB\xBF"
                    "epochs = 5\n"));
    config_words found;
    char *words[] = {at};
    CHECK_OK(config_expand(&found, 1, words, 0));
    check_words(&found, (const char *const[]){"--epochs=5", NULL});
    config_release(&found);
}

static void refuse(const char *text, const char *message)
{
    char at[600];
    snprintf(at, sizeof at, "--config=%s", config(text));
    config_words found;
    char *words[] = {at};
    CHECK_FAILS(config_expand(&found, 1, words, 0), SDLF_ERROR_FORMAT, message);
    config_release(&found);
}

static void says_where_a_file_is_wrong(void)
{
    refuse("epochs 5\n", "run.conf:1: expected 'name = value'");
    refuse("\n--epochs = 5\n", "run.conf:2: expected 'name = value'");
    refuse("_epochs = 5\n", "run.conf:1: expected 'name = value'");
    refuse("= 5\n", "run.conf:1: ");
    refuse("[train]\n", "found '[train]'");
    CHECK_SAYS(SDLF(1, "train", "@/dev/zero"), "/dev/zero: expected at most 1048576 bytes");
    CHECK_SAYS(SDLF(1, "train", "@/nowhere.conf"), "cannot open '/nowhere.conf'");
    CHECK_SAYS(SDLF(2, "train", "--config"), "--config needs a value");
}

/* The command line comes later and therefore overrides the file. */
static void trains_by_a_file(void)
{
    const char *path = config("epochs = 3\nbatch = 32\nno-save\nquiet\ndata = digits:600\nbathc = 4\n");
    CHECK_SAYS(SDLF(2, "train", "--config", path), "unknown option '--bathc' (did you mean '--batch'?)");
    path = config("epochs = 3\nbatch = 32\nno-save\nquiet\ndata = digits:600\nnet = lenet5\n");
    CHECK_SAYS(SDLF(0, "train", "--config", path, "--epochs", "9", "--dry-run"),
               "sdlf train --data digits:600 --net lenet5 --epochs 9 --batch 32");
    CHECK_SAYS(SDLF(0, "train", "--help"), "--config FILE");
}

/* A dry run leaves no files. */
static void a_dry_run_writes_nothing(void)
{
    char log[512], folder[512];
    snprintf(log, sizeof log, "%s", test_path("dry.jsonl"));
    snprintf(folder, sizeof folder, "%s", test_path("dry"));
    const char *out = test_path("dry.safetensors");
    const program *p =
        SDLF(0, "train", "--data", "digits:600", "--out", out, "--log", log, "--tensorboard", folder, "--dry-run");
    CHECK_SAYS(p, "net    simple_cnn");
    CHECK_SAYS(p, " --log ");
    CHECK(strstr(p->out, "--dry-run") == NULL);
    CHECK_SAYS(p, "\nepochs = 3\n");
    CHECK_SAYS(p, "\nschedule = one_cycle\n");
    CHECK(fopen(log, "r") == NULL && fopen(folder, "r") == NULL && fopen(out, "r") == NULL);
    CHECK_SAYS(SDLF(1, "train", "--data", "mnist:/nowhere", "--dry-run"), "/nowhere");
}

/* An error in an option from a file names the file and the line; one from the command line names neither. */
static void says_where_an_option_is(void)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {{"# run\nepochs = many\n", "run.conf:2: --epochs many: expected a whole number"},
                 {"epochs = 2\n\nepoch = 3\n", "run.conf:3: unknown option '--epoch' (did you mean '--epochs'?)"},
                 {"quiet = yes\n", "run.conf:1: --quiet takes no value"},
                 {"epochs\nquiet\n", "run.conf:1: --epochs needs a value: "},
                 {"keep = most\n", "run.conf:1: --keep most: expected "},
                 {"data = -\n", "run.conf:1: --data '-' would be standard input"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *path = config(wrong[i].text);
        CHECK_SAYS(SDLF(2, "train", "--config", path), wrong[i].message);
        CHECK_SAYS(SDLF(2, "train", "--quiet", "--config", path, "--no-save"), wrong[i].message);
    }
    const program *p = SDLF(2, "train", "--config", config("quiet\n"), "--epochs", "many");
    CHECK_SAYS(p, "sdlf train: error: --epochs many: expected");
    p = SDLF(2, "train", "--epochs", "--config", config("quiet\n"));
    CHECK_SAYS(p, "sdlf train: error: --epochs needs a value: ");
}

int main(void)
{
    RUN(a_file_stands_for_its_options);
    RUN(a_byte_order_mark_is_passed_over);
    RUN(says_where_a_file_is_wrong);
    RUN(says_where_an_option_is);
    RUN(trains_by_a_file);
    RUN(a_dry_run_writes_nothing);
    return test_summary();
}
