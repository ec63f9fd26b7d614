/* SPDX-License-Identifier: MIT */
/* sdlf report: the page's content, that it loads nothing over a network, and what cannot be shown. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/output/base64.h"
#include "apps/program.h"
#include "apps/report/chart.h"
#include "apps/report/evaluate.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

static char log_path[512], other_path[512], weights[512];

static void trains(void)
{
    snprintf(log_path, sizeof log_path, "%s", test_path("run.jsonl"));
    snprintf(other_path, sizeof other_path, "%s", test_path("a<b.jsonl"));
    snprintf(weights, sizeof weights, "%s", test_path("lenet5.safetensors"));
    SDLF(0, "train", "--net", "lenet5", "--data", "digits:600,3", "--epochs", "2", "--quiet", "--log", log_path,
         "--out", weights);
    SDLF(0, "train", "--net", small_network(), "--data", "digits:600,3", "--epochs", "1", "--quiet", "--log",
         other_path, "--no-save", "--batch", "32", "--loss-scale", "256");
}

/* The whole file; the caller frees it. */
static char *contents(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 22);
    if (file) CHECK(fread(text, 1, (1 << 22) - 1, file) > 0);
    if (file) fclose(file);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text++) count++;
    return count;
}

static void shows_runs_and_a_model(void)
{
#if !defined SDLF_HAVE_PNG
    test_skip("built without libpng");
    return;
#endif
    const char *path = test_path("report.html");
    const program *p = SDLF(0, "report", log_path, other_path, weights, "-o", path, "--mistakes", "5");
    CHECK_SAYS(p, "report.html (");
    char *html = contents(path);
    static const char *const parts[] = {"<!DOCTYPE html>",
                                        "<h2 id=\"runs\">",
                                        "<figcaption>Loss</figcaption>",
                                        "Learning rate",
                                        "<figcaption>Loss scale</figcaption>",
                                        "<h2 id=\"options\">",
                                        "<td>batch</td><td>64</td><td>32</td>",
                                        "<span>sdlf</span> <span>train</span> <span>--data</span>",
                                        "<td>learning-rate</td>",
                                        "<td>memory</td>",
                                        "<h2 id=\"classes\">",
                                        "class=\"heat\"",
                                        "<h2 id=\"mistakes\">",
                                        "<h2 id=\"network\">",
                                        "<h2 id=\"layers\">",
                                        "First filters",
                                        "a&lt;b",
                                        "role=\"img\" aria-label=\"Loss"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!CHECK(strstr(html, parts[i]) != NULL)) fprintf(stderr, "no %s\n", parts[i]);
    }
    CHECK(strstr(html, "a<b") == NULL);
    CHECK_EQUAL(count_of(html, ", was taken for"), 5);
    CHECK_EQUAL(count_of(html, "<img "), count_of(html, " alt=\""));
    /* nothing is fetched, no script runs */
    CHECK(strstr(html, "<script") == NULL && strstr(html, "<link") == NULL && strstr(html, "src=\"http") == NULL);
    CHECK_EQUAL(count_of(html, "http"), count_of(html, "http-equiv") + count_of(html, "http://www.w3.org/2000/svg"));
    CHECK(strstr(html, "default-src 'none'") != NULL);
    /* every link in the page has a target */
    for (const char *at = html; (at = strstr(at, "href=\"#")); at++) {
        char name[64], target[80];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 7, "\""), at + 7);
        snprintf(target, sizeof target, "id=\"%s\"", name);
        if (!CHECK(strstr(html, target) != NULL)) fprintf(stderr, "nothing has %s\n", target);
    }
    free(html);
}

