/* sdlf bench conv: the table, the files and the chart. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/report.h"
#include "apps/program.h"

/* Are the tags of an XML text nested as they should be? */
static bool well_formed(const char *text)
{
    enum { DEEP = 16 };
    char open[DEEP][32];
    int depth = 0, roots = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        if (!end || memchr(at + 1, '<', (size_t)(end - at - 1))) return false;
        char name[32] = "";
        if (at[1] != '?') {
            if (sscanf(at[1] == '/' ? at + 2 : at + 1, "%31[a-zA-Z]", name) != 1) return false;
            if (at[1] == '/') {
                if (depth == 0 || strcmp(open[--depth], name) != 0) return false;
            } else if (end[-1] != '/') {
                if (depth == DEEP) return false;
                roots += depth == 0;
                memcpy(open[depth++], name, sizeof name);
            }
        }
        at = end;
    }
    return depth == 0 && roots == 1;
}

/* Names of rungs stand to the right of the plot, none over another. */
static void check_names_apart(const char *svg)
{
    int height = 0;
    CHECK_EQUAL(sscanf(strstr(svg, "height="), "height=\"%d\"", &height), 1);
    double last = 0;
    int names = 0;
    for (const char *at = svg; (at = strstr(at, "<text x=\"742.0\" y=\"")); at++) {
        double y = 0;
        CHECK_EQUAL(sscanf(at, "<text x=\"742.0\" y=\"%lf\"", &y), 1);
        CHECK(y >= last + 13 && y < height - 76);
        last = y;
        names++;
    }
    CHECK(names >= 2 && names % 2 == 0);
}

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
    CHECK(strncmp(svg, "<?xml", 5) == 0 && well_formed(svg));
    CHECK(strstr(svg, "Convolution: study on cpu, float32") != NULL);
    CHECK(strstr(svg, "B/s in a copy") != NULL && strstr(svg, "FLOP/s in a matrix product") != NULL);
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    check_names_apart(svg);
    json_error_t error;
    json_t *report = json_load_file(file, 0, &error);
    if (CHECK(report != NULL)) CHECK_EQUAL(json_array_size(json_object_get(report, "convolutions")), 3);
    json_decref(report);
}

/* Rungs as fast as each other, at the top and at the bottom: their names are moved apart, and stay in the picture. */
static void names_are_moved_apart(void)
{
    static lab l;
    for (int bottom = 0; bottom < 2; bottom++) {
        l = (lab){.calculator = "a<b>&c", .math = "tf32", .dtype = SDLF_FLOAT32, .rungs = 9 + 9 * bottom, .cases = 1};
        l.workload = (lab_workload){.name = "shape", .count = 1, .item = {{.count = 1}}};
        l.ceilings = (ceilings){.flops = 1e11, .bytes = 1e10};
        l.cost[0] = (sdlf_cost){.flops = 1000000, .bytes = 10000};
        for (int i = 0; i < l.rungs; i++) {
            l.rung[i] = (lab_rung){.name = "rung", .summary = "", .algorithm = i};
            l.result[0][i] = (lab_result){.ran = true, .seconds = bottom ? 1 : 1.1e-5, .work = l.cost[0]};
        }
        if (bottom) l.result[0][0].seconds = 1e-5;
        char path[512];
        snprintf(path, sizeof path, "%s", test_path("names.svg"));
        CHECK_OK(lab_draw(&l, path));
        const char *svg = read_text(path);
        CHECK(well_formed(svg));
        CHECK(strstr(svg, "a&lt;b&gt;&amp;c, float32 tf32") != NULL);
        check_names_apart(svg);
    }
    CHECK_FAILS(lab_draw(&l, "/no/where.svg"), SDLF_ERROR_IO, "/no/where.svg");
}

/* Short ones in microseconds, long ones in milliseconds; auto beside the other calculator, which may be the fastest. */
static void the_summary_adds_up(void)
{
    static lab l;
    for (int slow = 0; slow < 2; slow++) {
        double scale = slow ? 1e-3 : 1e-6;
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
        CHECK_EQUAL(lab_automatic(&l), 1);
        CHECK_EQUAL(lab_rival(&l), 2);
        char path[512];
        snprintf(path, sizeof path, "%s", test_path("summary.txt"));
        terminal out = {.file = fopen(path, "w"), .width = 100};
        if (!CHECK(out.file != NULL)) return;
        lab_print_summary(&out, &l);
        fclose(out.file);
        const char *text = read_text(path);
        CHECK(strstr(text, slow ? "ms  layers  plain  auto  there  fastest  auto beside there"
                                : "us  layers  plain  auto  there  fastest  auto beside there") != NULL);
        CHECK(strstr(text, "a        2   8.00  6.00   4.00  there                 0.67") != NULL);
        CHECK(strstr(text, "b        1   4.00  3.00   2.00  there                 0.67") != NULL);
    }
}

int main(void)
{
    RUN(table_files_and_chart);
    RUN(names_are_moved_apart);
    RUN(the_summary_adds_up);
    return test_summary();
}
