/* SPDX-License-Identifier: MIT */
/* sdlf compare, and reading logs: the differences, the results, and files that are not logs. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/program.h"
#include "apps/runs/run_log.h"

#define SMALL "train", "--net", small_network(), "--data", "digits:600,3", "--no-save", "--quiet"

static void says_what_differs(void)
{
    char a[512], b[512];
    snprintf(a, sizeof a, "%s", test_path("a.jsonl"));
    snprintf(b, sizeof b, "%s", test_path("b.jsonl"));
    SDLF(0, SMALL, "--epochs", "2", "--log", a);
    SDLF(0, SMALL, "--epochs", "1", "--batch", "32", "--log", b, "--no-test");
    const program *p = SDLF(0, "compare", a, b, "--epochs");
    CHECK_SAYS(p, "  option ");
    CHECK_SAYS(p, "  batch          64 ");       /* the columns' width depends on the other differences */
    CHECK(strstr(p->out, "optimizer ") == NULL); /* is the same */
    CHECK_SAYS(p, "  epoch ");
    p = SDLF(0, "compare", a, a);
    CHECK_SAYS(p, "No option differs.");
    p = SDLF(0, "compare", a);
    CHECK_SAYS(p, "  optimizer ");
    p = SDLF(0, "compare", a, b, "--json");
    json_t *all = json_loads(p->out, 0, NULL);
    json_t *batch = json_object_get(json_object_get(all, "options"), "batch"), *runs = json_object_get(all, "runs");
    CHECK_EQUAL(json_integer_value(json_array_get(batch, 0)), 64);
    CHECK_EQUAL(json_integer_value(json_array_get(batch, 1)), 32);
    CHECK_EQUAL(json_integer_value(json_object_get(json_array_get(runs, 0), "epochs")), 2);
    CHECK(json_is_null(json_object_get(json_array_get(runs, 1), "test_accuracy")));
    json_decref(all);
}

/* The command in a log trains the same weights. */
static void a_log_says_the_command_that_repeats_it(void)
{
    const char *path = test_path("once.jsonl");
    SDLF(0, SMALL, "--epochs", "1", "--optimizer", "adamw", "--weight-decay", "0.02", "--seed", "9", "--log", path);
    run_log run;
    CHECK_OK(run_log_read(&run, path));
    const char *words = json_string_value(json_object_get(run.start, "command"));
    if (CHECK(words != NULL)) {
        CHECK(strstr(words, " --optimizer adamw") && strstr(words, " --weight-decay 0.02") &&
              strstr(words, " --seed 9"));
        CHECK(strstr(words, " --batch") == NULL); /* is the default */
        char command[4096], line[256];
        snprintf(command, sizeof command, "%s %s", program_path, words + strlen("sdlf"));
        FILE *pipe = popen(command, "r");
        while (pipe && fgets(line, sizeof line, pipe)) continue;
        CHECK_EQUAL(pipe ? pclose(pipe) : -1, 0);
        run_log again;
        CHECK_OK(run_log_read(&again, path));
        CHECK_TEXT(run_figures_of(&again).weights, run_figures_of(&run).weights);
        run_log_release(&again);
    }
    run_log_release(&run);
}

static void check_fails(const char *text, sdlf_status status, const char *message)
{
    const char *path = test_path("wrong.jsonl");
    test_write_file(path, text, strlen(text));
    run_log run;
    CHECK_FAILS(run_log_read(&run, path), status, message);
    run_log_release(&run);
}

static void check_refused(const char *text, const char *message)
{
    check_fails(text, SDLF_ERROR_FORMAT, message);
}

static void refuses_what_is_no_log(void)
{
    check_refused("", "it is empty");
    check_refused("{}\n", "wrong.jsonl:1: expected an object with \"event\"");
    check_refused("{\"event\":\"epoch\"}\n", "expected the event \"start\" first, found \"epoch\"");
    check_refused("{\"event\":\"start\"}\nno\n", "wrong.jsonl:2: expected a JSON object");
    check_refused("[1]\n", "expected an object");
    CHECK_SAYS(SDLF(1, "compare", test_path("absent.jsonl")), "cannot open");
    CHECK_SAYS(SDLF(2, "compare"), "the log of a run is missing");
}

