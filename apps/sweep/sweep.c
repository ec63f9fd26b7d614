/* SPDX-License-Identifier: MIT */
/* sdlf sweep: trains with many combinations of options, each with several seeds, and prints one table. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/formats.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/quote.h"
#include "apps/output/status_line.h"
#include "apps/output/table.h"
#include "apps/runs/run_log.h"
#include "apps/sweep/axis.h"
#include "apps/sweep/trial.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

enum { AXES_MOST = ARGUMENT_LIST_MAX, WORDS_MOST = 256, COMBINATIONS_MOST = 100000 };

typedef struct settings {
    const char *folder;
    argument_list tries;
    int64_t random, seeds, first_seed;
    bool list, json;
} settings;

static const argument sweep_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"try", ARGUMENT_LIST, offsetof(settings, tries), "NAME=VALUES", .required = true,
     .help = "an option of 'sdlf train' with values, batch=32,64, or, with --random, a range, epochs=2..5 or "
             "learning-rate=log:1e-3..1e-1; may be repeated, and all combinations are tried"},
    {"random", ARGUMENT_INT, offsetof(settings, random), "N", .minimum = 1, .maximum = COMBINATIONS_MOST,
     .help = "draw N combinations (default: all of them)"},
    {"seeds", ARGUMENT_INT, offsetof(settings, seeds), "N", .minimum = 1, .maximum = 1000, .fallback = "1",
     .help = "train each combination with N seeds"},
    {"first-seed", ARGUMENT_INT, offsetof(settings, first_seed), "N", .minimum = 1, .maximum = 1e15, .fallback = "1",
     .help = "the first seed, also for --random"},
    {"folder", ARGUMENT_TEXT, offsetof(settings, folder), "DIR", .fallback = "sweep",
     .help = "where the logs of all runs go; finished runs are not repeated"},
    {"list", ARGUMENT_FLAG, offsetof(settings, list), .help = "print the training commands without running them"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

/* A combination, with the results of its runs. */
typedef struct combination {
    char *value[AXES_MOST];
    int runs, failed;
    double sum, squares, best, seconds; /* of the runs' measure */
} combination;

typedef struct session {
    settings set;
    axis axes[AXES_MOST];
    int axis_count;
    combination *all;
    int count;
    const char *const *words; /* for train */
    int word_count;
    int made, kept; /* runs; those already there */
} session;

static sdlf_status read_axes(session *s)
{
    sdlf_status status = SDLF_OK;
    for (; s->axis_count < s->set.tries.count && status == SDLF_OK; s->axis_count++) {
        axis *a = &s->axes[s->axis_count];
        status = axis_read(a, s->set.tries.item[s->axis_count]);
        if (status == SDLF_OK && a->count == 0 && s->set.random == 0)
            status =
                sdlf_fail(SDLF_ERROR_ARGUMENT, "--try %s: a range needs --random N", s->set.tries.item[s->axis_count]);
    }
    return status;
}

/* Lists all combinations, the last option changing fastest, or the random ones. */
static sdlf_status make_combinations(session *s)
{
    int64_t count = 1;
    for (int i = 0; i < s->axis_count && s->set.random == 0; i++) {
        count *= s->axes[i].count;
        if (count > COMBINATIONS_MOST)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "more than %d combinations: --random N draws some",
                             COMBINATIONS_MOST);
    }
    if (s->set.random > 0) count = s->set.random;
    s->count = (int)count;
    s->all = memory_allocate((size_t)count * sizeof *s->all);
    for (int64_t c = 0; c < count; c++) {
        s->all[c].best = NAN;
        int64_t rest = c;
        for (int i = s->axis_count - 1; i >= 0; i--) {
            const axis *a = &s->axes[i];
            if (s->set.random > 0)
                s->all[c].value[i] = axis_draw(a, i, c, (uint64_t)s->set.first_seed);
            else
                s->all[c].value[i] = memory_copy_text(a->value[rest % a->count]);
            rest /= s->set.random > 0 ? 1 : a->count;
        }
    }
    return SDLF_OK;
}

/* "DIR/batch=32,learning-rate=0.1,seed=1.jsonl" */
static char *log_path(const session *s, const combination *c, int64_t seed)
{
    memory_text text;
    if (!memory_text_open(&text)) memory_exhausted();
    for (int i = 0; i < s->axis_count; i++) fprintf(text.file, "%s=%s,", s->axes[i].option, c->value[i]);
    fprintf(text.file, "seed=%" PRId64, seed);
    if (!memory_text_close(&text)) memory_exhausted();
    for (char *at = text.text; *at; at++) *at = *at == '/' ? '_' : *at;
    char *path = memory_print("%s/%s.jsonl", s->set.folder, text.text);
    free(text.text);
    return path;
}

