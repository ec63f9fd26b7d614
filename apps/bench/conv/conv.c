/* sdlf bench conv: the convolution lab. Every algorithm that a calculator has for a convolution is a rung of a ladder; all of
 * them are timed on the same convolutions, compared with reference, and set beside what the machine can do.
 * docs/convolution.md explains them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/bench/bench.h"
#include "apps/bench/conv/report.h"
#include "apps/bench/conv/rungs.h"
#include "apps/command.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

typedef struct settings {
    int workload, dtype;
    int64_t batch, side, repeats, copy_size;
    lab_shape_text shape;
    argument_list rung, against;
    double seconds;
    bool no_check;
    const char *calculator, *json, *svg;
    machine_choice choice;
} settings;

static const argument what_arguments[] = {
    {.name = "What is computed", .type = ARGUMENT_HEADING},
    {"workload", ARGUMENT_CHOICE, offsetof(settings, workload), "NAME", .choices = lab_workload_names,
     .fallback = "study", .help = "convolutions from the list below"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 65536, .fallback = "1",
     .help = "images at a time"},
    {"side", ARGUMENT_INT, offsetof(settings, side), "N", .minimum = 1, .maximum = 65536,
     .help = "images of another side than the workload's"},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "the type of all numbers"},
    {.name = "Or one convolution", .type = ARGUMENT_HEADING},
    {"shape", ARGUMENT_TEXT, offsetof(settings, shape.shape), "NxCxHxW", .help = "the images, instead of a workload"},
    {"kernel", ARGUMENT_TEXT, offsetof(settings, shape.kernel), "KxRxS", .help = "how many filters, how high and wide"},
    {"stride", ARGUMENT_TEXT, offsetof(settings, shape.stride), "N", .help = "one number or two, 2x1 (default: 1)"},
    {"padding", ARGUMENT_TEXT, offsetof(settings, shape.padding), "N",
     .help = "on each side; one number or two (default: 0)"},
    {"dilation", ARGUMENT_TEXT, offsetof(settings, shape.dilation), "N", .help = "one number or two (default: 1)"},
    {"groups", ARGUMENT_INT, offsetof(settings, shape.groups), "N", .minimum = 1, .maximum = 1 << 24, .fallback = "1",
     .help = "as many as there are channels: depthwise"},
    {.name = "Who computes, for how long", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "whose algorithms are timed; with a --math that cpu has not: the first that has it"},
    {"against", ARGUMENT_LIST, offsetof(settings, against), "NAME",
     .help =
         "what this calculator takes is a rung, too; may be repeated (default: cudnn beside cuda, where there is one)"},
    {"rung", ARGUMENT_LIST, offsetof(settings, rung), "NAME",
     .help = "this algorithm alone; may be repeated (default: all)"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "31",
     .help = "samples, whose median is taken"},
    {"seconds", ARGUMENT_FLOAT, offsetof(settings, seconds), "S", .minimum = 0, .maximum = 3600, .above = true,
     .fallback = "0.5", .help = "no further sample of a rung on one convolution after so long"},
    {"no-check", ARGUMENT_FLAG, offsetof(settings, no_check),
     .help = "do not compare with reference, which takes longer than all else on a GPU"},
    {"copy-size", ARGUMENT_SIZE, offsetof(settings, copy_size), "BYTES", .minimum = 4096, .maximum = 1e12,
     .fallback = "256MB", .help = "what is copied to see what the memory can do"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_TEXT, offsetof(settings, json), "FILE", .alone = "-",
     .help = "print JSON; with FILE, write it there beside the table"},
    {"svg", ARGUMENT_TEXT, offsetof(settings, svg), "FILE", .help = "draw a roofline chart, too"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator, *reference;
    char left_out[512]; /* why there is no rival where there usually is one */
    terminal out;
    bool text; /* is the table wanted? */
    lab lab;
} session;

