/* SPDX-License-Identifier: MIT */
/* sdlf bench placement: with the mock device, whose memory the host cannot access, and with calculators that share
 * memory. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/bench/placement/report.h"
#include "apps/capture.h"
#include "apps/output/xml.h"
#include "apps/program.h"

/* conv 3x3x4, ReLU, max-pool 2, 8 units, ReLU, 10 units: small, with every kind of layer. */
static const char *conv_network(void)
{
    static const char text[] =
        "{\"name\": \"a<b>&\\\"c\", \"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]}, \"layers\": ["
        "{\"type\": \"max_pool2d\", \"window\": 4, \"name\": \"shrink\"},"
        "{\"type\": \"conv2d\", \"filters\": 4, \"kernel\": 3}, {\"type\": \"relu\"}, {\"type\": \"max_pool2d\", "
        "\"window\": 2}, {\"type\": \"fully_connected\", \"units\": 8}, {\"type\": \"relu\"},"
        "{\"type\": \"fully_connected\", \"units\": 10}, {\"type\": \"softmax\"}]}\n";
    static char path[512];
    snprintf(path, sizeof path, "%s", test_path("conv.json"));
    test_write_file(path, text, sizeof text - 1);
    return path;
}

#define PLACEMENT "--net", conv_network(), "--data", "digits:100", "--batch", "4", "--iterations", "2"

static const json_t *first_rows(const json_t *report)
{
    return json_object_get(json_array_get(json_object_get(report, "experiments"), 0), "rows");
}

static const json_t *find_row(const json_t *rows, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) return row;
    }
    CHECK(!name);
    return NULL;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static int64_t copied(const json_t *row, const char *which)
{
    return json_integer_value(json_object_get(json_object_get(row, "copies"), which));
}

/* Bytes of the small network's tensors at batch 4. */
enum {
    CONV_OUT = 4 * 4 * 4 * 5 * 5,
    SHRUNK = 4 * 4 * 7 * 7,
    POOLED = 4 * 4 * 4 * 2 * 2,
    PARAMETERS = 4 * (40 + 136 + 90)
};

static void layers_go_where_they_are_sent(void)
{
    json_t *report = CAPTURE_JSON(placement_bench.run, PLACEMENT, "--device-calculator", "guarded", "--json");
    const json_t *rows = first_rows(report);
    CHECK_EQUAL(json_array_size(rows), 11);
    double loss = number(json_array_get(rows, 0), "loss");
    CHECK(loss > 1 && loss < 10);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        bool available = json_is_true(json_object_get(row, "available"));
        CHECK(available == !strstr(json_string_value(json_object_get(row, "name")), " convolution"));
        if (!available) {
            CHECK(strstr(json_string_value(json_object_get(row, "missing")), "not in this build"));
            continue;
        }
        CHECK_CLOSE(number(row, "loss"), loss, 1e-4); /* wherever it is computed */
        CHECK(number(row, "seconds_per_step") > 0);
        CHECK_CLOSE(number(row, "samples_per_second") * number(row, "seconds_per_step"), 4, 1e-3);
    }
    CHECK_CLOSE(number(json_array_get(rows, 0), "against_one_thread"), 1, 0);
    CHECK_CLOSE(number(find_row(rows, "all on cpu"), "against_host"), 1, 0);
    CHECK(number(json_array_get(json_object_get(report, "experiments"), 0), "limit_against_host") > 1);

    /* only the necessary copies: an activation and its layer's parameters up, the result down */
    row = (json_t *)find_row(rows, "all on cpu");
    CHECK_EQUAL(copied(row, "count"), 0);
    row = (json_t *)find_row(rows, "convolution on guarded");
    CHECK_EQUAL(copied(row, "bytes_up"), SHRUNK + 4 * 40);
    CHECK_EQUAL(copied(row, "bytes_down"), CONV_OUT); /* ReLU went along */
    row = (json_t *)find_row(rows, "pooling on guarded");
    CHECK_EQUAL(copied(row, "bytes_down"), SHRUNK + POOLED);
    row = (json_t *)find_row(rows, "forward on guarded");
    CHECK_EQUAL(copied(row, "bytes_up"), PARAMETERS); /* the new ones; batches are drawn there */
    CHECK(number(json_object_get(row, "copies"), "seconds") > 0);
    row = (json_t *)find_row(rows, "all on guarded");
    CHECK_EQUAL(copied(row, "count"), 0);
    json_decref(report);
}

