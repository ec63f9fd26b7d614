/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: printing a stored report. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/read.h"
#include "apps/capture.h"
#include "apps/program.h"

static const argument_list all = {.count = 0};

/* A report of one convolution and two rungs, with one value replaced. */
static const char *report_with(const char *key, const char *value)
{
    static char path[512];
    static const char *const lines[][2] = {
        {"workload", "\"shape\""},
        {"calculator", "\"cpu\""},
        {"dtype", "\"float32\""},
        {"limits", "{\"flops_per_second\": 1e11, \"bytes_per_second\": 1e10, \"product_side\": 512, "
                   "\"copy_bytes\": 4096}"},
        {"rungs", "[{\"name\": \"naive\", \"calculator\": \"cpu\"}, {\"name\": \"auto\", \"calculator\": \"cpu\"}]"},
        {"convolutions",
         "[{\"name\": \"conv\", \"layers\": 2, \"shape\": {\"x\": [1, 4, 9, 9], \"filters\": [8, 4, 3, 3], "
         "\"stride\": [1, 1], \"padding\": [1, 1], \"dilation\": [1, 1], \"groups\": 1}, \"rungs\": [{\"rung\": "
         "\"auto\", \"ran\": true, \"seconds\": 1e-3, \"work_flops\": 46656, \"work_bytes\": 5000}]}]"},
    };
    snprintf(path, sizeof path, "%s", test_path("stored.json"));
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return path;
    for (int i = 0; i < 6; i++)
        fprintf(file, "%s\"%s\": %s", i ? ",\n " : "{", lines[i][0], strcmp(lines[i][0], key) ? lines[i][1] : value);
    fputs("}\n", file);
    fclose(file);
    return path;
}

static void refused(const char *key, const char *value, const char *message)
{
    static lab l;
    CHECK_FAILS(lab_read(&l, report_with(key, value), &all), SDLF_ERROR_FORMAT, message);
    json_decref(l.source);
}

/* The measurements of each rung on each convolution; sums and quotients of these differ in the last digit that is
 * written. */
static void check_same(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"rung",       "ran",   "why",   "seconds",  "quarters",     "samples",
                                       "work_bytes", "error", "taken", "compared", "channels_last"};
    CHECK_EQUAL(json_array_size(a), 3);
    CHECK_EQUAL(json_array_size(b), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_object_get(json_array_get(a, i), "rungs"),
                     *other = json_object_get(json_array_get(b, i), "rungs");
        CHECK(json_array_size(one) > 3);
        CHECK_EQUAL(json_array_size(one), json_array_size(other));
        CHECK(
            json_equal(json_object_get(json_array_get(a, i), "shape"), json_object_get(json_array_get(b, i), "shape")));
        for (size_t j = 0; j < json_array_size(one); j++) {
            for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
                json_t *left = json_object_get(json_array_get(one, j), keys[k]),
                       *right = json_object_get(json_array_get(other, j), keys[k]);
                CHECK(left == right || json_equal(left, right));
            }
        }
    }
}

/* A report that is written, read and written again is unchanged. */
static void a_report_comes_back_whole(void)
{
    char file[512], again[512], chart[512], second[512];
    snprintf(file, sizeof file, "%s", test_path("first.json"));
    snprintf(again, sizeof again, "%s", test_path("again.json"));
    snprintf(chart, sizeof chart, "%s", test_path("first.svg"));
    snprintf(second, sizeof second, "%s", test_path("again.svg"));
    SDLF(0, "bench", "conv", "--workload", "study", "--side", "31", QUICK, "--json", file, "--svg", chart, "--against",
         "reference");
    const program *p = SDLF(0, "bench", "conv", "--from", file, "--json", again, "--svg", second);
    CHECK_SAYS(p, "study on cpu, float32 fp32");
    CHECK_SAYS(p, "limits ");
    CHECK_SAYS(p, "side 31 stride 2  1x3x31x31, 1 of 3x3, stride 2, padding 1");
    CHECK_SAYS(p, "auto beside reference");
    static char text[1 << 20];
    snprintf(text, sizeof text, "%s", read_text(chart));
    CHECK_TEXT(read_text(second), text);
    json_error_t error;
    json_t *a = json_load_file(file, 0, &error), *b = json_load_file(again, 0, &error);
    check_same(json_object_get(a, "convolutions"), json_object_get(b, "convolutions"));
    json_decref(a);
    json_decref(b);
    p = SDLF(0, "bench", "conv", "--from", file, "--rung", "auto", "--rung", "naive");
    CHECK_SAYS(p, "naive");
    CHECK(strstr(p->out, "im2col") == NULL);
    CHECK_SAYS(SDLF(2, "bench", "conv", "--from", file, "--rung", "im2cow"), "--rung im2cow: ");
    CHECK_SAYS(SDLF(2, "bench", "conv", "--from", file, "--batch", "2"), "--batch: nothing is measured with --from");
    CHECK_SAYS(SDLF(2, "bench", "conv", "--from", file, "--math", "tf32"), "--math: nothing is measured with --from");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--from", "/no/where.json"), "/no/where.json");
}