/* Options of the one form do not go with the other. */
static sdlf_status choose_workload(session *s, const arguments *given)
{
    static const char *const of_shape[] = {"kernel", "stride", "padding", "dilation", "groups"};
    static const char *const of_workload[] = {"workload", "batch", "side"};
    const settings *set = &s->set;
    if (!set->shape.shape) {
        for (size_t i = 0; i < sizeof of_shape / sizeof of_shape[0]; i++) {
            if (arguments_given(given, of_shape[i]))
                return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is of one convolution: expected --shape NxCxHxW with it",
                                 of_shape[i]);
        }
        return lab_workload_make(&s->lab.workload, set->workload, set->batch, set->side);
    }
    for (size_t i = 0; i < sizeof of_workload / sizeof of_workload[0]; i++) {
        if (arguments_given(given, of_workload[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s goes with a workload, not with --shape, which says all of it",
                             of_workload[i]);
    }
    lab_shape shape;
    sdlf_status status = lab_shape_read(&shape, &set->shape);
    if (status == SDLF_OK) lab_workload_of_shape(&s->lab.workload, &shape);
    return status;
}

/* Does every convolution make sense, and does it fit? Before hours are spent on the first. */
static sdlf_status check_cases(session *s)
{
    sdlf_operation operation;
    for (int i = 0; i < s->lab.workload.count; i++) {
        sdlf_status status = lab_shape_operation(&s->lab.workload.item[i].shape, s->lab.dtype, &operation);
        if (status == SDLF_OK) {
            s->lab.cost[i] = sdlf_operation_cost(&operation);
            status = machine_check_memory(&s->machine, lab_bench_bytes(s->calculator, &operation));
        }
        if (status != SDLF_OK) return sdlf_fail_context(status, "%s", s->lab.workload.item[i].name);
    }
    return machine_check_memory(&s->machine, 2 * s->set.copy_size);
}

/* Who computes where nobody said so: in a math mode other than fp32, the first calculator that has modes. */
static const char *usual_calculator(const settings *set)
{
    const sdlf_calculator_class *type;
    for (int i = 0; set->choice.math != SDLF_MATH_FP32 && (type = sdlf_calculator_class_at(i)) != NULL; i++) {
        if (type->has_math) return type->name;
    }
    return set->calculator;
}

static sdlf_status open_all(session *s, const arguments *given)
{
    s->machine.choice = s->set.choice;
    if (!arguments_given(given, "calculator")) s->set.calculator = usual_calculator(&s->set);
    s->lab.dtype = s->set.dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    s->lab.math = sdlf_math_name((sdlf_math)s->set.choice.math);
    s->lab.calculator = s->set.calculator;
    s->lab.unchecked = s->set.no_check;
    sdlf_status status = choose_workload(s, given);
    bool to_file = s->set.json && !(s->set.json[0] == '-' && s->set.json[1] == '\0');
    s->text = !s->set.json || to_file;
    if (status == SDLF_OK && to_file) status = output_file_check(s->set.json);
    if (status == SDLF_OK && s->set.svg) status = output_file_check(s->set.svg);
    if (status == SDLF_OK) status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK)
        status = lab_choose_rungs(
            &s->lab, &s->machine, s->calculator,
            &(lab_rung_choice){.against = &s->set.against, .wanted = &s->set.rung, .usual = lab_usual_rivals},
            s->left_out, sizeof s->left_out);
    if (status == SDLF_OK) status = check_cases(s);
    if (status == SDLF_OK) status = sdlf_calculator_open(&s->reference, "reference", NULL);
    if (status == SDLF_OK) s->calculator->type->describe(s->calculator, s->lab.runs_on, sizeof s->lab.runs_on);
    return status;
}

/* A line on standard error that is drawn over, where that is a terminal. */
static void show_progress(const session *s, int index, const char *what)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K");
    if (what)
        fprintf(stderr, "%d of %d, %s: %s", index + 1, s->lab.workload.count, s->lab.workload.item[index].name, what);
}

static sdlf_status measure_case(session *s, int index)
{
    lab_bench *made = NULL;
    sdlf_operation operation;
    const lab_effort effort = {.repeats = (int)s->set.repeats, .seconds = s->set.seconds};
    sdlf_status status = lab_shape_operation(&s->lab.workload.item[index].shape, s->lab.dtype, &operation);
    show_progress(s, index, "what reference makes of it");
    if (status == SDLF_OK) status = lab_bench_create(&made, s->calculator, s->reference, &operation, !s->lab.unchecked);
    for (int i = 0; i < s->lab.rungs && status == SDLF_OK && interrupt_signal() == 0; i++) {
        show_progress(s, index, s->lab.rung[i].name);
        status = lab_bench_run(made, &s->lab.rung[i], &effort, &s->lab.result[index][i]);
    }
    show_progress(s, index, NULL);
    lab_bench_free(made);
    return sdlf_fail_context(status, "%s", s->lab.workload.item[index].name);
}

