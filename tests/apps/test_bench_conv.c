/* sdlf bench conv: its rungs and workloads, the table, the JSON, the chart, wrong arguments and Ctrl-C. */
#include "testing.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench.h"
#include "apps/bench_conv_report.h"
#include "apps/bench_conv_rungs.h"
#include "apps/capture.h"
#include "apps/program.h"

#define QUICK "--repeats", "3", "--seconds", "0.001", "--copy-size", "64kB"
#define SMALL "--shape", "2x3x9x8", "--kernel", "5x3x3", "--padding", "1", QUICK

/* ---- reading what was written ---- */

static const char *read_text(const char *path)
{
    static char text[1 << 17];
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (!CHECK(file != NULL)) return text;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

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

static const json_t *find(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, key)), name) == 0) return row;
    }
    CHECK(!name);
    return NULL;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static int64_t whole(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* ---- what is measured ---- */

/* Every algorithm of the calculator's table is a row, in its order, with the calculator's own choice last. */
static void rungs_are_the_calculators(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--json", "-");
    const json_t *rungs = json_object_get(report, "rungs");
    sdlf_calculator *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    const char *const *names = cpu->type->kernel[SDLF_CONV2D_FORWARD].algorithms;
    size_t count = 0;
    for (; names[count + 1]; count++) {
        CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, count), "name")), names[count + 1]);
    }
    CHECK_EQUAL(json_array_size(rungs), count + 1);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, count), "name")), "auto");
    sdlf_calculator_close(cpu);

    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    CHECK_EQUAL(whole(conv, "flops"), 2 * 2 * 5 * 72 * 27);
    CHECK_EQUAL(whole(conv, "bytes"), 4 * (2 * 3 * 72 + 5 * 27 + 2 * 5 * 72));
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(conv, "rungs"), i, row)
    {
        CHECK(json_is_true(json_object_get(row, "ran"))); /* all of them take this one */
        double seconds = number(row, "seconds");
        CHECK(seconds > 0 && number(row, "error") < 1e-5);
        CHECK_CLOSE(number(row, "compared"), 0.5, 1e-9); /* the last of two images */
        CHECK_CLOSE(number(row, "flops_per_second") * seconds / (double)whole(conv, "flops"), 1, 1e-6);
        CHECK_CLOSE(number(row, "bytes_per_second") * seconds / (double)whole(row, "work_bytes"), 1, 1e-6);
        CHECK_CLOSE(number(row, "of_floor") * seconds / number(conv, "floor_seconds"), 1, 1e-6);
    }
    const json_t *im2col = find(json_object_get(conv, "rungs"), "rung", "im2col");
    CHECK_EQUAL(whole(im2col, "work_bytes"), whole(conv, "bytes") + 2 * 4 * 2 * 27 * 72);
    const json_t *winograd = find(json_object_get(conv, "rungs"), "rung", "winograd-4x4");
    CHECK(whole(winograd, "work_flops") != whole(conv, "flops"));
    CHECK_EQUAL(whole(winograd, "prepared_bytes") % (36 * 5 * 4),
                0); /* 36 numbers for each filter and padded channel */
    CHECK(whole(winograd, "prepared_bytes") >= 36 * 5 * 3 * 4);
    CHECK_EQUAL(whole(im2col, "prepared_bytes"), 0);
    CHECK_CLOSE(number(json_array_get(json_object_get(conv, "rungs"), 0), "speed_up"), 1, 1e-9);
    json_decref(report);
}