/* Times and shapes suffice; other measurements may be missing. */
static void little_is_enough(void)
{
    static lab l;
    CHECK_OK(lab_read(&l, report_with("", ""), &all));
    CHECK_EQUAL(l.cases, 1);
    CHECK_EQUAL(l.rungs, 2);
    CHECK_EQUAL(l.cost[0].flops, 2 * 8 * 81 * 36);
    CHECK_EQUAL(l.workload.item[0].count, 2);
    CHECK(!l.result[0][0].ran && l.result[0][1].ran && l.unchecked);
    CHECK(lab_is_automatic(&l, 1) && !lab_is_automatic(&l, 0));
    json_decref(l.source);
    CHECK_SAYS(SDLF(0, "bench", "conv", "--from", report_with("", "")), "1x4x9x9, 8 of 3x3, padding 1  (2 layers)");
}

static void what_is_wrong_is_refused(void)
{
    refused("workload", "[1]", "stored.json: workload: expected text of one line");
    refused("workload", "\"a\\u001bb\"", "workload: expected text of one line");
    refused("dtype", "\"int8\"", "dtype: expected float32 or float64");
    refused("limits", "{}", "limits.flops_per_second: expected a number from 1 to 1e+24");
    refused("limits", "7", "limits.flops_per_second: expected a number from 1 to 1e+24");
    refused("rungs", "[]", "rungs: expected a list of 1 to 32");
    refused("rungs", "[{\"name\": \"a\", \"calculator\": \"cpu\"}, {\"name\": \"a\", \"calculator\": \"cpu\"}]",
            "rungs[1].name: expected another name");
    refused("rungs", "[{\"name\": \"naive\", \"calculator\": \"cpu\"}]",
            "convolutions[0].rungs[0].rung: expected a name among the rungs");
    refused("convolutions", "[]", "convolutions: expected a list of 1 to 64");
    refused("convolutions", "[{\"name\": \"a\", \"layers\": 0}]", "convolutions[0].layers: expected a whole number");
    refused("convolutions",
            "[{\"name\": \"a\", \"layers\": 1, \"shape\": {\"x\": [1, 4, 9], \"filters\": [8, 4, 3, 3]}}]",
            "convolutions[0].shape.x: expected 4 whole numbers");
    refused("convolutions", "null, \"more\": {", "stored.json: line ");
}