/* A named algorithm is forced on the device's convolutions, unfused. */
static void algorithms_are_found_by_their_names(void)
{
    json_t *report = CAPTURE_JSON(placement_bench.run, PLACEMENT, "--device-calculator", "cpu", "--host-calculator",
                                  "reference", "--threads", "1", "--json");
    const json_t *rows = first_rows(report);
    CHECK_EQUAL(json_array_size(rows), 10); /* the host has only one thread */
    const json_t *row = find_row(rows, "forward on cpu, two-step convolution");
    CHECK_TEXT(json_string_value(json_object_get(row, "conv_algorithm")), "cpu:im2col");
    CHECK(json_is_false(json_object_get(row, "fused")));
    row = find_row(rows, "forward on cpu, one-step convolution");
    CHECK_TEXT(json_string_value(json_object_get(row, "conv_algorithm")), "cpu:direct");
    row = find_row(rows, "forward on cpu, shared-memory convolution");
    CHECK(json_is_false(json_object_get(row, "available")));
    row = find_row(rows, "forward on cpu");
    CHECK(json_is_true(json_object_get(row, "fused")));
    json_decref(report);
}

static void kinds_that_the_network_lacks(void)
{
    json_t *report = CAPTURE_JSON(placement_bench.run, "--net", "mlp", "--data", "digits:100", "--batch", "4",
                                  "--iterations", "1", "--device-calculator", "guarded", "--json");
    const json_t *rows = first_rows(report);
    CHECK_TEXT(json_string_value(json_object_get(find_row(rows, "convolution on guarded"), "missing")),
               "mlp has no such layer");
    CHECK_TEXT(
        json_string_value(json_object_get(find_row(rows, "forward on guarded, one-step convolution"), "missing")),
        "mlp has no convolution");
    CHECK(copied(find_row(rows, "softmax on guarded"), "bytes_up") > 0); /* that of the loss that training adds */
    json_decref(report);
}

static void table_and_chart(void)
{
    const char *chart = test_path("chart.svg");
    char path[512];
    snprintf(path, sizeof path, "%s", chart);
    const program *p = SDLF(0, "bench", "placement", PLACEMENT, "--device-calculator", "reference", "--svg", path);
    CHECK_SAYS(p, "batch  4, 2 iterations");
    CHECK_SAYS(p, "ms a step");
    CHECK_SAYS(p, "all on cpu, 1 thread");
    CHECK_SAYS(p, "fully connected on reference");
    CHECK_SAYS(p, "run unfused");
    CHECK_SAYS(p, "limit  backward passes and updates take ");
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return;
    static char svg[1 << 16];
    svg[fread(svg, 1, sizeof svg - 1, file)] = '\0';
    fclose(file);
    CHECK(strncmp(svg, "<?xml", 5) == 0);
    CHECK(strstr(svg, "Training a&lt;b&gt;&amp;&quot;c with its layers") != NULL);
    CHECK(strstr(svg, "a<b>") == NULL);
    CHECK(strstr(svg, "all on reference") != NULL);
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    size_t length = strlen(svg);
    CHECK(length > 7 && strcmp(svg + length - 7, "</svg>\n") == 0);
}

