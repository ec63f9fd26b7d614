/* SPDX-License-Identifier: MIT */
/* sdlf info: the contents of this build. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/build.h"
#include "apps/info/info.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/wrap.h"
#include "apps/system/memory.h"
#include "apps/system/portable.h"

/* The number of lines for a calculator: one for each of its devices, and one if it has none. */
static int line_count(const sdlf_calculator_class *type)
{
    int devices = type->device_count ? type->device_count() : 1;
    return devices < 1 ? 1 : devices;
}

/* A calculator's line on its device, or on why it cannot be opened. Returns false if it cannot. */
static bool describe(const char *name, int device, char *text, size_t size)
{
    sdlf_calculator *calculator = NULL;
    if (sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.device = device}) != SDLF_OK) {
        snprintf(text, size, "not here: %s", sdlf_error_message());
        return false;
    }
    snprintf(text, size, "%s", calculator->type->summary);
    if (calculator->type->describe) calculator->type->describe(calculator, text, size);
    sdlf_calculator_close(calculator);
    return true;
}

/* An entry of any registry: its name and description. */
typedef struct entry {
    const char *name, *summary;
} entry;

static entry layer_entry(int i)
{
    const sdlf_layer_class *type = sdlf_layer_class_at(i);
    return type ? (entry){type->name, type->summary} : (entry){0};
}

static entry dataset_entry(int i)
{
    const sdlf_dataset_class *type = sdlf_dataset_class_at(i);
    return type ? (entry){type->name, type->summary} : (entry){0};
}

static entry network_entry(int i)
{
    const char *name = sdlf_network_builtin_name(i);
    return name ? (entry){name, sdlf_network_builtin_summary(i)} : (entry){0};
}

static entry optimizer_entry(int i)
{
    const sdlf_optimizer_class *type = sdlf_optimizer_class_at(i);
    return type ? (entry){type->name, type->summary} : (entry){0};
}

static const struct {
    const char *heading, *key;
    entry (*at)(int index);
} registry[] = {
    {"Networks", "networks", network_entry},
    {"Data sets", "datasets", dataset_entry},
    {"Layers", "layers", layer_entry},
    {"Optimizers", "optimizers", optimizer_entry},
};
enum { REGISTRY_COUNT = sizeof registry / sizeof registry[0] };

enum { NAME_WIDTH = 22 };

static void print_heading(const terminal *out, const char *text)
{
    printf("\n%s%s%s\n", terminal_escape(out, TERMINAL_BOLD), text, terminal_escape(out, TERMINAL_PLAIN));
}

static void print_row(const terminal *out, const char *name, const char *text)
{
    int at = printf("  %-*s  ", NAME_WIDTH, name);
    wrap_print(stdout, text, at, at, out->width);
}

void info_print_build(const terminal *out, const sdlf_machine *here)
{
    char text[256];
    printf("%ssdlf %s%s\n", terminal_escape(out, TERMINAL_BOLD), SDLF_VERSION, terminal_escape(out, TERMINAL_PLAIN));
    snprintf(text, sizeof text, "%s%s%s, %s library", BUILD_TYPE, BUILD_CHECKS[0] ? " with " : "", BUILD_CHECKS,
             BUILD_LIBRARY);
    print_row(out, "build", text);
    print_row(out, "compiler", BUILD_COMPILER);
    print_row(out, "flags", BUILD_FLAGS);
    print_row(out, "CUDA", report_cuda() ? report_cuda() : "not in this build");
    snprintf(text, sizeof text, "%s, %d %s to run on", BUILD_SYSTEM, here->processors,
             here->processors == 1 ? "processor" : "processors");
    print_row(out, "machine", text);
    snprintf(text, sizeof text, "%s available (%s), of %s at most", number_bytes(here->available).text,
             here->available_by, number_bytes(here->memory).text);
    print_row(out, "memory", text);

    print_heading(out, "Calculators");
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)); i++) {
        for (int device = 0; device < line_count(type); device++) {
            char name[64];
            snprintf(name, sizeof name, type->device_count ? "%s, device %d" : "%s", type->name, device);
            describe(type->name, device, text, sizeof text);
            print_row(out, line_count(type) > 1 ? name : type->name, text);
        }
    }
    const char *other, *reason;
    for (int i = 0; (other = sdlf_calculator_unavailable(i, &reason)); i++) {
        snprintf(text, sizeof text, "not in this build: %s", reason);
        print_row(out, other, text);
    }
    for (int r = 0; r < REGISTRY_COUNT; r++) {
        print_heading(out, registry[r].heading);
        entry e;
        for (int i = 0; (e = registry[r].at(i)).name; i++) print_row(out, e.name, e.summary);
    }
    print_heading(out, "Learning-rate schedules");
    for (int i = 0; sdlf_schedule_names[i]; i++) printf("%s%s", i ? ", " : "  ", sdlf_schedule_names[i]);
    putchar('\n');
}

json_t *info_build_json(const sdlf_machine *here)
{
    json_t *calculators = json_array();
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)); i++) {
        for (int device = 0; device < line_count(type); device++) {
            char text[256];
            bool usable = describe(type->name, device, text, sizeof text);
            json_array_append_new(calculators, json_pack("{ss si so sb}", "name", type->name, "device", device,
                                                         "runs_on", json_text(text), "usable", usable));
        }
    }
    json_t *result =
        json_pack("{ss ss ss ss ss ss ss? ss si sI ss sI ss so}", "version", SDLF_VERSION, "build", BUILD_TYPE,
                  "checks", BUILD_CHECKS, "library", BUILD_LIBRARY, "compiler", BUILD_COMPILER, "flags", BUILD_FLAGS,
                  "cuda", report_cuda(), "system", BUILD_SYSTEM, "processors", here->processors, "memory",
                  (json_int_t)here->memory, "memory_by", here->memory_by, "available", (json_int_t)here->available,
                  "available_by", here->available_by, "calculators", calculators);
    for (int r = 0; r < REGISTRY_COUNT; r++) {
        json_t *names = json_array();
        entry e;
        for (int i = 0; (e = registry[r].at(i)).name; i++) json_array_append_new(names, json_string(e.name));
        json_object_set_new(result, registry[r].key, names);
    }
    json_t *schedules = json_array();
    for (int i = 0; sdlf_schedule_names[i]; i++) json_array_append_new(schedules, json_string(sdlf_schedule_names[i]));
    json_object_set_new(result, "schedules", schedules);
    return result;
}

json_t *info_version_json(void)
{
    json_t *libraries = json_array();
    char *rows = memory_copy_text(BUILD_LINKED);
    for (char *row = rows, *next; row && *row; row = next) {
        next = strchr(row, ';');
        if (next) *next++ = '\0';
        char *version = strchr(row, '|'), *licence = version ? strchr(version + 1, '|') : NULL;
        if (!licence) continue;
        *version++ = *licence++ = '\0';
        const char *asked = strcmp(row, "GNU C Library") == 0 ? system_c_library_version() : version;
        if (asked && !*asked) asked = NULL;
        json_array_append_new(libraries,
                              json_pack("{ss so so}", "name", row, "version", asked ? json_text(asked) : json_null(),
                                        "licence", *licence ? json_text(licence) : json_null()));
    }
    free(rows);
    return json_pack("{ss ss ss ss ss so}", "version", SDLF_VERSION, "licence", "MIT", "build", BUILD_TYPE, "compiler",
                     BUILD_COMPILER, "system", BUILD_SYSTEM, "libraries", libraries);
}
