/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: the table, the files and the chart. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/report.h"
#include "apps/program.h"

static void table_files_and_chart(void)
{
    char chart[512], file[512];
    snprintf(chart, sizeof chart, "%s", test_path("roof.svg"));
    snprintf(file, sizeof file, "%s", test_path("lab.json"));
    const program *p =
        SDLF(0, "bench", "conv", "--workload", "study", "--side", "31", QUICK, "--svg", chart, "--json", file);
    CHECK_SAYS(p, "limits ");
    CHECK_SAYS(p, "side 31 stride 2  1x3x31x31, 1 of 3x3, stride 2, padding 1");
    CHECK_SAYS(p, "GFLOP/s  of floor  speed-up  largest error  how");
    CHECK_SAYS(p, "the formula in plain loops");
    CHECK_SAYS(p, "3 of 3");
    const char *svg = read_text(chart);
    CHECK(strncmp(svg, "<?xml", 5) == 0);
    CHECK(strstr(svg, "Convolution: study on cpu, float32") != NULL);
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    json_error_t error;
    json_t *report = json_load_file(file, 0, &error);
    if (CHECK(report != NULL)) CHECK_EQUAL(json_array_size(json_object_get(report, "convolutions")), 3);
    json_decref(report);
}

/* Short times are in microseconds, long and mixed ones in milliseconds; auto is compared with the other calculator,
 * which may be the fastest. */
static void the_summary_adds_up(void)
{
    static lab l;
    enum { SHORT, LONG, MIXED, RANGES };
    static const char *const headings[RANGES] = {"us  layers  plain  auto  there  fastest  auto beside there",
                                                 "ms  layers  plain  auto  there  fastest  auto beside there",
                                                 "ms  layers  plain   auto  there  fastest  auto beside there"};
    static const char *const rows[RANGES] = {"a        2   8.00  6.00   4.00  there                 0.67",
                                             "a        2   8.00  6.00   4.00  there                 0.67",
                                             "a        2  4,000  0.006  0.004  there                 0.67"};
    for (int range = 0; range < RANGES; range++) {
        double scale = range == LONG ? 1e-3 : 1e-6;
        l = (lab){.calculator = "here", .math = "fp32", .dtype = SDLF_FLOAT32, .rungs = 3, .cases = 2};
        l.workload =
            (lab_workload){.name = "net",
                           .count = 2,
                           .item = {{.name = "a", .row = "a", .count = 2}, {.name = "b", .row = "b", .count = 1}}};
        l.ceilings = (ceilings){.flops = 1e12, .bytes = 1e12};
        l.rung[0] = (lab_rung){.name = "plain", .summary = "", .algorithm = 1};
        l.rung[1] = (lab_rung){.name = "auto", .summary = ""};
        l.rung[2] = (lab_rung){.name = "there", .summary = "", .rival = true};
        for (int i = 0; i < 2; i++) {
            l.cost[i] = (sdlf_cost){.flops = 1000, .bytes = 1000};
            for (int j = 0; j < 3; j++)
                l.result[i][j] = (lab_result){.ran = true, .seconds = (4 - j) * scale, .work = l.cost[i]};
        }
        if (range == MIXED) l.result[0][0].seconds = 2;
        CHECK_EQUAL(lab_automatic(&l), 1);
        CHECK_EQUAL(lab_rival(&l), 2);
        char path[512];
        snprintf(path, sizeof path, "%s", test_path("summary.txt"));
        terminal out = {.file = fopen(path, "w"), .width = 100};
        if (!CHECK(out.file != NULL)) return;
        lab_print_summary(&out, &l);
        fclose(out.file);
        const char *text = read_text(path);
        CHECK(strstr(text, headings[range]) != NULL);
        CHECK(strstr(text, rows[range]) != NULL);
        CHECK(strstr(text, "  auto\n") == NULL); /* the other calculator is faster */
        if (range == MIXED) continue;
        CHECK(strstr(text, range == LONG ? "layers    ms  GFLOP/s" : "layers    us  GFLOP/s") != NULL);
        CHECK(strstr(text, "b        1   4.00  3.00   2.00  there                 0.67") != NULL);
    }
}

/* The row of a convolution for which "auto" takes this long, and the only other rung 4 us. */
static const char *row_where_auto_takes(double seconds)
{
    static lab l;
    l = (lab){.calculator = "here", .math = "fp32", .dtype = SDLF_FLOAT32, .rungs = 2, .cases = 2};
    l.workload = (lab_workload){.name = "net",
                                .count = 2,
                                .item = {{.name = "a", .row = "a", .count = 1}, {.name = "b", .row = "b", .count = 1}}};
    l.ceilings = (ceilings){.flops = 1e12, .bytes = 1e12};
    l.rung[0] = (lab_rung){.name = "plain", .summary = "", .algorithm = 1};
    l.rung[1] = (lab_rung){.name = "auto", .summary = ""};
    for (int i = 0; i < 2; i++) {
        l.cost[i] = (sdlf_cost){.flops = 1000, .bytes = 1000};
        l.result[i][0] = (lab_result){.ran = true, .seconds = 4e-6, .work = l.cost[i]};
        l.result[i][1] = (lab_result){.ran = true, .seconds = seconds, .work = l.cost[i]};
    }
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("row.txt"));
    terminal out = {.file = fopen(path, "w"), .width = 100};
    if (!CHECK(out.file != NULL)) return "";
    lab_print_summary(&out, &l);
    fclose(out.file);
    return read_text(path);
}

static void auto_is_the_fastest_where_it_clearly_is(void)
{
    CHECK(strstr(row_where_auto_takes(3e-6), "a        1   4.00  3.00  auto\n") != NULL);
    CHECK(strstr(row_where_auto_takes(3.9e-6), "a        1   4.00  3.90  plain\n") != NULL);
}

int main(void)
{
    RUN(auto_is_the_fastest_where_it_clearly_is);
    RUN(table_files_and_chart);
    RUN(the_summary_adds_up);
    return test_summary();
}
