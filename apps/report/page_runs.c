/* SPDX-License-Identifier: MIT */
/* Training: the results of the runs as a table and as curves, and the differences of their options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/report/chart.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

enum { COLOURS = 8, WINDOWS = 40 };

static const char *percent(double part)
{
    static number_text text;
    text = number_percent(part, 2);
    return text.text;
}

void page_print_figures(FILE *file, const page *p)
{
    fprintf(file,
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Results\"><table><caption>%s</caption>"
            "<thead><tr><th>run</th><th class=\"n\">epochs</th><th class=\"n\">loss</th><th class=\"n\">accuracy</th>"
            "<th class=\"n\">test loss</th><th class=\"n\">test accuracy</th><th class=\"n\">best</th>"
            "<th class=\"n\">time</th><th class=\"n\">samples/s</th><th>weights</th></tr></thead><tbody>\n",
            p->within_epochs ? "After the last whole epoch" : "How each run ended");
    for (int i = 0; i < p->run_count; i++) {
        run_figures f = run_figures_of(&p->runs[i]);
        fputs("<tr>", file);
        page_cell(file, p->runs[i].name);
        page_number(file, number_count(f.epochs).text);
        page_number(file, isfinite(f.loss) ? number_loss(f.loss, 4).text : "-");
        page_number(file, percent(f.accuracy));
        page_number(file, isfinite(f.test_loss) ? number_loss(f.test_loss, 4).text : "-");
        page_number(file, percent(f.test_accuracy));
        page_number(file, percent(f.best_accuracy));
        page_number(file, number_duration(f.seconds).text);
        page_number(file, number_fixed(f.samples_per_second, 0).text);
        page_cell(file, f.weights);
        fputs("</tr>\n", file);
    }
    fputs("</tbody></table></div>\n", file);
}

/* The position in the run at which a line was written, in epochs. */
static double place_of(const json_t *line)
{
    double step = run_number(line, "step"), steps = run_number(line, "steps"), epoch = run_number(line, "epoch");
    return isfinite(step) && steps > 0 ? epoch - 1 + step / steps : epoch;
}

static chart_line *add_named(chart *c, const run_log *run, int colour, const char *suffix, bool dashed)
{
    char *name = memory_print("%s%s", run->name, suffix);
    chart_line *line = chart_add(c, name, colour % COLOURS, dashed);
    free(name);
    return line;
}

/* Adds a moving mean over the last steps: of `key` over samples, or, if NULL, samples a second. The values in lines are means over the
 * epoch so far, and would jump where an epoch begins. Lines without new samples are left out: a device reports only every few steps. */
static void add_moving(chart *c, const run_log *run, int colour, const char *key, const char *suffix)
{
    chart_line *line = add_named(c, run, colour, suffix, false);
    size_t count = json_array_size(run->steps), kept = 0;
    double *sum = memory_allocate(3 * (count + 1) * sizeof *sum), *over = sum + count + 1, *place = over + count + 1;
    double before[2] = {0, 0}, before_samples = 0, before_epoch = NAN;
    sum[0] = over[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(run->steps, i);
        double samples = run_number(one, "samples"), epoch = run_number(one, "epoch");
        double now[2] = {key ? run_number(one, key) * samples : samples, key ? samples : run_number(one, "seconds")};
        bool same = epoch == before_epoch && samples >= before_samples;
        if (!(samples > 0) || !isfinite(now[0]) || !isfinite(now[1]) || (same && samples == before_samples)) continue;
        sum[kept + 1] = sum[kept] + now[0] - (same ? before[0] : 0);
        over[kept + 1] = over[kept] + now[1] - (same ? before[1] : 0);
        place[++kept] = place_of(one);
        before[0] = now[0], before[1] = now[1], before_samples = samples, before_epoch = epoch;
    }
    size_t window = kept / WINDOWS > 1 ? kept / WINDOWS : 1;
    for (size_t i = 1; i <= kept; i++) {
        size_t from = i > window ? i - window : 0;
        chart_point(line, place[i], (sum[i] - sum[from]) / (over[i] - over[from]));
    }
    free(sum);
}

/* Adds the values of lines over epochs; "speed" is computed. */
static void add_line(chart *c, const run_log *run, int colour, const char *key, const char *suffix, bool within,
                     bool dashed)
{
    chart_line *line = add_named(c, run, colour, suffix, dashed);
    const json_t *lines = within && json_array_size(run->steps) > 0 ? run->steps : run->epochs;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *one = json_array_get(lines, i);
        chart_point(line, place_of(one),
                    key ? run_number(one, key) : run_number(one, "samples") / run_number(one, "seconds"));
    }
}

