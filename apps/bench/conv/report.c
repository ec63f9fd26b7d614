/* SPDX-License-Identifier: MIT */
/* The results of the convolution lab, as tables. */
#include "apps/bench/conv/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

double lab_floor(const lab *l, int index)
{
    return ceilings_floor(&l->ceilings, l->cost[index]);
}

lab_total lab_total_of(const lab *l, int rung, int first, int last)
{
    lab_total total = {0};
    for (int i = first; i < last; i++) {
        const lab_result *r = &l->result[i][rung];
        int count = l->workload.item[i].count;
        total.asked += count;
        if (!r->ran) continue;
        total.ran += count;
        total.seconds += count * r->seconds;
        total.floor += count * lab_floor(l, i);
        total.cost.flops += count * l->cost[i].flops;
        total.cost.bytes += count * l->cost[i].bytes;
        total.work.flops += count * r->work.flops;
        total.work.bytes += count * r->work.bytes;
        total.error = total.error >= r->error ? total.error : r->error; /* NaN stays */
    }
    return total;
}

int lab_base(const lab *l)
{
    int base = 0, most = 0;
    for (int i = 0; i < l->rungs; i++) {
        int ran = lab_total_of(l, i, 0, l->cases).ran;
        if (ran <= most) continue;
        most = ran;
        base = i;
    }
    return base;
}

int lab_case_base(const lab *l, int index)
{
    int base = 0;
    while (base < l->rungs && !l->result[index][base].ran) base++;
    return base < l->rungs ? base : -1;
}

double lab_seconds_beside(const lab *l, int base, int rung)
{
    double seconds = 0;
    for (int i = 0; i < l->cases; i++) {
        if (!l->result[i][rung].ran) continue;
        if (!l->result[i][base].ran) return NAN;
        seconds += l->workload.item[i].count * l->result[i][base].seconds;
    }
    return seconds;
}

bool lab_is_automatic(const lab *l, int rung)
{
    return l->rung[rung].algorithm == 0 && !l->rung[rung].rival && l->rungs > 1;
}

int lab_automatic(const lab *l)
{
    for (int i = 0; i < l->rungs; i++) {
        if (lab_is_automatic(l, i)) return i;
    }
    return -1;
}

int lab_rival(const lab *l)
{
    for (int i = 0; i < l->rungs; i++) {
        if (l->rung[i].rival) return i;
    }
    return -1;
}

int lab_row_end(const lab *l, int first)
{
    int end = first + 1;
    while (end < l->cases && strcmp(l->workload.item[end].row, l->workload.item[first].row) == 0) end++;
    return end;
}

static number_text error_text(double error)
{
    number_text text;
    snprintf(text.text, sizeof text.text, isnan(error) ? "NaN" : error == 0 ? "0" : "%.0e", error);
    return text;
}

static void print_result(table *t, const lab *l, int index, int rung, double unit)
{
    const lab_result *r = &l->result[index][rung];
    const sdlf_cost *cost = &l->cost[index];
    if (!r->ran && r->why[0] == '\0') return; /* interrupted before */
    table_cell(t, "%s%s%s", l->rung[rung].name, r->taken ? ": " : "", r->taken ? r->taken : "");
    if (!r->ran) {
        table_cell(t, "-");
        for (int i = 0; i < 8; i++) table_cell(t, "%s", "");
        table_cell(t, "%s", r->why);
        return;
    }
    double spread = (r->quarter[1] - r->quarter[0]) / 2 / r->seconds;
    table_cell(t, "%s", number_fixed(r->seconds / unit, 3).text);
    table_cell(t, "%s%s", r->samples > 3 ? "+-" : "", r->samples > 3 ? number_percent(spread, 0).text : "");
    table_cell(t, "%s", number_three(1e-9 * (double)cost->flops / r->seconds).text);
    table_cell(t, "%s", number_fixed((double)r->work.flops / (double)cost->flops, 2).text);
    table_cell(t, "%s", number_three(1e-9 * (double)r->work.bytes / r->seconds).text);
    table_cell(t, "%s", number_fixed((double)r->work.bytes / (double)cost->bytes, 2).text);
    table_cell(t, "%s", number_percent(lab_floor(l, index) / r->seconds, 0).text);
    table_cell(t, "%s", number_three(l->result[index][lab_case_base(l, index)].seconds / r->seconds).text);
    table_cell(t, "%s", l->unchecked ? "-" : error_text(r->error).text);
    table_cell(t, "%s%s%s", r->channels_last ? "channels last" : "", r->channels_last && r->prepared > 0 ? ", " : "",
               r->prepared > 0 ? "weights ready" : "");
}

