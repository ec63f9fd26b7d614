/* SPDX-License-Identifier: MIT */
/* The first lines of a command's output. */
#include "apps/output/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/build.h"
#include "apps/output/number.h"
#include "apps/output/trainable.h"
#include "apps/output/wrap.h"
#include "apps/system/memory.h"

const char *report_build(void)
{
    return BUILD_CHECKS[0] ? BUILD_TYPE " build with " BUILD_CHECKS : BUILD_TYPE " build";
}

void report_label(const terminal *out, const char *label)
{
    fprintf(out->file, "%s%-6s%s ", terminal_escape(out, TERMINAL_BOLD), label, terminal_escape(out, TERMINAL_PLAIN));
}

const char *report_cuda(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)); i++) {
        if (strcmp(type->name, "cuda") == 0) return BUILD_CUDA;
    }
    return NULL;
}

void report_wrapped(const terminal *out, const char *text, int at)
{
    wrap_print(out->file, text, at, at, out->interactive ? out->width : INT_MAX);
}

void report_header(const terminal *out, sdlf_calculator *const *calculators, int count)
{
    memory_text line;
    if (!memory_text_open(&line)) memory_exhausted();
    for (int i = 0; i < count; i++) {
        bool described = !calculators[i];
        for (int j = 0; j < i; j++) described = described || calculators[j] == calculators[i];
        if (described) continue;
        char text[256] = "";
        const sdlf_calculator_class *type = calculators[i]->type;
        if (type->describe) type->describe(calculators[i], text, sizeof text);
        fprintf(line.file, "%s: %s; ", type->name, text);
    }
    fprintf(line.file, "%s%s", report_cuda() ? "" : "built without CUDA; ", report_build());
    if (!memory_text_close(&line)) memory_exhausted();
    int at = (int)strlen("sdlf " SDLF_VERSION "  ");
    fprintf(out->file, "%ssdlf %s%s  ", terminal_escape(out, TERMINAL_BOLD), SDLF_VERSION,
            terminal_escape(out, TERMINAL_PLAIN));
    report_wrapped(out, line.text, at);
    free(line.text);
}

void report_data(const terminal *out, const sdlf_dataset *train, const sdlf_dataset *test)
{
    const sdlf_dataset *any = train ? train : test;
    report_label(out, "data");
    fputs(any->name, out->file);
    if (train) fprintf(out->file, "  %s train", number_count(train->samples.shape.dim[0]).text);
    if (test) {
        if (train && strcmp(train->name, test->name) != 0) fprintf(out->file, "  %s", test->name);
        fprintf(out->file, "  %s test%s", number_count(test->samples.shape.dim[0]).text,
                test->held_out ? ", held out" : "");
    }
    bool characters = any->labels.dtype == SDLF_INT32 && any->labels.shape.rank == 2;
    bool as_are = any->mean == 0 && any->scale == 1 && any->channels.count == 0 && !characters;
    fprintf(out->file, "  %s%s\n", sdlf_shape_print(sdlf_shape_without(any->samples.shape, 0)).text,
            as_are ? " as they are" : "");
}

void report_note(const terminal *out, const char *text)
{
    fputs(terminal_escape(out, TERMINAL_DIM), out->file);
    wrap_print(out->file, text, 0, 2, out->width < 100 ? out->width : 100);
    fputs(terminal_escape(out, TERMINAL_PLAIN), out->file);
}

sdlf_cost report_plan_cost(const sdlf_plan *plan)
{
    sdlf_cost total = {0};
    for (int i = 0; i < sdlf_plan_layer_count(plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        total.flops += info.forward_cost.flops + info.backward_cost.flops;
        total.bytes += info.forward_cost.bytes + info.backward_cost.bytes;
    }
    return total;
}

void report_network(const terminal *out, const report_subject *subject)
{
    char memory[160];
    report_label(out, "net");
    int64_t trained = sdlf_model_trainable_count(subject->model), total = trainable_total(subject->model);
    int at = 7 + fprintf(out->file, "%s  %s parameters", sdlf_model_name(subject->model), number_count(total).text);
    if (trained != total) at += fprintf(out->file, ", %s of them trained", number_count(trained).text);
    if (!subject->plan) {
        fprintf(out->file, "%s\n", subject->note);
        return;
    }
    double flops = (double)report_plan_cost(subject->plan).flops / (double)subject->batch;
    at += fprintf(out->file, "  %s a sample%s", number_scaled(flops, "FLOP").text,
                  subject->mode == SDLF_TRAIN ? ", trained" : "");
    int length = snprintf(memory, sizeof memory, "memory %s%s", number_bytes(subject->memory).text, subject->note);
    bool narrow = out->interactive && at + 2 + length > out->width;
    fprintf(out->file, "%s%s\n", narrow ? "\n       " : "  ", memory);
}