static bool scales_loss(const run_log *run)
{
    return isfinite(run_number(json_array_get(run->epochs, 0), "loss_scale"));
}

void page_print_curves(FILE *file, const page *p)
{
    chart scale = {.title = "Loss scale", .across = "epoch", .up = "scale"};
    bool scaled = false;
    chart loss = {.title = "Loss", .across = "epoch", .up = "loss"};
    chart accuracy = {.title = "Accuracy", .across = "epoch", .up = "right", .percent = true};
    chart rate = {.title = "Learning rate", .across = "epoch", .up = "rate"};
    chart speed = {.title = "Speed", .across = "epoch", .up = "samples a second"};
    for (int i = 0; i < p->run_count; i++) {
        const run_log *run = &p->runs[i];
        bool tested = isfinite(run_figures_of(run).test_loss),
             moving = p->within_epochs && json_array_size(run->steps) > 0;
        const char *training = tested ? ", training" : "";
        if (moving) {
            add_moving(&loss, run, i, "loss", training);
            add_moving(&accuracy, run, i, "accuracy", training);
            add_moving(&speed, run, i, NULL, "");
        } else {
            add_line(&loss, run, i, "loss", training, false, false);
            add_line(&accuracy, run, i, "accuracy", training, false, false);
            add_line(&speed, run, i, NULL, "", false, false);
        }
        if (tested) add_line(&loss, run, i, "test_loss", ", test", false, true);
        if (tested) add_line(&accuracy, run, i, "test_accuracy", ", test", false, true);
        add_line(&rate, run, i, "learning_rate", "", true, false);
        if (scales_loss(run)) add_line(&scale, run, i, "loss_scale", "", false, false);
        scaled = scaled || scales_loss(run);
    }
    chart *all[] = {&loss, &accuracy, &rate, &speed, &scale};
    fputs("<div class=\"charts\">\n", file);
    for (int i = 0; i < 5; i++) {
        if (i < 4 || scaled) chart_print(file, all[i]);
        chart_release(all[i]);
    }
    fputs("</div>\n", file);
}

/* Prints words such that lines break only between them, not after the hyphens of an option. */
static void print_words(FILE *file, const char *words)
{
    char *copy = memory_copy_text(words), *rest = copy;
    while (*rest) {
        char *word = rest, *end = word + strcspn(word, " ");
        rest = end + strspn(end, " ");
        char next = *end;
        *end = '\0';
        fputs("<span>", file);
        xml_text(file, word);
        fputs("</span>", file);
        for (; next && end < rest; end++) fputc(' ', file);
    }
    free(copy);
}

void page_print_options(FILE *file, const page *p)
{
    int count;
    run_difference *list = run_differences(p->runs, p->run_count, &count);
    fputs("<h2 id=\"options\">Options</h2>\n", file);
    if (count == 0) fputs("<p>No option differs.</p>\n", file);
    if (count > 0) {
        fprintf(file,
                "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Options\"><table><caption>%s</caption><thead><tr><th>option</th>",
                p->run_count > 1 ? "The options in which the runs differ" : "What the run was trained with");
        for (int k = 0; k < p->run_count; k++) {
            fputs("<th>", file);
            xml_text(file, p->runs[k].name);
            fputs("</th>", file);
        }
        fputs("</tr></thead><tbody>\n", file);
    }
    for (int i = 0; i < count; i++) {
        fputs("<tr>", file);
        page_cell(file, list[i].option);
        for (int k = 0; k < p->run_count; k++) page_cell(file, list[i].value[k]);
        fputs("</tr>\n", file);
    }
    if (count > 0) fputs("</tbody></table></div>\n", file);
    run_differences_free(list, count, p->run_count);
    for (int i = 0; i < p->run_count; i++) {
        const char *words = json_string_value(json_object_get(p->runs[i].start, "command"));
        if (!words) continue;
        fputs("<h3>", file);
        xml_text(file, p->runs[i].name);
        fputs(" again</h3><pre><code>", file);
        print_words(file, words);
        fputs("</code></pre>\n", file);
    }
}

void page_print_runs(FILE *file, const page *p)
{
    fputs("<h2 id=\"runs\">Training</h2>\n", file);
    page_print_figures(file, p);
    page_print_curves(file, p);
    page_print_options(file, p);
}