static void make_trial(const session *s, trial *t, const combination *c, int64_t seed)
{
    char *path = log_path(s, c, seed), *text = memory_print("%" PRId64, seed);
    trial_begin(t, s->words, s->word_count, path);
    for (int i = 0; i < s->axis_count; i++) trial_add(t, s->axes[i].option, c->value[i]);
    trial_add(t, "seed", text);
    free(path);
    free(text);
}

/* Checks the options and values of all runs before the first one trains. */
static sdlf_status check_trials(const session *s)
{
    sdlf_status status = SDLF_OK;
    for (int c = 0; c < s->count && status == SDLF_OK; c++) {
        trial t;
        make_trial(s, &t, &s->all[c], s->set.first_seed);
        status = trial_check(&t);
        trial_release(&t);
    }
    return status;
}

/* Records the sweep's words: a folder holds the runs of one list of words, so that no others are mistaken for them. */
static sdlf_status copy_words(const session *s)
{
    memory_text text;
    if (!memory_text_open(&text)) memory_exhausted();
    fputs("sdlf train", text.file);
    for (int i = 0; i < s->word_count; i++) {
        char *word = quote_word(s->words[i]);
        fprintf(text.file, " %s", word);
        free(word);
    }
    fputc('\n', text.file);
    if (!memory_text_close(&text)) memory_exhausted();
    char *path = memory_print("%s/sweep.txt", s->set.folder), line[4096] = "";
    mkdir(s->set.folder, 0777); /* an error shows when writing */
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file) fclose(file);
    sdlf_status status = SDLF_OK;
    if (length > 0 && strncmp(line, text.text, sizeof line - 1) != 0)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "%s holds another sweep, of '%.*s'; choose another with --folder DIR",
                           s->set.folder, (int)strcspn(line, "\n"), line);
    else if (length == 0)
        status = sdlf_write_file(path, text.text, text.length);
    free(path);
    free(text.text);
    return status;
}

/* If nothing was trained, frees the folder for other words, and removes it if empty. */
static void forget_words(const session *s)
{
    char *path = memory_print("%s/sweep.txt", s->set.folder);
    unlink(path);
    rmdir(s->set.folder);
    free(path);
}

/* Adds a run's measure: the test of its last epoch, or without a test the training. */
static void count_run(combination *c, const char *path)
{
    run_log run;
    if (run_log_read(&run, path) == SDLF_OK) {
        run_figures f = run_figures_of(&run);
        double measure = isfinite(f.test_accuracy) ? f.test_accuracy : f.accuracy;
        const char *status = json_string_value(json_object_get(run.end, "status"));
        if (isfinite(measure) && status && strcmp(status, sdlf_status_name(SDLF_OK)) == 0) {
            c->runs++;
            c->sum += measure;
            c->squares += measure * measure;
            c->seconds += f.seconds;
            if (!(measure <= c->best)) c->best = measure;
        } else {
            c->failed++;
        }
    } else {
        c->failed++;
    }
    run_log_release(&run);
}

static sdlf_status run_all(session *s)
{
    sdlf_status status = copy_words(s);
    if (status != SDLF_OK) return status;
    int64_t total = s->count * s->set.seeds, at = 0;
    interrupt_waits();
    for (int c = 0; c < s->count && status == SDLF_OK; c++)
        for (int64_t k = 0; k < s->set.seeds && status == SDLF_OK && interrupt_signal() == 0; k++) {
            trial t;
            make_trial(s, &t, &s->all[c], s->set.first_seed + k);
            status_line_show("run %s of %s", number_count(++at).text, number_count(total).text);
            if (trial_is_done(&t)) {
                s->kept++;
            } else {
                status = trial_run(&t);
                s->made += status == SDLF_OK;
            }
            status_line_clear();
            if (status == SDLF_OK) count_run(&s->all[c], t.log);
            trial_release(&t);
        }
    if (status == SDLF_ERROR_ARGUMENT && s->made + s->kept == 0) forget_words(s);
    return status == SDLF_ERROR_INTERRUPTED && interrupt_signal() != 0 ? SDLF_OK : status;
}

static double mean_of(const combination *c)
{
    return c->runs > 0 ? c->sum / c->runs : NAN;
}

/* The sample deviation; NaN for one run. */
static double deviation_of(const combination *c)
{
    double mean = mean_of(c);
    return c->runs > 1 ? sqrt(fmax(0, (c->squares - c->runs * mean * mean) / (c->runs - 1))) : NAN;
}

static int by_mean(const void *a, const void *b)
{
    double x = mean_of(a), y = mean_of(b);
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x < y) - (x > y);
}