static void refusals_say_why(void)
{
    const program *p = SDLF(0, "bench", "conv", "--shape", "1x4x9x9", "--kernel", "4x3x3", "--stride", "2x1", QUICK);
    CHECK_SAYS(p, "1x4x9x9, 4 of 3x3, stride 2x1");
    CHECK_SAYS(p, "takes 3x3 windows with stride 1 and no dilation");
    CHECK_SAYS(p, "0 of 1");
    json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x4x9x9", "--kernel", "4x3x3", "--stride", "2", QUICK,
                                  "--rung", "naive", "--rung", "winograd-2x2", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    CHECK_EQUAL(json_array_size(json_object_get(conv, "rungs")), 2);
    const json_t *refused = find(json_object_get(conv, "rungs"), "rung", "winograd-2x2");
    CHECK(json_is_false(json_object_get(refused, "ran")));
    CHECK_TEXT(json_string_value(json_object_get(refused, "why")), "takes 3x3 windows with stride 1 and no dilation");
    json_decref(report);
}

/* float64, and a calculator with one way alone. */
static void other_calculators_and_types(void)
{
    static const char *const calculators[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x4x7x7", "--kernel", "4x3x3", "--groups", "2", QUICK,
                                      "--dtype", "float64", "--calculator", calculators[i], "--json", "-");
        const json_t *rungs = json_object_get(report, "rungs");
        if (i == 0) CHECK_EQUAL(json_array_size(rungs), 1);
        CHECK(number(json_array_get(rungs, 0), "seconds") > 0);
        CHECK(number(json_array_get(rungs, 0), "error") < 1e-14);
        CHECK_TEXT(json_string_value(json_object_get(report, "dtype")), "float64");
        json_decref(report);
    }
}

/* Memory that the host cannot touch, and runs that are recorded. */
static void devices_are_measured(void)
{
    sdlf_calculator *device = NULL, *reference = NULL;
    lab_rung rungs[LAB_RUNGS];
    lab_result result = {.ran = false};
    lab_bench *made = NULL;
    sdlf_operation operation;
    const lab_shape shape = {
        .n = 1, .c = 2, .h = 6, .w = 5, .k = 3, .kernel = {3, 2}, .stride = {1, 2}, .dilation = {1, 1}, .groups = 1};
    CHECK_OK(sdlf_calculator_open(&device, "guarded", NULL));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_EQUAL(lab_rungs_of(device, rungs, LAB_RUNGS), 1);
    CHECK_TEXT(rungs[0].name, "guarded");
    CHECK_OK(lab_shape_operation(&shape, SDLF_FLOAT32, &operation));
    CHECK_OK(lab_bench_create(&made, device, reference, &operation, true));
    CHECK_OK(lab_bench_run(made, &rungs[0], &(lab_effort){.repeats = 5, .seconds = 0.01}, &result));
    CHECK(result.ran && result.seconds > 0 && result.runs >= 1);
    CHECK_CLOSE(result.error, 0, 0);
    CHECK_CLOSE(result.compared, 1, 0);
    lab_bench_free(made);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(device);
}

/* What another calculator takes is a rung of its own name, on the same operands; the summary sets auto beside it. */
static void calculators_are_held_against_each_other(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--against", "reference", "--rung", "im2col", "--rung", "auto",
                                  "--rung", "reference", "--json", "-");
    const json_t *rungs = json_object_get(report, "rungs"), *rival = json_array_get(rungs, 2);
    CHECK_EQUAL(json_array_size(rungs), 3);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, 1), "calculator")), "cpu");
    CHECK_TEXT(json_string_value(json_object_get(rival, "name")), "reference");
    CHECK_TEXT(json_string_value(json_object_get(rival, "calculator")), "reference");
    CHECK(number(rival, "seconds") > 0 && number(rival, "error") == 0);
    json_decref(report);
    const program *p = SDLF(0, "bench", "conv", "--workload", "study", "--side", "31", QUICK, "--against", "reference");
    CHECK_SAYS(p, "auto beside reference");
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "cpu"),
               "--against cpu: expected another calculator than --calculator");
    static lab l;
    machine m = {.count = 0};
    sdlf_calculator *cpu = NULL;
    char left_out[200];
    const argument_list none = {.count = 0}, device = {.item = {"guarded"}, .count = 1};
    CHECK_OK(machine_open(&m, "cpu", &cpu));
    CHECK_FAILS(lab_choose_rungs(&l, &m, cpu, &device, &none, left_out, sizeof left_out), SDLF_ERROR_ARGUMENT,
                "--against guarded: it computes in the memory of guarded:0, and cpu in that of host");
    machine_close(&m);
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "nothing"), "--against nothing");
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--rung", "im2cow"), "did you mean 'im2col'?");
}

