/* SPDX-License-Identifier: MIT */
/* sdlf sweep: all combinations, random ones, resuming, and wrong arguments. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/program.h"
#include "apps/sweep/axis.h"

static void lists_all_combinations(void)
{
    const program *p = SDLF(0, "sweep", "--try", "batch=32,64", "--try", "optimizer=sgd,adam", "--seeds", "2", "--list",
                            "--", "--net", "lenet5");
    int lines = 0;
    for (const char *c = p->out; *c; c++) lines += *c == '\n';
    CHECK_EQUAL(lines, 8);
    CHECK_SAYS(p, "sdlf train --net lenet5 --log=sweep/batch=32,optimizer=sgd,seed=1.jsonl --no-save --quiet "
                  "--batch=32 --optimizer=sgd --seed=1\n");
    CHECK_SAYS(p, "--batch=64 --optimizer=adam --seed=2\n");
}

static void goes_on_where_it_was(void)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", test_path("swept"));
#define SWEEP "sweep", "--folder", folder, "--try", "batch=32,64", "--seeds", "2"
#define BASE  "--", "--net", small_network(), "--data", "digits:600,3", "--epochs", "1"
    const program *p = SDLF(0, SWEEP, BASE);
    CHECK_SAYS(p, "batch  runs");
    CHECK_SAYS(p, "4 runs made, 0 there before");
    p = SDLF(0, SWEEP, "--json", BASE);
    json_t *all = json_loads(p->out, 0, NULL), *list = json_object_get(all, "combinations");
    CHECK_EQUAL(json_integer_value(json_object_get(all, "kept")), 4);
    CHECK_EQUAL((int64_t)json_array_size(list), 2);
    double before = 2;
    for (size_t i = 0; i < json_array_size(list); i++) { /* the best first */
        const json_t *one = json_array_get(list, i);
        double mean = json_number_value(json_object_get(one, "accuracy"));
        CHECK_EQUAL(json_integer_value(json_object_get(one, "runs")), 2);
        CHECK(mean <= before && mean > 0);
        CHECK(json_is_number(json_object_get(one, "deviation")));
        before = mean;
    }
    json_decref(all);
    CHECK_SAYS(SDLF(2, SWEEP, "--", "--net", "lenet5"), "holds another sweep, of 'sdlf train --net ");
}

static void draws_from_ranges(void)
{
    axis a;
    CHECK_OK(axis_read(&a, "epochs=2..5"));
    bool seen[8] = {false};
    for (int i = 0; i < 200; i++) {
        char *text = axis_draw(&a, 0, i, 1);
        int value = atoi(text);
        CHECK(value >= 2 && value <= 5);
        if (value >= 0 && value < 8) seen[value] = true;
        free(text);
    }
    CHECK(seen[2] && seen[3] && seen[4] && seen[5]);
    axis_release(&a);
    CHECK_OK(axis_read(&a, "learning-rate=log:1e-4..1"));
    int below = 0;
    for (int i = 0; i < 400; i++) {
        char *text = axis_draw(&a, 1, i, 7), *again = axis_draw(&a, 1, i, 7);
        double value = atof(text);
        CHECK(value >= 1e-4 && value <= 1);
        CHECK_TEXT(again, text);
        below += value < 0.01; /* the middle, in its logarithm */
        free(text);
        free(again);
    }
    CHECK(below > 160 && below < 240);
    axis_release(&a);
}

static void says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "sweep"), "--try NAME=VALUES is missing");
    CHECK_SAYS(SDLF(2, "sweep", "--try", "batch"), "--try batch: expected NAME=VALUE,VALUE");
    CHECK_SAYS(SDLF(2, "sweep", "--try", "batch=1..4"), "a range needs --random N");
    CHECK_SAYS(SDLF(2, "sweep", "--try", "batch=4..1", "--random", "2"), "LOW below HIGH");
    CHECK_SAYS(SDLF(2, "sweep", "--try", "momentum=log:0..1", "--random", "2"), "above 0");
    CHECK_SAYS(SDLF(2, "sweep", "--folder", test_path("wrong"), "--try", "bathc=3"), "unknown option '--bathc'");
    CHECK_SAYS(SDLF(2, "sweep", "--try", "batch=3", "--net", "mlp"),
               "unknown option '--net'; options of 'sdlf train' go after '--'");
    /* a value that a later run would reject is reported before the first one trains, and by --list */
    const program *p = SDLF(2, "sweep", "--folder", test_path("wrong"), "--try", "optimizer=sgd,adma", BASE);
    CHECK_SAYS(p, "--optimizer adma: expected");
    CHECK_SAYS(p, "did you mean 'adam'?");
    CHECK_SAYS(p, "no run was made");
    CHECK_TEXT(p->out, "");
    CHECK(access(test_path("wrong"), F_OK) != 0);
    CHECK_SAYS(SDLF(2, "sweep", "--list", "--try", "batch=32,0"), "--batch 0: expected");
    CHECK_SAYS(SDLF(2, "sweep", "--list", "--try", "epochs=2", "--", "--bathc", "3"), "did you mean '--batch'?");
    const char *refused = test_path("refused"); /* which creates no folder */
    CHECK_SAYS(SDLF(2, "sweep", "--folder", refused, "--try", "batch=32", "--", "--net", "lenet6"),
               "no network 'lenet6'");
    SDLF(0, "sweep", "--folder", refused, "--try", "batch=32", BASE);
}

int main(void)
{
    RUN(lists_all_combinations);
    RUN(goes_on_where_it_was);
    RUN(draws_from_ranges);
    RUN(says_what_is_wrong);
    return test_summary();
}
