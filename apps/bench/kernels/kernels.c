/* SPDX-License-Identifier: MIT */
/* sdlf bench kernels: times every kernel of a calculator alone, and compares it with the machine's limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>
#include <sdlf/suggest.h>

#include "apps/arguments/arguments.h"
#include "apps/bench/bench.h"
#include "apps/bench/kernels/kernels.h"
#include "apps/command.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/output/stream.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

typedef struct settings {
    int dtype;
    int64_t elements, repeats, copy_size;
    argument_list operation;
    double seconds;
    const char *calculator, *json;
    machine_choice choice;
} settings;

static const argument what_arguments[] = {
    {.name = "What is run", .type = ARGUMENT_HEADING},
    {"operation", ARGUMENT_LIST, offsetof(settings, operation), "NAME",
     .help = "only this kind of operation; may be repeated (default: all)"},
    {"elements", ARGUMENT_INT, offsetof(settings, elements), "N", .minimum = 1024, .maximum = 1 << 30,
     .fallback = "33554432", .help = "elements of a large tensor; other sizes follow from it"},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "floating-point element type"},
    {.name = "Who computes, for how long", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "whose kernels are timed"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 31, .fallback = "15",
     .help = "samples, whose median is taken"},
    {"seconds", ARGUMENT_FLOAT, offsetof(settings, seconds), "S", .minimum = 0, .maximum = 3600, .above = true,
     .fallback = "0.1", .help = "stop sampling a kernel after S seconds"},
    {"copy-size", ARGUMENT_SIZE, offsetof(settings, copy_size), "BYTES", .minimum = 4096, .maximum = 1e12,
     .fallback = "256MB", .help = "size of the copy that measures memory bandwidth"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"json", ARGUMENT_TEXT, offsetof(settings, json), "FILE", .standard = ARGUMENT_STANDARD_OUTPUT, .alone = "-",
     .help = "print JSON; with FILE, write it there beside the table"},
    {0},
};

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator;
    terminal out;
    bool text; /* print the table */
    kernel_rows rows;
    kernel_report report;
} session;

static bool is_wanted(const session *s, const char *kind)
{
    const argument_list *wanted = &s->set.operation;
    for (int i = 0; i < wanted->count; i++) {
        if (strcmp(wanted->item[i], kind) == 0) return true;
    }
    return wanted->count == 0;
}

/* The name of each kind of operation, then of each fusion; NULL past the end. */
static const char *operation_name(int index)
{
    if (index < SDLF_OPERATION_COUNT) return sdlf_operation_class_of((sdlf_operation_kind)index)->name;
    const sdlf_fusion *fusion = sdlf_fusion_at(index - SDLF_OPERATION_COUNT);
    return fusion != NULL ? fusion->type.name : NULL;
}

static sdlf_status check_operations(const session *s)
{
    const argument_list *wanted = &s->set.operation;
    for (int i = 0; i < wanted->count; i++) {
        sdlf_suggestion near = {.word = wanted->item[i]};
        bool known = false;
        const char *name;
        for (int index = 0; (name = operation_name(index)) != NULL; index++) {
            known = known || strcmp(name, wanted->item[i]) == 0;
            sdlf_suggest(&near, name);
        }
        if (!known)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--operation %s: there is no such kind of operation%s",
                             wanted->item[i], sdlf_suggestion_print(&near).text);
    }
    return SDLF_OK;
}

static sdlf_status open_all(session *s)
{
    const settings *set = &s->set;
    kernel_report *report = &s->report;
    s->machine.choice = set->choice;
    report->dtype = set->dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    report->math = sdlf_math_name((sdlf_math)set->choice.math);
    report->calculator = set->calculator;
    s->text = !set->json || !output_is_standard(set->json);
    sdlf_status status = check_operations(s);
    if (status == SDLF_OK && set->json) status = output_stream_check(set->json);
    if (status == SDLF_OK) status = machine_open(&s->machine, set->calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK) status = machine_check_memory(&s->machine, 2 * set->copy_size, "a smaller --copy-size");
    if (status == SDLF_OK) s->calculator->type->describe(s->calculator, report->runs_on, sizeof report->runs_on);
    kernel_rows_make(&s->rows, report->dtype, set->elements);
    return status;
}

/* True if this algorithm is measured: auto if it does not report its choice; of the others, those that auto may
 * choose. */