/* As many filters as reference does in 1e8 FLOPs: of 2 times 1152 times 12544 each, 3 of 128. */
static void large_ones_are_compared_in_part(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x128x112x112", "--kernel", "128x3x3", "--padding", "1",
                                  QUICK, "--rung", "im2col", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    const json_t *row = json_array_get(json_object_get(conv, "rungs"), 0);
    CHECK_CLOSE(number(row, "compared"), 3.0 / 128, 1e-9);
    CHECK(number(row, "error") > 0 && number(row, "error") < 1e-5);
    json_decref(report);
}

static void what_is_not_compared_is_not_told(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--no-check", "--rung", "im2col", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    const json_t *row = json_array_get(json_object_get(conv, "rungs"), 0);
    CHECK(number(row, "seconds") > 0);
    CHECK_CLOSE(number(row, "compared"), 0, 0);
    CHECK(json_is_null(json_object_get(row, "error")));
    json_decref(report);
}

/* ---- workloads ---- */

static int layers_of(const lab_workload *w, double *flops)
{
    int layers = 0;
    *flops = 0;
    for (int i = 0; i < w->count; i++) {
        sdlf_operation operation;
        if (!CHECK_OK(lab_shape_operation(&w->item[i].shape, SDLF_FLOAT32, &operation))) continue;
        layers += w->item[i].count;
        *flops += w->item[i].count * (double)sdlf_operation_cost(&operation).flops;
    }
    return layers;
}

/* The networks' convolutions, held against their published sizes: multiplications and additions of one image. */
static void workloads_are_the_networks(void)
{
    static const struct {
        const char *name;
        int shapes, layers;
        double flops;
    } expected[] = {
        {"study", 24, 24, 0},           {"simple_cnn", 1, 1, 2 * 32 * 25 * 784.0},
        {"vgg16", 9, 13, 30.69e9},      /* 15.3 G multiplications in its convolutions */
        {"mobilenetv2", 30, 52, 0.6e9}, /* 300 M */
        {"networks", 40, 66, 31.29e9},
    };
    static lab_workload w;
    for (int i = 0; lab_workload_names[i]; i++) {
        double flops;
        CHECK_TEXT(lab_workload_names[i], expected[i].name);
        CHECK_OK(lab_workload_make(&w, i, 1, 0));
        CHECK_EQUAL(layers_of(&w, &flops), expected[i].layers);
        CHECK_EQUAL(w.count, expected[i].shapes);
        if (expected[i].flops > 0) CHECK_CLOSE(flops / expected[i].flops, 1, 0.02);
        CHECK_OK(lab_workload_make(&w, i, 7, 33));
        for (int j = 0; j < w.count; j++) CHECK_EQUAL(w.item[j].shape.n, 7);
    }
    CHECK_OK(lab_workload_make(&w, 0, 1, 255));
    CHECK_EQUAL(w.count, 3); /* one row of the summary */
    CHECK_TEXT(w.item[0].row, "side 255");
    CHECK_TEXT(w.item[2].row, "side 255");
    CHECK_TEXT(lab_shape_print(&w.item[1].shape).text, "1x3x255x255, 1 of 3x3, stride 2, padding 1");
    CHECK_FAILS(lab_workload_make(&w, 2, 1, 8), SDLF_ERROR_ARGUMENT, "vgg16 needs images of 16 pixels a side");
}

/* ---- output ---- */

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
    CHECK_SAYS(p, "rung");
    CHECK_SAYS(p, "of floor");
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

