/* SPDX-License-Identifier: MIT */
/* The results of `sdlf bench kernels`, as a table and as JSON. */
#include <math.h>
#include <stdio.h>

#include <sdlf/version.h>

#include "apps/bench/kernels/kernels.h"
#include "apps/output/number.h"
#include "apps/output/table.h"
#include "apps/system/interrupt.h"
#include "framework/sort.h"

static const double low_share = 0.6,
                    long_seconds = 2e-5; /* lists kernels below the first that take longer than the second */

static double share_of(const kernel_report *report, const kernel_result *r)
{
    return ceilings_floor(&report->ceilings, r->cost) / r->time.seconds;
}

static bool by_arithmetic(const kernel_report *report, const kernel_result *r)
{
    return (double)r->cost.flops / report->ceilings.flops > (double)r->cost.bytes / report->ceilings.bytes;
}

static const char *kind_of(const kernel_result *r)
{
    return sdlf_operation_type(&r->row->operation)->name;
}

static void print_row(table *t, const kernel_report *report, const kernel_result *r, const kernel_result *before)
{
    bool same = before != NULL && before->row == r->row;
    table_cell(t, "%s", same ? "" : kind_of(r));
    table_cell(t, "%s", same ? "" : r->row->text);
    table_cell(t, "%s%s", r->algorithm ? r->algorithm : "", r->algorithm && r->automatic && r->row->every ? " *" : "");
    if (!r->time.ran) {
        table_cell(t, "-");
        for (int i = 0; i < 3; i++) table_cell(t, "%s", "");
        table_cell(t, "%s", r->time.why);
        return;
    }
    table_cell(t, "%s", number_three(1e6 * r->time.seconds).text);
    table_cell(t, "%s", number_three(1e-9 * (double)r->cost.flops / r->time.seconds).text);
    table_cell(t, "%s", number_three(1e-9 * (double)r->cost.bytes / r->time.seconds).text);
    table_cell(t, "%s", number_percent(share_of(report, r), 0).text);
    table_cell(t, "%s", by_arithmetic(report, r) ? "FLOPs" : "bytes");
}

/* Summarises the choices of auto: their number, the median share of the limit, and those far from it. */
static void print_summary(const terminal *out, const kernel_report *report)
{
    double share[KERNEL_RESULTS];
    int count = 0, low = 0;
    for (int i = 0; i < report->count; i++) {
        const kernel_result *r = &report->result[i];
        if (!r->time.ran || !r->automatic) continue;
        share[count++] = share_of(report, r);
        low += share[count - 1] < low_share && r->time.seconds > long_seconds;
    }
    if (count == 0) return;
    sdlf_sort_doubles(share, (size_t)count);
    fprintf(
        out->file,
        "\n%d kernel%s by themselves (*: chosen by auto); half of them reach %s of their limit or more.\n%d take more "
        "than %s and stay below %s of it%s\n",
        count, count == 1 ? "" : "s", number_percent(share[count / 2], 0).text, low, number_duration(long_seconds).text,
        number_percent(low_share, 0).text, low > 0 ? ":" : ".");
    for (int i = 0; i < report->count; i++) {
        const kernel_result *r = &report->result[i];
        if (r->time.ran && r->automatic && r->time.seconds > long_seconds && share_of(report, r) < low_share)
            fprintf(out->file, "  %4s  %s, %s\n", number_percent(share_of(report, r), 0).text, kind_of(r),
                    r->row->text);
    }
}

void kernel_report_print(const terminal *out, const kernel_report *report)
{
    table *t = table_create("kernel|operands|algorithm|>us|>GFLOP/s|->GB/s|>of limit|limit");
    for (int i = 0; i < report->count; i++) print_row(t, report, &report->result[i], i ? &report->result[i - 1] : NULL);
    fprintf(out->file, "\n");
    if (report->count > 0) table_print(t, out, 0);
    table_free(t);
    print_summary(out, report);
    if (report->missing > 0)
        fprintf(out->file, "%d row%s: %s has no kernel for %s in %s.\n", report->missing,
                report->missing == 1 ? "" : "s", report->calculator, report->missing == 1 ? "it" : "them",
                sdlf_dtype_name(report->dtype));
}

static json_t *result_json(const kernel_report *report, const kernel_result *r)
{
    json_t *json = json_pack("{ss ss so sb sb}", "kernel", kind_of(r), "operands", r->row->text, "algorithm",
                             json_text(r->algorithm), "automatic", r->automatic, "ran", r->time.ran);
    if (!r->time.ran) {
        json_object_set_new(json, "why", json_text(r->time.why));
        return json;
    }
    json_object_set_new(json, "seconds", json_number(r->time.seconds));
    json_object_set_new(json, "quarters",
                        json_pack("[o, o]", json_number(r->time.quarter[0]), json_number(r->time.quarter[1])));
    json_object_set_new(json, "flops", json_integer((json_int_t)r->cost.flops));
    json_object_set_new(json, "bytes", json_integer((json_int_t)r->cost.bytes));
    json_object_set_new(json, "flops_per_second", json_number((double)r->cost.flops / r->time.seconds));
    json_object_set_new(json, "bytes_per_second", json_number((double)r->cost.bytes / r->time.seconds));
    json_object_set_new(json, "limit", json_string(by_arithmetic(report, r) ? "flops" : "bytes"));
    json_object_set_new(json, "of_limit", json_number(share_of(report, r)));
    return json;
}

json_t *kernel_report_json(const kernel_report *report)
{
    json_t *kernels = json_array();
    for (int i = 0; i < report->count; i++) json_array_append_new(kernels, result_json(report, &report->result[i]));
    return json_pack("{ss ss so ss ss sb s{so so} so}", "version", SDLF_VERSION, "calculator", report->calculator,
                     "runs_on", json_text(report->runs_on), "math", report->math, "dtype",
                     sdlf_dtype_name(report->dtype), "interrupted", interrupt_signal() != 0, "limits",
                     "flops_per_second", json_number(report->ceilings.flops), "bytes_per_second",
                     json_number(report->ceilings.bytes), "kernels", kernels);
}