void lab_print_case(const terminal *out, const lab *l, int index)
{
    const lab_case *item = &l->workload.item[index];
    const sdlf_cost *cost = &l->cost[index];
    double fastest = INFINITY, compute = (double)cost->flops / l->ceilings.flops;
    bool memory = compute < lab_floor(l, index);
    for (int i = 0; i < l->rungs; i++) {
        if (l->result[index][i].ran) fastest = fmin(fastest, l->result[index][i].seconds);
    }
    bool small = fastest < 1e-4;
    fprintf(out->file, "\n%s%s%s  %s", terminal_escape(out, TERMINAL_BOLD), item->name,
            terminal_escape(out, TERMINAL_PLAIN), lab_shape_print(&item->shape).text);
    if (item->count > 1) fprintf(out->file, "  (%d layers)", item->count);
    fprintf(out->file, "\n  %s, %s at least, %.3g FLOP a byte: floor %s, for its %s\n",
            number_scaled((double)cost->flops, "FLOP").text, number_bytes(cost->bytes).text,
            (double)cost->flops / (double)cost->bytes, number_duration(lab_floor(l, index)).text,
            memory ? "bytes" : "FLOPs");
    table *t = table_create(small ? "rung|>us|->spread|>GFLOP/s|->work|->GB/s|->moved|>of floor|>speed-up|>error|"
                                  : "rung|>ms|->spread|>GFLOP/s|->work|->GB/s|->moved|>of floor|>speed-up|>error|");
    for (int i = 0; i < l->rungs; i++) print_result(t, l, index, i, small ? 1e-6 : 1e-3);
    table_print(t, out, 4);
    table_free(t);
    fflush(out->file);
}

/* The time unit of the summary: microseconds if a row takes less than a tenth of a millisecond, and none takes a
 * second. */
static double summary_unit(const lab *l)
{
    double least = INFINITY, most = 0;
    for (int first = 0, end; first < l->cases; first = end) {
        end = lab_row_end(l, first);
        for (int i = 0; i < l->rungs; i++) {
            lab_total total = lab_total_of(l, i, first, end);
            if (total.ran == 0) continue;
            least = fmin(least, total.seconds);
            most = fmax(most, total.seconds);
        }
    }
    return least < 1e-4 && most < 1 ? 1e-6 : 1e-3;
}

/* "auto" is one of the other rungs, and its time differs from that one's only by noise. But over several convolutions
 * it may choose different rungs, or one that was left out: then it is clearly faster than each. */
static const double clearly = 0.9;