/* What was measured is shown, and written. */
static void ctrl_c_keeps_what_there_is(void)
{
    static program p;
    char file[512];
    snprintf(file, sizeof file, "%s", test_path("stopped.json"));
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"bench", "conv", "--workload", "mobilenetv2", "--seconds", "20",
                                            "--repeats", "100000", "--copy-size", "64kB", "--json", file, NULL});
    CHECK(program_wait_for(&p, "limits "));
    kill(p.process, SIGINT);
    program_finish(&p);
    CHECK_EQUAL(p.code, 130);
    CHECK_SAYS(&p, "stopped by Ctrl-C in convolution ");
    json_error_t error;
    json_t *report = json_load_file(file, 0, &error);
    if (CHECK(report != NULL)) CHECK(json_is_true(json_object_get(report, "interrupted")));
    json_decref(report);
}

static void what_cannot_be(void)
{
#define CONV(...) SDLF(2, "bench", "conv", __VA_ARGS__)
    const program *p = CONV("--shape", "3x4", "--kernel", "1x3x3");
    CHECK_SAYS(p, "--shape 3x4: expected NxCxHxW, 4 whole numbers from 1 on such as 1x64x56x56");
    CHECK_TEXT(p->out, "");
    CHECK_SAYS(CONV("--shape", "1x3x8x8"), "--shape 1x3x8x8 needs a --kernel KxRxS");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x0x3"), "--kernel 1x0x3: expected KxRxS");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--stride", "0"),
               "--stride 0: expected a whole number from 1 on");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--padding", "-1"),
               "--padding -1: expected a whole number from 0");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x9x3"),
               "a window 9 high is larger than its image, 8 with 0 of padding");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "4x3x3", "--groups", "2"),
               "3 channels and 4 filters cannot be cut into 2 groups");
    CHECK_SAYS(CONV("--shape", "1x16000000x16000000x16000000", "--kernel", "1x1x1"), "more than any machine computes");
    CHECK_SAYS(CONV("--shape", "99999999999999999999x1x1x1", "--kernel", "1x1x1"),
               "--shape 99999999999999999999x1x1x1: expected");
    CHECK_SAYS(CONV("--kernel", "1x3x3"), "--kernel is of one convolution: expected --shape NxCxHxW with it");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--batch", "2"),
               "--batch goes with a workload, not with --shape");
    CHECK_SAYS(CONV("--workload", "vgg16", "--side", "3"), "--side 3: vgg16 needs images of 16 pixels a side at least");
    CHECK_SAYS(CONV("--workload", "vgg"), "--workload vgg: expected one of study");
    CHECK_SAYS(CONV("--rung", "im2cal"), "--rung im2cal: cpu has no such algorithm, did you mean 'im2col'?");
    CHECK_SAYS(CONV("--calculator", "cpu", "--math", "tf32"), "--math tf32: ");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--svg", "/no/where.svg"), "/no/where.svg: the folder /no is not there");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--json", "/no/where.json"), "/no/where.json: the folder /no is not there");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--shape", "20000x64x512x512", "--kernel", "64x3x3"),
               "are needed and this machine has");
    p = SDLF(0, "bench", "conv", "--help");
    CHECK_SAYS(p, "Usage: sdlf bench conv");
    CHECK_SAYS(p, "the 13 convolutions of VGG16");
    CHECK_SAYS(SDLF(0, "bench", "--help"), "every convolution algorithm");
}

int main(void)
{
    RUN(rungs_are_the_calculators);
    RUN(refusals_say_why);
    RUN(other_calculators_and_types);
    RUN(devices_are_measured);
    RUN(calculators_are_held_against_each_other);
    RUN(large_ones_are_compared_in_part);
    RUN(what_is_not_compared_is_not_told);
    RUN(workloads_are_the_networks);
    RUN(table_files_and_chart);
    RUN(names_are_moved_apart);
    RUN(the_summary_adds_up);
    RUN(ctrl_c_keeps_what_there_is);
    RUN(what_cannot_be);
    return test_summary();
}