/* Sizes too large for any memory are rejected as on the command line. */
static void sizes_are_checked(void)
{
    static lab l;
    const char *path =
        report_with("convolutions",
                    "[{\"name\": \"conv\", \"layers\": 1, \"shape\": {\"x\": [1, 4, 9, 9], \"filters\": [8, 4, 30, 3], "
                    "\"stride\": [1, 1], \"padding\": [1, 1], \"dilation\": [1, 1], \"groups\": 1}, \"rungs\": []}]");
    CHECK(lab_read(&l, path, &all) != SDLF_OK);
    CHECK(strstr(sdlf_error_message(), "stored.json: convolutions[0]") != NULL);
    json_decref(l.source);
    static const char *const wrong[][2] = {{"[1, 0]", "shape.stride: expected 2 whole numbers from 1 to"},
                                           {"[1, 99999999999]", "shape.stride: expected 2 whole numbers from 1 to"},
                                           {"[1, 1], \"groups\": 5", ": line "}};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "[{\"name\": \"conv\", \"layers\": 1, \"shape\": {\"x\": [1, 4, 9, 9], \"filters\": [8, 4, 3, 3], "
                 "\"padding\": [1, 1], \"dilation\": [1, 1], \"groups\": 1, \"stride\": %s}, \"rungs\": []}]",
                 wrong[i][0]);
        refused("convolutions", text, wrong[i][1]);
    }
    refused("convolutions",
            "[{\"name\": \"conv\", \"layers\": 9223372036854775807, \"shape\": {\"x\": [1, 1000000, 999, 999], "
            "\"filters\": [1, 1000000, 3, 3], \"stride\": [1, 1], \"padding\": [1, 1], \"dilation\": [1, 1], "
            "\"groups\": 1}, \"rungs\": []}]",
            "layers: expected fewer, or a smaller shape");
}

static void the_size_of_a_file_is_bounded(void)
{
    static lab l;
    CHECK_FAILS(lab_read(&l, "/dev/zero", &all), SDLF_ERROR_FORMAT,
                "/dev/zero: expected at most 4194304 bytes, found more");
    CHECK(l.source == NULL);
}

/* Rates and times that no chart can show are rejected; those at the limits can be shown. */
static void rates_and_times_have_bounds(void)
{
    static const char
        limits[] = "{\"flops_per_second\": %s, \"bytes_per_second\": %s, \"product_side\": 1, "
                   "\"copy_bytes\": 1}",
        measured[] = "[{\"name\": \"conv\", \"layers\": 2, \"shape\": {\"x\": [1, 4, 9, 9], \"filters\": [8, 4, 3, 3], "
                     "\"stride\": [1, 1], \"padding\": [1, 1], \"dilation\": [1, 1], \"groups\": 1}, \"rungs\": "
                     "[{\"rung\": \"auto\", \"ran\": true, \"seconds\": %s, \"quarters\": [1e-3, %s], \"work_flops\": "
                     "46656, \"work_bytes\": 5000}]}]";
    static const char *const rates[] = {"1e308", "1e-300", "1e25", "0.5", "-1"}, *const times[] = {"1e-300", "1e308",
                                                                                                   "1e-13", "1e13",
                                                                                                   "0"};
    char text[640], chart[512];
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof text, limits, rates[i], "1e10");
        refused("limits", text, "stored.json: limits.flops_per_second: expected a number from 1 to 1e+24");
        snprintf(text, sizeof text, limits, "1e10", rates[i]);
        refused("limits", text, "stored.json: limits.bytes_per_second: expected a number from 1 to 1e+24");
        snprintf(text, sizeof text, measured, times[i], "1e-3");
        refused("convolutions", text,
                "stored.json: convolutions[0].rungs[0].seconds: expected a number from 1e-12 to 1e+12");
    }
    snprintf(text, sizeof text, measured, "1e-3", "1e308");
    refused("convolutions", text, "convolutions[0].rungs[0].quarters: expected numbers from 0 to 1e+12");
    snprintf(chart, sizeof chart, "%s", test_path("ends.svg"));
    for (int i = 0; i < 6; i++) {
        const char *key = i < 4 ? "limits" : "convolutions";
        if (i < 4) snprintf(text, sizeof text, limits, i & 1 ? "1" : "1e24", i & 2 ? "1" : "1e24");
        if (i >= 4) snprintf(text, sizeof text, measured, i & 1 ? "1e-12" : "1e12", "null");
        SDLF(0, "bench", "conv", "--from", report_with(key, text), "--svg", chart);
        const char *svg = read_text(chart);
        CHECK(strstr(svg, "\"nan") == NULL && strstr(svg, "\"-nan") == NULL && strstr(svg, "inf\"") == NULL);
    }
}

int main(void)
{
    RUN(a_report_comes_back_whole);
    RUN(little_is_enough);
    RUN(what_is_wrong_is_refused);
    RUN(sizes_are_checked);
    RUN(the_size_of_a_file_is_bounded);
    RUN(rates_and_times_have_bounds);
    return test_summary();
}
