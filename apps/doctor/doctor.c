/* SPDX-License-Identifier: MIT */
/* sdlf doctor: shows the contents of an ONNX file, and whether it would run. Nothing is allocated for its weights. */
#include "apps/doctor/doctor.h"

#include <stdio.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/file_type.h"
#include "apps/system/machine.h"

static const char *const dtype_names[] = {"float32", "float64", NULL};

typedef struct settings {
    onnx_settings onnx;
    int dtype;
    bool nodes, json;
} settings;

static const argument doctor_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"dtype", ARGUMENT_CHOICE, offsetof(settings, dtype), "TYPE", .choices = dtype_names, .fallback = "float32",
     .help = "the floating-point type that it would run in"},
    {"nodes", ARGUMENT_FLAG, offsetof(settings, nodes), .help = "list every node, not only every kind"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON, with every node"},
    {0},
};

static void add_cost(doctor_calculator *entry, const sdlf_plan *plan)
{
    for (int i = 0; i < sdlf_plan_layer_count(plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        entry->cost.flops += info.forward_cost.flops;
        entry->cost.bytes += info.forward_cost.bytes;
    }
}

int64_t doctor_memory(const doctor_calculator *entry)
{
    return entry->memory.arena + entry->memory.parameters + entry->memory.output;
}

/* Checks whether the model would run there: outlines a plan, which decides everything and allocates nothing for the
 * network. Running out of host memory is no result: SDLF_ERROR_MEMORY. A device may be full because others use it. */
static sdlf_status try_calculator(doctor *d, doctor_calculator *entry)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_calculator_open(&calculator, entry->name, NULL);
    bool device_is_full = status == SDLF_ERROR_MEMORY && entry->is_device;
    entry->here = status == SDLF_OK;
    if (status == SDLF_OK)
        status = sdlf_plan_outline(&plan, d->report->model,
                                   &(sdlf_plan_options){.batch = 1, .forward = calculator, .dtype = d->dtype});
    entry->planned = status == SDLF_OK;
    if (status == SDLF_OK) {
        const machine alone = {.calculator = {calculator}, .count = 1};
        entry->memory = sdlf_plan_memory(plan);
        add_cost(entry, plan);
        status = machine_check_memory(&alone, doctor_memory(entry), "a smaller --batch or --dim");
    }
    entry->runs = status == SDLF_OK;
    if (status != SDLF_OK) {
        snprintf(entry->reason, sizeof entry->reason, "%s", sdlf_error_message());
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    return status == SDLF_ERROR_MEMORY && !entry->planned && !device_is_full ? status : SDLF_OK;
}

/* The error if no calculator runs it. If one lacks only memory, that is the reason given. */
static sdlf_status fail_everywhere(const doctor *d)
{
    for (int i = 0; i < d->calculator_count; i++)
        if (d->calculator[i].planned) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: %s", d->path, d->calculator[i].reason);
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: no calculator of this build runs it", d->path);
}

static sdlf_status examine(const settings *set, onnx_settings *onnx, const char *path, const terminal *out)
{
    sdlf_onnx_options options;
    sdlf_onnx_report *report = NULL;
    if (file_type_of(path) == FILE_TYPE_SAFETENSORS)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: expected an ONNX file, found safetensors; 'sdlf info --weights FILE' lists its network, "
                         "'sdlf export' writes it as ONNX",
                         path);
    sdlf_machine here;
    sdlf_status status = onnx_settings_complete(onnx, &options);
    if (status == SDLF_OK) status = sdlf_machine_look(&here);
    if (status == SDLF_OK) status = sdlf_onnx_inspect(&report, path, &options);
    if (status != SDLF_OK) return status;
    doctor d = {.path = path,
                .report = report,
                .dtype = set->dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32,
                .machine = here,
                .every_node = set->nodes};
    const sdlf_calculator_class *type;
    bool runs = false;
    for (int i = 0; status == SDLF_OK && (type = sdlf_calculator_class_at(i)) && i < DOCTOR_CALCULATORS; i++) {
        doctor_calculator *entry = &d.calculator[d.calculator_count++];
        *entry = (doctor_calculator){.name = type->name,
                                     .is_device = type->device_count != NULL && type->device_count() > 0};
        if (report->model != NULL) status = try_calculator(&d, entry);
        runs = runs || entry->runs;
    }
    if (status == SDLF_OK && set->json) status = json_print_result(doctor_json(&d));
    if (status == SDLF_OK && !set->json) doctor_print(&d, out);
    if (status == SDLF_OK && report->status != SDLF_OK)
        status = sdlf_fail(report->status, "%s", report->message);
    else if (status == SDLF_OK && !runs)
        status = fail_everywhere(&d);
    sdlf_onnx_report_free(report);
    return status;
}

static int run(int count, char **words)
{
    settings set = {.dtype = 0};
    arguments given;
    static const argument_part parts[] = {{doctor_arguments, 0}, {onnx_arguments, offsetof(settings, onnx)}, {0}};
    static const command_usage usage = {
        .command = "doctor",
        .synopsis = "[options] MODEL.onnx",
        .text =
            "Describe an ONNX model: its operators, with shapes; what cannot be run, and why; what a run costs, and "
            "which calculators can run it. Nothing is run. The exit status is 0 if the model can be run.",
        .parts = parts,
        .operands_minimum = 1,
        .operands_maximum = 1,
        .operand_name = "an ONNX file",
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf doctor mobilenetv2.onnx\n"
                    "  sdlf doctor --dim height=224 --dim width=224 --json model.onnx\n",
    };
    switch (arguments_read(&given, &usage, count, words, &set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    terminal out = terminal_of(stdout);
    sdlf_status status = examine(&set, &set.onnx, given.operand[0], &out);
    onnx_settings_release(&set.onnx);
    return command_conclude("doctor", status);
}

const command doctor_command = {
    .name = "doctor", .summary = "describe an ONNX model, and say whether it can run", .run = run};
