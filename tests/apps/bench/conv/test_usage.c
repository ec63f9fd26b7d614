/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: wrong arguments, and Ctrl-C. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/calculator.h>

#include "apps/bench/conv/conv.h"
#include "apps/program.h"

/* The completed measurements are printed and written. */
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

/* If no calculator is specified, a math mode selects one that supports it: the message about that, or its name in the
 * first line. */
static void a_mode_asks_for_who_has_it(void)
{
    static program p;
    const char *who = "cpu";
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) != NULL; i++) {
        if (!type->has_math) continue;
        who = type->name;
        break;
    }
    program_run(&p, (const char *const[]){"bench", "conv", "--math", "tf32", "--shape", "1x3x8x8", "--kernel", "1x3x3",
                                          "--rung", "auto", "--repeats", "1", "--copy-size", "64kB", NULL});
    CHECK_SAYS(&p, who);
    CHECK(p.code == 0 || p.code == (strcmp(who, "cpu") == 0 ? 2 : 1));
}

static void what_cannot_be(void)
{
#define CONV(...) SDLF(2, "bench", "conv", __VA_ARGS__)
    const program *p = CONV("--shape", "3x4", "--kernel", "1x3x3");
    CHECK_SAYS(p, "--shape 3x4: expected NxCxHxW, 4 whole numbers from 1 to 16,777,216 such as 1x64x56x56");
    CHECK_TEXT(p->out, "");
    CHECK_SAYS(CONV("--workload", "simple_cnn", "--json", test_path("r"), "--svg", test_path("r")),
               "--json and --svg name the same file");
    CHECK_SAYS(CONV("--shape", "1x3x8x8"), "--shape 1x3x8x8 needs a --kernel KxRxS");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x0x3"), "--kernel 1x0x3: expected KxRxS");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--stride", "0"),
               "--stride 0: expected a whole number from 1 to 16,777,216");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--padding", "-1"),
               "--padding -1: expected a whole number from 0");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x9x3"),
               "a window 9 high is larger than its image, 8 with 0 of padding");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "4x3x3", "--groups", "2"),
               "3 channels and 4 filters cannot be cut into 2 groups");
    CHECK_SAYS(CONV("--shape", "1x16000000x16000000x16000000", "--kernel", "1x1x1"), "too large for any machine");
    CHECK_SAYS(CONV("--shape", "99999999999999999999x1x1x1", "--kernel", "1x1x1"),
               "--shape 99999999999999999999x1x1x1: expected");
    CHECK_SAYS(CONV("--kernel", "1x3x3"), "--kernel describes one convolution: expected --shape NxCxHxW too");
    CHECK_SAYS(CONV("--shape", "1x3x8x8", "--kernel", "1x3x3", "--batch", "2"),
               "--batch cannot be combined with --shape");
    CHECK_SAYS(CONV("--workload", "vgg16", "--side", "3"), "--side 3: vgg16 needs images of 16 pixels a side at least");
    CHECK_SAYS(CONV("--workload", "vgg"), "--workload vgg: expected one of study");
    CHECK_SAYS(CONV("--rung", "im2cal"), "--rung im2cal: cpu has no such algorithm (did you mean 'im2col'?)");
    CHECK_SAYS(CONV("--calculator", "cpu", "--math", "tf32"), "--math tf32: ");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--svg", "/no/where.svg"), "/no/where.svg: the folder /no is not there");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--json", "/no/where.json"), "/no/where.json: the folder /no is not there");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--shape", "20000x64x512x512", "--kernel", "64x3x3"),
               "; a smaller --shape needs less");
    CHECK_SAYS(SDLF(1, "bench", "conv", "--side", "31", "--copy-size", "1TB"), "; a smaller --copy-size needs less");
    p = SDLF(0, "bench", "conv", "--help");
    CHECK_SAYS(p, "Usage: sdlf bench conv");
    CHECK_SAYS(p, "the 13 convolutions of VGG16");
    CHECK_SAYS(SDLF(0, "bench", "--help"), "every convolution algorithm");
}

int main(void)
{
    RUN(ctrl_c_keeps_what_there_is);
    RUN(a_mode_asks_for_who_has_it);
    RUN(what_cannot_be);
    return test_summary();
}
