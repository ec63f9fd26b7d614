/* SPDX-License-Identifier: MIT */
/* sdlf compare: shows how training runs differ, by their logs: in options, in results, epoch by epoch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/table.h"
#include "apps/runs/run_log.h"
#include "apps/system/memory.h"

enum { RUNS_MOST = 64 };

typedef struct settings {
    bool epochs, json;
} settings;

static const argument compare_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"epochs", ARGUMENT_FLAG, offsetof(settings, epochs), .help = "list every epoch, not only the last"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

/* A table with a column for each run. */
static table *table_of_runs(const char *first, const run_log *runs, int count, bool numbers)
{
    memory_text text;
    if (!memory_text_open(&text)) memory_exhausted();
    fputs(first, text.file);
    for (int i = 0; i < count; i++) {
        fputs(numbers ? "|>" : "|", text.file);
        for (const char *c = runs[i].name; *c; c++) fputc(*c == '|' || (unsigned char)*c < ' ' ? '_' : *c, text.file);
    }
    if (!memory_text_close(&text)) memory_exhausted();
    table *t = table_create(text.text);
    free(text.text);
    return t;
}

static void cell_clean(table *t, const char *text)
{
    char *copy = memory_copy_text(text);
    terminal_clean(copy);
    table_cell(t, "%s", copy);
    free(copy);
}

static void print_options(const terminal *out, const run_log *runs, int count)
{
    int differing;
    run_difference *list = run_differences(runs, count, &differing);
    if (differing == 0) puts("No option differs.");
    table *t = table_of_runs("option", runs, count, false);
    for (int i = 0; i < differing; i++) {
        cell_clean(t, list[i].option);
        for (int k = 0; k < count; k++) cell_clean(t, list[i].value[k]);
    }
    if (differing > 0) table_print(t, out, 2);
    table_free(t);
    run_differences_free(list, differing, count);
}

static void print_results(const terminal *out, const run_log *runs, int count)
{
    table *t = table_create("run|>epochs|>loss|>accuracy|>test loss|>test|>best|>in epoch|>time|>samples/s|weights");
    for (int i = 0; i < count; i++) {
        run_figures f = run_figures_of(&runs[i]);
        cell_clean(t, runs[i].name);
        table_cell(t, "%d", f.epochs);
        table_cell(t, "%s", isfinite(f.loss) ? number_loss(f.loss, 4).text : "");
        table_cell(t, "%s", number_percent(f.accuracy, 2).text);
        table_cell(t, "%s", isfinite(f.test_loss) ? number_loss(f.test_loss, 4).text : "");
        table_cell(t, "%s", number_percent(f.test_accuracy, 2).text);
        table_cell(t, "%s", number_percent(f.best_accuracy, 2).text);
        table_cell(t, "%s", f.best_epoch > 0 ? number_count(f.best_epoch).text : "");
        table_cell(t, "%s", number_duration(f.seconds).text);
        table_cell(t, "%s", number_fixed(f.samples_per_second, 0).text);
        cell_clean(t, f.weights);
    }
    table_print(t, out, 2);
    table_free(t);
}

/* Prints the test accuracy if there was a test, else the training accuracy. */
static void print_epochs(const terminal *out, const run_log *runs, int count)
{
    table *t = table_of_runs(">epoch", runs, count, true);
    size_t most = 0;
    for (int i = 0; i < count; i++)
        if (json_array_size(runs[i].epochs) > most) most = json_array_size(runs[i].epochs);
    for (size_t e = 0; e < most; e++) {
        table_cell(t, "%zu", e + 1);
        for (int i = 0; i < count; i++) {
            const json_t *line = json_array_get(runs[i].epochs, e);
            double test = run_number(line, "test_accuracy"), train = run_number(line, "accuracy");
            table_cell(t, "%s", line ? number_percent(isfinite(test) ? test : train, 2).text : "");
        }
    }
    table_print(t, out, 2);
    table_free(t);
}

static json_t *run_json(const run_log *run)
{
    run_figures f = run_figures_of(run);
    return json_pack(
        "{so si so so so so so si so so so so}", "run", json_text(run->name), "epochs", f.epochs, "loss",
        json_number(f.loss), "accuracy", json_number(f.accuracy), "test_loss", json_number(f.test_loss),
        "test_accuracy", json_number(f.test_accuracy), "best_accuracy", json_number(f.best_accuracy), "best_epoch",
        f.best_epoch, "seconds", json_number(f.seconds), "samples_per_second", json_number(f.samples_per_second),
        "weights", json_text(f.weights), "command",
        json_incref(json_object_get(run->start, "command") ? json_object_get(run->start, "command") : json_null()));
}

static sdlf_status print_json(const run_log *runs, int count)
{
    json_t *options = json_object(), *list = json_array();
    int differing;
    run_difference *differences = run_differences(runs, count, &differing);
    for (int i = 0; i < differing; i++) {
        json_t *values = json_array();
        for (int k = 0; k < count; k++) {
            json_t *value = json_object_get(runs[k].start, differences[i].key);
            json_array_append_new(values, value ? json_incref(value) : json_null());
        }
        json_object_set_new(options, differences[i].key, values);
    }
    run_differences_free(differences, differing, count);
    for (int i = 0; i < count; i++) json_array_append_new(list, run_json(&runs[i]));
    return json_print_result(json_pack("{so so}", "runs", list, "options", options));
}

static sdlf_status compare(const settings *set, const arguments *given, run_log *runs)
{
    int count = given->operand_count;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < count && status == SDLF_OK; i++) status = run_log_read(&runs[i], given->operand[i]);
    if (status != SDLF_OK || set->json) return status == SDLF_OK ? print_json(runs, count) : status;
    terminal out = terminal_of(stdout);
    print_options(&out, runs, count);
    putchar('\n');
    print_results(&out, runs, count);
    if (set->epochs) {
        putchar('\n');
        print_epochs(&out, runs, count);
    }
    return SDLF_OK;
}

static int run(int count, char **words)
{
    settings set = {.json = false};
    arguments given;
    static const argument_part parts[] = {{compare_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "compare",
        .synopsis = "[options] RUN.jsonl...",
        .text = "Compare training runs by the logs that 'sdlf train --log' wrote: the options in which they differ, "
                "and the results of each. For one log: all of its options.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = RUNS_MOST,
        .operand_name = "the log of a run",
        .examples = "  sdlf compare first.jsonl second.jsonl\n"
                    "  sdlf compare --epochs sweep/*.jsonl\n",
    };
    switch (arguments_read(&given, &usage, count, words, &set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    run_log *runs = memory_allocate((size_t)given.operand_count * sizeof *runs);
    int code = command_conclude("compare", compare(&set, &given, runs));
    for (int i = 0; i < given.operand_count; i++) run_log_release(&runs[i]);
    free(runs);
    return code;
}

const command compare_command = {.name = "compare", .summary = "compare training runs by their logs", .run = run};