/* Prints a row for each convolution and a column for each rung. */
static void print_matrix(const terminal *out, const lab *l)
{
    int own = lab_automatic(l), rival = lab_rival(l);
    bool compares = own >= 0 && rival >= 0;
    double unit = summary_unit(l);
    char headings[1024];
    size_t used = (size_t)snprintf(headings, sizeof headings, "%s|>layers", unit < 1e-3 ? "us" : "ms");
    for (int i = 0; i < l->rungs && used < sizeof headings; i++) {
        used += (size_t)snprintf(headings + used, sizeof headings - used, "|>%s", l->rung[i].name);
    }
    if (used < sizeof headings) used += (size_t)snprintf(headings + used, sizeof headings - used, "|fastest");
    if (compares && used < sizeof headings)
        snprintf(headings + used, sizeof headings - used, "|>auto beside %s", l->rung[rival].name);
    table *t = table_create(headings);
    for (int first = 0, end; first < l->cases; first = end) {
        end = lab_row_end(l, first);
        int best = -1, layers = 0;
        double seconds = INFINITY, of[2] = {NAN, NAN}; /* of auto and of the rival */
        for (int i = first; i < end; i++) layers += l->workload.item[i].count;
        table_cell(t, "%s", l->workload.item[first].row);
        table_cell(t, "%d", layers);
        for (int i = 0; i < l->rungs; i++) {
            lab_total total = lab_total_of(l, i, first, end);
            bool all = total.ran == total.asked;
            table_cell(t, "%s", all ? number_three(total.seconds / unit).text : "-");
            if (all && (i == own || i == rival)) of[i == rival] = total.seconds;
            if (!all || total.seconds >= seconds || lab_is_automatic(l, i)) continue;
            seconds = total.seconds;
            best = i;
        }
        if (of[0] < clearly * seconds) best = own;
        table_cell(t, "%s", best >= 0 ? l->rung[best].name : "");
        if (compares) table_cell(t, "%s", isnan(of[1] / of[0]) ? "" : number_three(of[1] / of[0]).text);
    }
    fprintf(out->file, "\n%s%s%s  ", terminal_escape(out, TERMINAL_BOLD), l->workload.name,
            terminal_escape(out, TERMINAL_PLAIN));
    report_wrapped(out, l->workload.about, (int)strlen(l->workload.name) + 2);
    table_print(t, out, 2);
    table_free(t);
}

/* Prints a row for each rung: all that it ran, in microseconds if a rung takes less than a tenth of a millisecond. */
static void print_totals(const terminal *out, const lab *l)
{
    double fastest = INFINITY;
    for (int i = 0; i < l->rungs; i++) {
        lab_total total = lab_total_of(l, i, 0, l->cases);
        if (total.ran > 0) fastest = fmin(fastest, total.seconds);
    }
    bool small = fastest < 1e-4;
    table *t = table_create(small ? "rung|>layers|>us|>GFLOP/s|>of floor|>speed-up|>largest error|-how"
                                  : "rung|>layers|>ms|>GFLOP/s|>of floor|>speed-up|>largest error|-how");
    for (int i = 0; i < l->rungs; i++) {
        lab_total total = lab_total_of(l, i, 0, l->cases);
        double base = lab_seconds_beside(l, lab_base(l), i);
        bool ran = total.ran > 0;
        table_cell(t, "%s", l->rung[i].name);
        table_cell(t, "%d of %d", total.ran, total.asked);
        table_cell(t, "%s", ran ? number_three((small ? 1e6 : 1e3) * total.seconds).text : "-");
        table_cell(t, "%s", ran ? number_three(1e-9 * (double)total.cost.flops / total.seconds).text : "");
        table_cell(t, "%s", ran ? number_percent(total.floor / total.seconds, 0).text : "");
        table_cell(t, "%s", ran && !isnan(base) ? number_three(base / total.seconds).text : "");
        table_cell(t, "%s", ran && !l->unchecked ? error_text(total.error).text : "");
        table_cell(t, "%s", l->rung[i].summary);
    }
    fputc('\n', out->file);
    table_print(t, out, 2);
    table_free(t);
}

void lab_print_summary(const terminal *out, const lab *l)
{
    enum { WIDE = 96 };
    static const char notes[] =
        "GFLOP/s: the convolution's own, whatever a rung computes; work: what the rung computes, for each FLOP of the "
        "convolution. "
        "GB/s and moved: all that the rung moves, arrays of its own written and read, for each byte of the operands; a "
        "cache may catch some. of floor: the share of its time that the convolution's FLOPs or bytes, whichever take "
        "longer, need at the limits above. speed-up: against the first rung that ran, in the totals "
        "against the first of those that ran most. error: the largest difference from "
        "reference, "
        "in the range of its outputs. spread: half of the runs lie within. weights ready, channels last: what "
        "inference "
        "plans arrange beforehand for such rungs, and is not in the time.";
    if (l->cases == 0) return;
    if (l->workload.count > 1) print_matrix(out, l);
    print_totals(out, l);
    fputc('\n', out->file);
    report_note(out, notes);
    if (out->interactive && out->width < WIDE) report_note(out, "This terminal is too narrow for some of the columns.");
}