static void shows_what_there_is(void)
{
    const program *p = SDLF(0, "report", log_path, "--out", "-");
    CHECK_SAYS(p, "<h2 id=\"classes\">"); /* the log holds the last test */
    CHECK(strstr(p->out, "Loss scale") == NULL);
    CHECK(strstr(p->out, "id=\"network\"") == NULL);
    p = SDLF(0, "report", weights, "--out", "-", "--no-time", "--mistakes", "0");
    CHECK_SAYS(p, "<h2 id=\"network\">");
    CHECK(strstr(p->out, "id=\"layers\"") == NULL && strstr(p->out, "href=\"#layer-") == NULL &&
          strstr(p->out, "id=\"mistakes\"") == NULL);
    if (!reads_onnx()) return;
    p = SDLF(0, "report", fixture("small_cnn/model.onnx"), "--out", "-", "--no-time"); /* no data are known */
    CHECK_SAYS(p, "<h2 id=\"network\">");
    CHECK(strstr(p->out, "id=\"classes\"") == NULL);
}

/* A folder means its logs, in order of their names, and its model. */
static void takes_a_folder(void)
{
    char folder[512], path[560];
    snprintf(folder, sizeof folder, "%s", test_path("runs"));
    CHECK(mkdir(folder, 0777) == 0);
    CHECK_SAYS(SDLF(2, "report", folder, "-o", "-"), "expected logs (.jsonl) or a model");
    const char *const from[] = {other_path, log_path, weights}, *const to[] = {"2.jsonl", "1.jsonl", "net.safetensors"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, to[i]);
        CHECK(link(from[i], path) == 0);
    }
    const program *p = SDLF(0, "report", folder, "-o", "-", "--no-time");
    CHECK_SAYS(p, "2 training runs; weights of");
    const char *first = strstr(p->out, "<td>1</td>"), *second = strstr(p->out, "<td>2</td>");
    CHECK(first && second && first < second);
    snprintf(path, sizeof path, "%s/other.safetensors", folder);
    CHECK(link(weights, path) == 0);
    CHECK_SAYS(SDLF(2, "report", folder, "-o", "-"), "a report covers one model");
}

static void says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "report", weights, weights, "-o", "-"), "a report covers one model");
    CHECK_SAYS(SDLF(2, "report", log_path, "--data", "digits", "-o", "-"),
               "--data digits is for evaluating a model, but none is given");
    CHECK_SAYS(SDLF(1, "report", log_path, "-o", test_path("none/report.html")), "none/report.html");
    CHECK_SAYS(SDLF(1, "report", weights, "--data", "folder:/nowhere", "-o", "-"), "/nowhere");
}