/* How far results may be off, in the range of the outputs; above that, a rung computes something else. */
static double error_limit(const session *s)
{
    if (s->lab.dtype == SDLF_FLOAT64) return 1e-9;
    switch ((sdlf_math)s->set.choice.math) {
    case SDLF_MATH_BF16: return 5e-2;
    case SDLF_MATH_TF32:
    case SDLF_MATH_FP16: return 1e-2;
    default: return 1e-3;
    }
}

static sdlf_status judge(const session *s)
{
    for (int i = 0; i < s->lab.rungs; i++) {
        lab_total total = lab_total_of(&s->lab, i, 0, s->lab.cases);
        if (s->lab.unchecked || total.ran == 0 || total.error <= error_limit(s)) continue; /* NaN is not */
        return sdlf_fail(SDLF_ERROR_DEVICE,
                         "%s of %s is wrong: it is off by %.1e of the range of the outputs, where %.0e is allowed",
                         s->lab.rung[i].name, s->lab.calculator, total.error, error_limit(s));
    }
    return SDLF_OK;
}

static bool print_json(FILE *file, const void *subject)
{
    return json_print(lab_json(subject), file);
}

static void print_limits(const session *s)
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

static sdlf_status bench_all(session *s, const arguments *given)
{
    sdlf_status status = open_all(s, given);
    if (status != SDLF_OK) return status;
    if (s->text) report_header(&s->out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    interrupt_waits();
    show_progress(s, 0, "what the machine can do");
    status = ceilings_measure(&s->lab.ceilings, s->calculator, s->lab.dtype, s->set.copy_size);
    show_progress(s, 0, NULL);
    if (status == SDLF_OK && s->text) print_limits(s);
    for (int i = 0; i < s->lab.workload.count && status == SDLF_OK && interrupt_signal() == 0; i++) {
        status = measure_case(s, i);
        s->lab.cases = i + 1;
        if (status == SDLF_OK && s->text) lab_print_case(&s->out, &s->lab, i);
    }
    if (status != SDLF_OK) return status;
    s->lab.interrupted = interrupt_signal() != 0;
    if (s->text) lab_print_summary(&s->out, &s->lab);
    if (s->text && s->lab.interrupted)
        printf("\nstopped by %s in convolution %d of %d; what was measured until then stands above\n",
               interrupt_signal() == SIGINT ? "Ctrl-C" : strsignal(interrupt_signal()), s->lab.cases,
               s->lab.workload.count);
    if (s->set.json) status = output_file_write(s->set.json, print_json, &s->lab);
    if (status == SDLF_OK && s->set.svg) status = lab_draw(&s->lab, s->set.svg);
    return status == SDLF_OK ? judge(s) : status;
}

static int run(int count, char **words)
{
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "bench conv",
        .synopsis = "[options]",
        .text = "Time every algorithm that a calculator has for a convolution, from the plainest on: on the "
                "convolutions of a network or an "
                "experiment, or on any one. Each row says how long it takes, how much of the machine's measured limits "
                "that is, and "
                "how far the result is from reference's. docs/convolution.md explains the algorithms.",
        .parts = parts,
        .epilogue = lab_workloads_print,
        .examples = "  sdlf bench conv --workload vgg16 --svg vgg16.svg\n"
                    "  sdlf bench conv --workload study --side 511 --json study.json\n"
                    "  sdlf bench conv --shape 1x64x56x56 --kernel 128x3x3 --padding 1\n"
                    "  sdlf bench conv --calculator cuda --math tf32 --batch 32 --workload mobilenetv2\n"
                    "  sdlf bench conv --calculator cuda --against cudnn --rung auto --rung cudnn --workload vgg16\n",
    };
    session *s = memory_allocate(sizeof *s);
    s->out = terminal_of(stdout);
    int code;
    switch (arguments_read(&given, &usage, count, words, &s->set)) {
    case ARGUMENTS_HELP: code = COMMAND_OK; goto done;
    case ARGUMENTS_WRONG: code = COMMAND_USAGE; goto done;
    case ARGUMENTS_OK: break;
    }
    code = command_conclude("bench conv", bench_all(s, &given));
    interrupt_stops(NULL);
    if (code == COMMAND_OK && interrupt_signal() != 0) code = COMMAND_SIGNAL + interrupt_signal();
    sdlf_calculator_close(s->reference);
    machine_close(&s->machine);
done:
    free(s);
    return code;
}

const bench conv_bench = {"conv", "every convolution algorithm, against reference and the machine's limits", run};