/* An endless file, and a line that would become gigabytes of JSON. */
static void reads_so_much_and_no_more(void)
{
    enum { LONG = (1 << 24) + 100 };
    char *text = malloc(LONG + 1);
    if (!CHECK(text != NULL)) return;
    memset(text, '1', LONG);
    text[LONG] = '\0';
    check_refused(text, "wrong.jsonl:1: expected at most 16777216 bytes in a line, found 16777316");
    for (int i = 0; i < LONG; i += 4) memcpy(text + i, "[{}\n", 4);
    check_fails(text, SDLF_ERROR_MEMORY, "wrong.jsonl: its JSON becomes 1.7 GB: more than the ");
    free(text);
    CHECK(setenv("SDLF_READ_MEMORY", "2000", 1) == 0); /* as for every reader */
    check_fails(
        "{\"event\":\"start\",\"a\":[[],[],[],[],[],[],[],[],[],[]]}\n", SDLF_ERROR_MEMORY,
        "wrong.jsonl: its JSON becomes 3.0 kB: more than the 2.0 kB of memory that reading a file of 54 bytes may "
        "take; SDLF_READ_MEMORY sets another limit");
    CHECK(setenv("SDLF_READ_MEMORY", "20", 1) == 0);
    check_fails("{\"event\":\"start\"}          \n", SDLF_ERROR_MEMORY, "wrong.jsonl: its JSON becomes 28 bytes: more");
    CHECK_SAYS(SDLF(1, "compare", test_path("wrong.jsonl")), "SDLF_READ_MEMORY sets another limit");
    CHECK(setenv("SDLF_READ_MEMORY", "some", 1) == 0);
    check_fails("{\"event\":\"start\"}\n", SDLF_ERROR_ARGUMENT, "SDLF_READ_MEMORY is 'some'");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    CHECK_SAYS(SDLF(1, "compare", "/dev/zero"), "/dev/zero: expected at most 268435456 bytes, found more");
}

/* Unknown options that only some runs have are shown once, in order of appearance. */
static void every_option_is_told_once(void)
{
    static const char *const texts[] = {"{\"event\":\"start\",\"a\":1,\"b\":2}\n",
                                        "{\"event\":\"start\",\"c\":3,\"b\":4}\n",
                                        "{\"event\":\"start\",\"b\":2,\"a\":1,\"c\":3}\n"};
    static const char *const expected[] = {"a", "b", "c"};
    run_log runs[3];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        const char *path = test_path("options.jsonl");
        test_write_file(path, texts[i], strlen(texts[i]));
        CHECK_OK(run_log_read(&runs[i], path));
    }
    run_difference *differences = run_differences(runs, 3, &count);
    CHECK_EQUAL(count, 3);
    for (int i = 0; i < count; i++) CHECK_TEXT(differences[i].option, expected[i]);
    run_differences_free(differences, count, 3);
    for (int i = 0; i < 3; i++) run_log_release(&runs[i]);
}

/* Values of types that train does not write; an incomplete last line; a resumed run. */
static void takes_logs_as_they_are(void)
{
    static const char text[] = "{\"event\":\"start\",\"batch\":[1],\"net\":null}\n"
                               "{\"event\":\"epoch\",\"epoch\":\"one\",\"loss\":[]}\n"
                               "{\"event\":\"start\",\"batch\":8}\n"
                               "{\"event\":\"epoch\",\"epoch\":1,\"loss\":2.5,\"test_accuracy\":0.5}\n"
                               "{\"event\":\"epoch\",\"epoch\":1,\"loss\":1.5,\"test_accuracy\":0.25}\n"
                               "{\"event\":\"epo";
    const char *path = test_path("other.jsonl");
    test_write_file(path, text, sizeof text - 1);
    run_log run;
    CHECK_OK(run_log_read(&run, path));
    CHECK_TEXT(run.name, "other");
    run_figures f = run_figures_of(&run);
    CHECK_EQUAL(f.epochs, 2);
    CHECK_CLOSE(f.loss, 1.5, 0);
    CHECK_CLOSE(f.best_accuracy, 0.25, 0);
    CHECK(isnan(f.samples_per_second));
    CHECK(run.end == NULL);
    run_log_release(&run);
}

int main(void)
{
    RUN(says_what_differs);
    RUN(a_log_says_the_command_that_repeats_it);
    RUN(refuses_what_is_no_log);
    RUN(reads_so_much_and_no_more);
    RUN(every_option_is_told_once);
    RUN(takes_logs_as_they_are);
    return test_summary();
}