/* The counts are those of sdlf_evaluate. */
static void judges_as_evaluate_does(void)
{
    sdlf_model *model = NULL;
    sdlf_dataset *data = NULL;
    sdlf_calculator *calculator = test_open("reference");
    sdlf_evaluation expected = {0};
    report_evaluation found;
    CHECK_OK(sdlf_model_open(&model, weights));
    CHECK_OK(sdlf_dataset_open(&data, "digits:600,3", SDLF_SPLIT_TEST));
    CHECK_OK(sdlf_evaluate(&expected, model, data, calculator, 0));
    CHECK_OK(evaluate_report(&found, model, data, calculator, 7));
    CHECK_EQUAL(found.evaluation.samples, expected.samples);
    CHECK_EQUAL(found.evaluation.correct, expected.correct);
    CHECK_CLOSE(found.evaluation.loss, expected.loss, 1e-5);
    CHECK(memcmp(found.evaluation.confusion, expected.confusion, sizeof(int64_t) * 100) == 0);
    CHECK_EQUAL(found.worst_count, 7);
    const int32_t *label = data->labels.data;
    for (int i = 0; i < found.worst_count; i++) {
        CHECK_EQUAL(found.worst[i].truth, label[found.worst[i].sample]);
        CHECK(found.worst[i].taken_for != found.worst[i].truth);
        CHECK(i == 0 || found.worst[i].probability <= found.worst[i - 1].probability);
    }
    report_evaluation_release(&found);
    sdlf_evaluation_release(&expected);
    sdlf_dataset_free(data);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void shows_one_picture(void)
{
    const program *p = SDLF(0, "report", weights, "--out", "-", "--no-time", "--mistakes", "0", "--sample", "7");
    CHECK_SAYS(p, "sample 7, which is");
    CHECK_SAYS(p, "Grad-CAM shows in red");
    CHECK_SAYS(p, "<h2 id=\"memory\">");
    CHECK_SAYS(p, "Training: the steps with most");
#if defined SDLF_HAVE_PNG
    CHECK_SAYS(p, "alt=\"Grad-CAM for class");
    CHECK_SAYS(p, "alt=\"The output of conv2d");
    p = SDLF(0, "report", weights, "--out", "-", "--no-time", "--picture", SDLF_PICTURE, "--class", "3");
    CHECK_SAYS(p, "Grad-CAM for <b>3</b>");
#endif
    CHECK_SAYS(SDLF(2, "report", weights, "-o", "-", "--sample", "100000000"), "has samples 0 to");
    CHECK_SAYS(SDLF(2, "report", weights, "-o", "-", "--class", "10"), "classes 0 to 9");
    CHECK_SAYS(SDLF(2, "report", weights, "-o", "-", "--cam-layer", "none"), "no layer 'none'");
    CHECK_SAYS(SDLF(2, "report", log_path, "-o", "-", "--picture", "x.png"), "--picture x.png is for a model");
}

/* RFC 4648, 10. */
static void base64_is_the_standards(void)
{
    static const char *const pairs[][2] = {{"", ""},        {"f", "Zg=="},          {"fo", "Zm8="},
                                           {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}, {"\xff\xfe", "//4="}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char text[32] = "";
        FILE *file = fmemopen(text, sizeof text, "w");
        base64_print(file, pairs[i][0], strlen(pairs[i][0]));
        fclose(file);
        CHECK_TEXT(text, pairs[i][1]);
    }
}

/* Float targets, multiple labels and pixel labels have their own metrics. */
static void shows_targets(void)
{
#if !defined SDLF_HAVE_PNG
    test_skip("built without libpng");
    return;
#endif
    const char *table = test_path("t.csv"), *path = test_path("targets.html");
    FILE *file = fopen(table, "w");
    if (!CHECK(file != NULL)) return;
    fputs("a,b,height,width\n", file);
    for (int i = 0; i < 60; i++) fprintf(file, "%d,%d,%d,%d\n", i, i * 7 % 5, i * 3 % 2, i % 2);
    fclose(file);
    char data[600], model[512];
    snprintf(data, sizeof data, "csv:%s,label=height..width", table);
    snprintf(model, sizeof model, "%s", test_path("targets.safetensors"));
    static const char *const losses[] = {"mse", "bce_with_logits"};
    static const char *const headings[] = {"root mean squared error", "<th class=\"n\">F1</th>"};
    for (int i = 0; i < 2; i++) {
        SDLF(0, "train", "--data", data, "--loss", losses[i], "--net", "mlp", "--epochs", "1", "--quiet", "--out",
             model);
        SDLF(0, "report", model, "--no-time", "-o", path);
        char *html = contents(path);
        CHECK(strstr(html, "id=\"targets\"") != NULL && strstr(html, "id=\"classes\"") == NULL);
        CHECK(strstr(html, headings[i]) != NULL && strstr(html, "<td>height</td>") != NULL);
        free(html);
    }
}

/* The ticks have distinct labels, and there are no fractional epochs. */
static void ticks_tell_values_apart(void)
{
    static const double values[][2] = {{0.1, 0.1}, {2.7e-6, 2.72e-6}, {0.981, 0.984}};
    static const char *const wanted[] = {">10%<", ">2.71e-06<", ">98.2%<"};
    for (int i = 0; i < 3; i++) {
        chart c = {.title = "t", .across = "x", .up = "y", .percent = i != 1};
        chart_line *line = chart_add(&c, "l", 0, false);
        chart_point(line, 1, values[i][0]);
        if (i > 0) chart_point(line, 2, values[i][1]);
        char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        chart_print(file, &c);
        fclose(file);
        CHECK_EQUAL(count_of(text, wanted[i]), 1);
        CHECK(strstr(text, ">1.5<") == NULL && strstr(text, ">1.1<") == NULL);
        free(text);
        chart_release(&c);
    }
}

/* Log lines have the mean over the epoch so far; curves of a current run show the last steps, without jumps. */
static void curves_within_epochs_are_of_the_last_steps(void)
{
    static const double said[][5] = {                   /* epoch, step, samples, loss, seconds */
                                     {1, 0, 0, 0, 0.5}, /* figures that have not come, and the same again */
                                     {1, 1, 1000, 4, 1},     {1, 1.5, 1000, 4, 1.5},  {1, 2, 2000, 3, 2},
                                     {2, 1, 1000, 1.5, 0.5}, {2, 2, 2000, 1.25, 0.75}};
    run_log run = {
        .name = memory_copy_text("r"), .start = json_object(), .steps = json_array(), .epochs = json_array()};
    for (int i = 0; i < 6; i++)
        json_array_append_new(run.steps, json_pack("{sf sf si sf sf sf sn sf}", "epoch", said[i][0], "step", said[i][1],
                                                   "steps", 2, "samples", said[i][2], "loss", said[i][3], "seconds",
                                                   said[i][4], "accuracy", "learning_rate", 0.1));
    json_object_set_new(json_array_get(run.steps, 0), "loss", json_null());
    const page p = {.runs = &run, .run_count = 1, .within_epochs = true};
    memory_text text;
    CHECK(memory_text_open(&text));
    page_print_curves(text.file, &p);
    CHECK(memory_text_close(&text));
    CHECK(strstr(text.text, "epoch 0.5: 4<") && strstr(text.text, "epoch 1: 2<") &&
          strstr(text.text, "epoch 1.5: 1.5<") && strstr(text.text, "epoch 2: 1<"));
    CHECK(strstr(text.text, "aria-label=\"Speed: r ends at 4,000\"") != NULL); /* and 1,000, 1,000, 2,000 before */
    CHECK(strstr(text.text, "Accuracy") == NULL && strstr(text.text, "nan") == NULL);
    free(text.text);
    run_log_release(&run);
}

static void charts_take_any_numbers(void)
{
    CHECK_CLOSE(chart_step(1, 5), 0.2, 1e-12);
    CHECK_CLOSE(chart_step(70, 5), 20, 1e-9);
    static const double values[] = {NAN, 1e300, -1e-300, 5, INFINITY, 0.5};
    for (int from = 0; from < 6; from++)
        for (int to = from; to <= 6; to++) {
            chart c = {.title = "t", .across = "x", .up = "y", .percent = from % 2 == 0};
            chart_line *line = chart_add(&c, "l", 0, false);
            for (int i = from; i < to; i++) chart_point(line, i, values[i]);
            char *text = NULL;
            size_t length;
            FILE *file = open_memstream(&text, &length);
            chart_print(file, &c);
            fclose(file);
            CHECK(strstr(text, "nan") == NULL && length < 20000);
            free(text);
            chart_release(&c);
        }
}

int main(void)
{
    RUN(trains);
    RUN(shows_runs_and_a_model);
    RUN(shows_what_there_is);
    RUN(takes_a_folder);
    RUN(says_what_is_wrong);
    RUN(shows_one_picture);
    RUN(judges_as_evaluate_does);
    RUN(base64_is_the_standards);
    RUN(shows_targets);
    RUN(ticks_tell_values_apart);
    RUN(curves_within_epochs_are_of_the_last_steps);
    RUN(charts_take_any_numbers);
    return test_summary();
}