static void print_table(const session *s)
{
    terminal out = terminal_of(stdout);
    memory_text headings;
    if (!memory_text_open(&headings)) memory_exhausted();
    for (int i = 0; i < s->axis_count; i++) fprintf(headings.file, "%s|", s->axes[i].option);
    fputs(">runs|>failed|>accuracy|>deviation|>best|>time", headings.file);
    if (!memory_text_close(&headings)) memory_exhausted();
    table *t = table_create(headings.text);
    for (int c = 0; c < s->count; c++) {
        const combination *one = &s->all[c];
        for (int i = 0; i < s->axis_count; i++) table_cell(t, "%s", one->value[i]);
        table_cell(t, "%d", one->runs);
        table_cell(t, "%s", one->failed > 0 ? number_count(one->failed).text : "");
        table_cell(t, "%s", number_percent(mean_of(one), 2).text);
        table_cell(t, "%s", isnan(deviation_of(one)) ? "" : number_percent(deviation_of(one), 2).text);
        table_cell(t, "%s", number_percent(one->best, 2).text);
        table_cell(t, "%s", one->runs > 0 ? number_duration(one->seconds / one->runs).text : "");
    }
    table_print(t, &out, 2);
    table_free(t);
    free(headings.text);
    printf("\n%d run%s made, %d there before; logs in %s\n", s->made, s->made == 1 ? "" : "s", s->kept, s->set.folder);
}

static sdlf_status print_json(const session *s)
{
    json_t *list = json_array();
    for (int c = 0; c < s->count; c++) {
        const combination *one = &s->all[c];
        json_t *options = json_object();
        for (int i = 0; i < s->axis_count; i++)
            json_object_set_new(options, s->axes[i].option, json_text(one->value[i]));
        json_array_append_new(list, json_pack("{so si si so so so so}", "options", options, "runs", one->runs, "failed",
                                              one->failed, "accuracy", json_number(mean_of(one)), "deviation",
                                              json_number(deviation_of(one)), "best", json_number(one->best), "seconds",
                                              json_number(one->runs > 0 ? one->seconds / one->runs : NAN)));
    }
    return json_print_measured(json_pack("{so si si so}", "folder", json_text(s->set.folder), "made", s->made, "kept",
                                         s->kept, "combinations", list));
}

static void print_commands(const session *s)
{
    for (int c = 0; c < s->count; c++)
        for (int64_t k = 0; k < s->set.seeds; k++) {
            trial t;
            make_trial(s, &t, &s->all[c], s->set.first_seed + k);
            for (int i = 0; i < t.count; i++) {
                char *word = quote_word(t.words[i]);
                printf("%s%s", i > 0 ? " " : "", word);
                free(word);
            }
            putchar('\n');
            trial_release(&t);
        }
}

static sdlf_status sweep(session *s)
{
    sdlf_status status = read_axes(s);
    if (status == SDLF_OK) status = make_combinations(s);
    if (status == SDLF_OK) status = check_trials(s);
    if (status != SDLF_OK) return status;
    if (s->set.list) {
        print_commands(s);
        return SDLF_OK;
    }
    status = run_all(s);
    if (status != SDLF_OK) return status;
    qsort(s->all, (size_t)s->count, sizeof *s->all, by_mean);
    interrupt_say(!s->set.json, "; the same command continues with the missing runs");
    if (s->set.json) return print_json(s);
    print_table(s);
    return SDLF_OK;
}

static int run(int count, char **words)
{
    session s = {.count = 0};
    arguments given;
    static const argument_part parts[] = {{sweep_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "sweep",
        .synopsis = "--try NAME=VALUES... [options] [-- TRAIN_OPTION...]",
        .unknown = "; options of 'sdlf train' go after '--'",
        .text = "Train with every combination of the values given, or with a random selection, each with several "
                "seeds, and report the results of each: the mean of the last test's accuracy, its deviation, the best. "
                "What follows '--' goes to every 'sdlf train'. A sweep that was stopped continues where it stopped.",
        .parts = parts,
        .operands_maximum = WORDS_MOST,
        .examples = "  sdlf sweep --try batch=32,64 --try learning-rate=0.02,0.05 --seeds 3 -- --net lenet5\n"
                    "  sdlf sweep --random 20 --try learning-rate=log:1e-3..1e-1 -- --epochs 5\n"
                    "  sdlf compare sweep/*.jsonl\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.words = given.operand;
    s.word_count = given.operand_count;
    int code = command_conclude("sweep", sweep(&s));
    for (int i = 0; i < s.axis_count; i++) axis_release(&s.axes[i]);
    for (int c = 0; c < s.count; c++)
        for (int i = 0; i < s.axis_count; i++) free(s.all[c].value[i]);
    free(s.all);
    return code;
}

const command sweep_command = {
    .name = "sweep", .summary = "train with many combinations of options, as one table", .run = run};
