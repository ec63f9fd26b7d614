/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: the convolution lab. Every algorithm that a calculator has for a convolution is a rung of a ladder;
 * all of them are timed on the same convolutions, and compared with reference and with the machine's limits. It can
 * also show a stored report. docs/guides/convolution-algorithms.md explains the algorithms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/bench/conv/read.h"
#include "apps/bench/conv/session.h"
#include "apps/command.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

static const argument what_arguments[] = {
    {.name = "What is computed", .type = ARGUMENT_HEADING},
    {"workload", ARGUMENT_CHOICE, offsetof(lab_settings, workload), "NAME", .choices = lab_workload_names,
     .fallback = "study", .help = "convolutions from the list below"},
    {"batch", ARGUMENT_INT, offsetof(lab_settings, batch), "N", .minimum = 1, .maximum = 65536, .fallback = "1",
     .help = "images at a time"},
    {"side", ARGUMENT_INT, offsetof(lab_settings, side), "N", .minimum = 1, .maximum = 65536,
     .help = "height and width of the images, instead of the workload's"},
    {"dtype", ARGUMENT_CHOICE, offsetof(lab_settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "element type of all tensors"},
    {.name = "Or one convolution", .type = ARGUMENT_HEADING},
    {"shape", ARGUMENT_TEXT, offsetof(lab_settings, shape.shape), "NxCxHxW",
     .help = "the images, instead of a workload"},
    {"kernel", ARGUMENT_TEXT, offsetof(lab_settings, shape.kernel), "KxRxS",
     .help = "number, height and width of filters"},
    {"stride", ARGUMENT_TEXT, offsetof(lab_settings, shape.stride), "N", .help = "one number or two, 2x1 (default: 1)"},
    {"padding", ARGUMENT_TEXT, offsetof(lab_settings, shape.padding), "N",
     .help = "on each side; one number or two (default: 0)"},
    {"dilation", ARGUMENT_TEXT, offsetof(lab_settings, shape.dilation), "N", .help = "one number or two (default: 1)"},
    {"groups", ARGUMENT_INT, offsetof(lab_settings, shape.groups), "N", .minimum = 1, .maximum = 1 << 24,
     .fallback = "1", .help = "groups; as many as channels: depthwise"},
    {.name = "Who computes, for how long", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(lab_settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "whose algorithms are timed; if cpu lacks the --math mode, the first that has it"},
    {"against", ARGUMENT_LIST, offsetof(lab_settings, against), "NAME",
     .help = "also time the algorithm that this calculator chooses; may be repeated (default: cudnn beside cuda, where "
             "there is one)"},
    {"rung", ARGUMENT_LIST, offsetof(lab_settings, rung), "NAME",
     .help = "only this algorithm; may be repeated (default: all)"},
    {"threads", ARGUMENT_INT, offsetof(lab_settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"repeats", ARGUMENT_INT, offsetof(lab_settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "31",
     .help = "samples, whose median is taken"},
    {"seconds", ARGUMENT_FLOAT, offsetof(lab_settings, seconds), "S", .minimum = 0, .maximum = 3600, .above = true,
     .fallback = "0.5", .help = "stop sampling an algorithm on one convolution after S seconds"},
    {"no-check", ARGUMENT_FLAG, offsetof(lab_settings, no_check),
     .help = "do not compare with reference, which takes most of the time on a GPU"},
    {"copy-size", ARGUMENT_SIZE, offsetof(lab_settings, copy_size), "BYTES", .minimum = 4096, .maximum = 1e12,
     .fallback = "256MB", .help = "size of the copy that measures memory bandwidth"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"from", ARGUMENT_TEXT, offsetof(lab_settings, from), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "measure nothing: show a report that --json wrote, or the algorithms in it that --rung names"},
    {"json", ARGUMENT_TEXT, offsetof(lab_settings, json), "FILE", .standard = ARGUMENT_STANDARD_OUTPUT, .alone = "-",
     .help = "print JSON; with FILE, write it there beside the table"},
    {"svg", ARGUMENT_TEXT, offsetof(lab_settings, svg), "FILE", .standard = ARGUMENT_STANDARD_OUTPUT,
     .help = "draw a roofline chart, too"},
    {0},
};

static bool print_json(FILE *file, const void *subject)
{
    return json_print(lab_json(subject), file);
}

static void print_limits(const lab_session *s)
{
    const ceilings *c = &s->lab.ceilings;
    report_label(&s->out, "limits");
    printf("%s in a product of %sx%s, %s in a copy of %s\n", number_scaled(c->flops, "FLOP/s").text,
           number_count(c->side).text, number_count(c->side).text, number_scaled(c->bytes, "B/s").text,
           number_bytes(c->copy_bytes).text);
    if (s->left_out[0]) {
        report_label(&s->out, "note");
        printf("%s\n", s->left_out);
    }
    fflush(stdout);
}

/* Measures and shows every convolution. */
static sdlf_status measure_all(lab_session *s, const arguments *given)
{
    sdlf_status status = lab_session_open(s, given);
    if (status != SDLF_OK) return status;
    if (s->text) report_header(&s->out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    interrupt_waits();
    status = lab_session_limits(s);
    if (status == SDLF_OK && s->text) print_limits(s);
    for (int i = 0; i < s->lab.workload.count && status == SDLF_OK && interrupt_signal() == 0; i++) {
        status = lab_session_case(s, i);
        s->lab.cases = i + 1;
        if (status == SDLF_OK && s->text) lab_print_case(&s->out, &s->lab, i);
    }
    s->lab.interrupted = interrupt_signal() != 0;
    return status;
}

/* Shows a stored report as if it had just been measured. Options on what to measure are rejected. */
static sdlf_status show_stored(lab_session *s, const arguments *given)
{
    static const argument_part measuring[] = {{what_arguments, 0}, {machine_arguments, 0}, {0}};
    for (const argument_part *part = measuring; part->rows; part++) {
        for (const argument *row = part->rows; row->name; row++) {
            if (row->type == ARGUMENT_HEADING || strcmp(row->name, "rung") == 0 || !arguments_given(given, row->name))
                continue;
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s: nothing is measured with --from, which shows a stored report",
                             row->name);
        }
    }
    sdlf_status status = lab_read(&s->lab, s->set.from, &s->set.rung);
    if (status == SDLF_OK) status = lab_session_files(s);
    if (status != SDLF_OK || !s->text) return status;
    report_label(&s->out, "report");
    printf("%s: %s on %s, %s %s\n", s->set.from, s->lab.workload.name, s->lab.calculator, sdlf_dtype_name(s->lab.dtype),
           s->lab.math);
    report_label(&s->out, "of");
    printf("%s\n", s->lab.runs_on);
    print_limits(s);
    for (int i = 0; i < s->lab.cases; i++) lab_print_case(&s->out, &s->lab, i);
    return SDLF_OK;
}

static sdlf_status bench_all(lab_session *s, const arguments *given)
{
    sdlf_status status = s->set.from ? show_stored(s, given) : measure_all(s, given);
    if (status != SDLF_OK) return status;
    if (s->text) lab_print_summary(&s->out, &s->lab);
    int by = interrupt_signal();
    if (s->text && s->lab.interrupted)
        printf("\nstopped%s%s in convolution %d of %d; %s\n", by ? " by " : "", by ? interrupt_name() : "",
               s->lab.cases, s->lab.workload.count,
               s->lab.cases > 0 ? "what was measured is above" : "nothing was measured");
    if (s->set.json) status = output_file_write(s->set.json, print_json, &s->lab);
    if (status == SDLF_OK && s->set.svg) status = lab_draw(&s->lab, s->set.svg);
    return status == SDLF_OK ? lab_session_judge(s) : status;
}

static int run(int count, char **words)
{
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(lab_settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "bench conv",
        .synopsis = "[options]",
        .text =
            "Time every algorithm that a calculator has for a convolution, from the plainest on: on the convolutions "
            "of a network or an experiment, or on any one. Each row gives the time, its share of the machine's "
            "measured limits, and the error against reference. docs/guides/convolution-algorithms.md explains the "
            "algorithms.",
        .parts = parts,
        .epilogue = lab_workloads_print,
        .examples = "  sdlf bench conv --workload vgg16 --svg vgg16.svg\n"
                    "  sdlf bench conv --workload study --side 511 --json study.json\n"
                    "  sdlf bench conv --from study.json --svg study.svg\n"
                    "  sdlf bench conv --shape 1x64x56x56 --kernel 128x3x3 --padding 1\n"
                    "  sdlf bench conv --calculator cuda --math tf32 --batch 32 --workload mobilenetv2\n"
                    "  sdlf bench conv --calculator cuda --against cudnn --rung auto --rung cudnn --workload vgg16\n",
    };
    lab_session *s = memory_allocate(sizeof *s);
    s->out = terminal_of(stdout);
    int code;
    switch (arguments_read(&given, &usage, count, words, &s->set)) {
    case ARGUMENTS_HELP: code = COMMAND_OK; goto done;
    case ARGUMENTS_WRONG: code = COMMAND_USAGE; goto done;
    case ARGUMENTS_OK: break;
    }
    code = command_conclude("bench conv", bench_all(s, &given));
    interrupt_stops(NULL);
    lab_session_close(s);
done:
    free(s);
    return code;
}

const bench conv_bench = {"conv", "every convolution algorithm, against reference and the machine's limits", run};