static bool is_measured(const sdlf_kernel_slot *slot, const kernel_row *row, int algorithm)
{
    if (!slot->algorithms || !row->every) return algorithm == 0;
    if (algorithm == 0) return !slot->automatic;
    return !slot->notes || !slot->notes[algorithm].on_request;
}

static sdlf_status measure_row(session *s, const kernel_row *row)
{
    kernel_report *report = &s->report;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(s->calculator, &row->operation);
    const lab_effort effort = {.repeats = (int)s->set.repeats, .seconds = s->set.seconds};
    int before = report->count;
    sdlf_status status = SDLF_OK;
    status_line_show("%s, %s", sdlf_operation_type(&row->operation)->name, row->text);
    for (int a = 0; (a == 0 || (slot->algorithms && slot->algorithms[a])) && status == SDLF_OK; a++) {
        if (interrupt_signal() != 0) break;
        kernel_result *result = &report->result[report->count];
        if (!slot->run || !is_measured(slot, row, a) || report->count == KERNEL_RESULTS) continue;
        status = kernel_measure(result, s->calculator, row, a, &effort);
        if (result->time.ran || result->time.why[0] != '\0') report->count++;
    }
    status_line_clear();
    if (report->count == before && interrupt_signal() == 0) report->missing++;
    return sdlf_fail_context(status, "%s", sdlf_operation_type(&row->operation)->name);
}

static bool print_json(FILE *file, const void *subject)
{
    return json_print(kernel_report_json(subject), file);
}

static sdlf_status bench_all(session *s)
{
    sdlf_status status = open_all(s);
    if (status != SDLF_OK) return status;
    if (s->text) report_header(&s->out, s->machine.calculator, s->machine.count);
    fflush(stdout);
    interrupt_waits();
    const ceilings *limit = &s->report.ceilings;
    status_line_show("the machine's limits");
    status = ceilings_measure(&s->report.ceilings, s->calculator, s->report.dtype, s->set.copy_size);
    status_line_clear();
    if (status == SDLF_OK && s->text) {
        report_label(&s->out, "limits");
        printf("%s in a product of %sx%s, %s in a copy of %s\n", number_scaled(limit->flops, "FLOP/s").text,
               number_count(limit->side).text, number_count(limit->side).text, number_scaled(limit->bytes, "B/s").text,
               number_bytes(limit->copy_bytes).text);
        fflush(stdout);
    }
    for (int i = 0; i < s->rows.count && status == SDLF_OK && interrupt_signal() == 0; i++) {
        const kernel_row *row = &s->rows.row[i];
        if (is_wanted(s, sdlf_operation_type(&row->operation)->name)) status = measure_row(s, row);
    }
    if (status != SDLF_OK) return status;
    if (s->text) kernel_report_print(&s->out, &s->report);
    if (interrupt_signal() != 0) {
        if (s->text) putchar('\n');
        interrupt_say(s->text, "; %s", s->report.count > 0 ? "what was measured is above" : "nothing was measured");
    }
    return s->set.json ? output_file_write(s->set.json, print_json, &s->report) : SDLF_OK;
}

static int run(int count, char **words)
{
    arguments given;
    static const argument_part parts[] = {
        {what_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "bench kernels",
        .synopsis = "[options]",
        .text =
            "Time every kernel of a calculator by itself, at typical large sizes: each kind of operation, forward and "
            "backward, and every algorithm of matrix products and convolutions. A row gives the time, the FLOP/s and "
            "bytes per second by what the operation needs, and their share of the machine's limit, which is measured "
            "first. Short kernels are repeated in one recording, where the calculator records.",
        .parts = parts,
        .examples = "  sdlf bench kernels --calculator cuda --json kernels.json\n"
                    "  sdlf bench kernels --calculator cuda --math bf16 --operation gemm --operation conv2d_forward\n"
                    "  sdlf bench kernels --threads 2 --elements 1048576\n",
    };
    session *s = memory_allocate(sizeof *s);
    s->out = terminal_of(stdout);
    int code;
    switch (arguments_read(&given, &usage, count, words, &s->set)) {
    case ARGUMENTS_HELP: code = COMMAND_OK; goto done;
    case ARGUMENTS_WRONG: code = COMMAND_USAGE; goto done;
    case ARGUMENTS_OK: break;
    }
    code = command_conclude("bench kernels", bench_all(s));
    interrupt_stops(NULL);
    machine_close(&s->machine);
done:
    free(s);
    return code;
}

const bench kernels_bench = {"kernels", "every kernel of a calculator, beside the machine's limits", run};