/* A bar that would leave no space for the others is truncated; nothing is drawn outside the image. */
static void long_bars_are_cut(void)
{
    for (int cut = 0; cut < 2; cut++) {
        placement_report report = {
            .network = "net", .data = "data", .math = "fp32", .host = "cpu", .device = "cuda", .count = 1};
        report.experiment[0] = (placement_experiment){.batch = 1, .iterations = 1, .count = 3, .host = 1};
        const double seconds[] = {cut ? 1.0 : 0.015, 0.01, 0.002};
        for (int i = 0; i < 3; i++)
            report.experiment[0].row[i] = (placement_row){.name = "row", .seconds = seconds[i], .copy_seconds = 0.001};
        char path[512];
        static char svg[1 << 14];
        snprintf(path, sizeof path, "%s", test_path("bars.svg"));
        CHECK_OK(placement_draw(&report, path));
        FILE *file = fopen(path, "r");
        if (!CHECK(file != NULL)) return;
        svg[fread(svg, 1, sizeof svg - 1, file)] = '\0';
        fclose(file);
        CHECK((strstr(svg, "<polygon") != NULL) == (cut == 1));
        for (const char *at = svg; (at = strstr(at, "<rect x=\"")); at++) {
            double x = 0, y = 0, width = 0;
            char fill[8] = "";
            CHECK_EQUAL(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%*d\" fill=\"%7[^\"]", &x, &y,
                               &width, fill),
                        4);
            bool figures = strcmp(fill, "#fff") == 0; /* the figures to the right of the bar */
            CHECK(x >= 0 && width > 0 && x + width <= (figures ? 990 : 781));
        }
    }
}

static void xml_is_escaped(void)
{
    static const struct {
        const char *text, *xml;
    } cases[] = {
        {"plain", "plain"},
        {"<a b=\"c\" d='e'>&amp;", "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;amp;"},
        {"\x01\x1b[31m\x7f\t", "??[31m\x7f\t"},
        {"gr\xc3\xb6\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80",
         "gr\xc3\xb6\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xc3(\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", "?"
                                                          "?"
                                                          "(????????\?"},
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char found[256] = "";
        FILE *file = fmemopen(found, sizeof found, "w");
        xml_text(file, cases[i].text);
        fclose(file);
        CHECK_TEXT(found, cases[i].xml);
    }
}

static void what_cannot_be(void)
{
    const program *p = SDLF(2, "bench", "placement", PLACEMENT, "--device-calculator", "abacus");
    CHECK_SAYS(p, "no calculator 'abacus'; there are: ");
    CHECK_TEXT(p->out, "");
    CHECK_SAYS(SDLF(2, "bench", "placement", "--data", "digits:10", "--net", "mlp", "--device-calculator", "reference"),
               "a batch of 16: ");
    CHECK_SAYS(SDLF(1, "bench", "placement", PLACEMENT, "--device-calculator", "reference", "--svg", "/no/where.svg"),
               "/no/where.svg: the folder /no is not there");
    CHECK_SAYS(SDLF(2, "bench", "placement", "--iterations", "0"), "--iterations 0: expected a whole number");
    CHECK_SAYS(SDLF(2, "bench", "placement", PLACEMENT, "--device-calculator", "reference", "--math", "tf32"),
               "--math tf32: ");
    char *text = NULL;
    CHECK_EQUAL(capture_run(placement_bench.run,
                            (const char *const[]){PLACEMENT, "--device-calculator", "cpu", "--host-calculator",
                                                  "guarded", NULL},
                            &text),
                2);
    CHECK(strstr(text, "--host-calculator guarded: expected one that computes in the host's memory") != NULL);
    free(text);
    CHECK_SAYS(SDLF(0, "bench", "placement", "--help"), "Usage: sdlf bench placement");
}

int main(void)
{
    RUN(layers_go_where_they_are_sent);
    RUN(algorithms_are_found_by_their_names);
    RUN(kinds_that_the_network_lacks);
    RUN(table_and_chart);
    RUN(long_bars_are_cut);
    RUN(xml_is_escaped);
    RUN(what_cannot_be);
    return test_summary();
}
