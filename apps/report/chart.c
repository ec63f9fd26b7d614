/* SPDX-License-Identifier: MIT */
/* See chart.h. */
#include "apps/report/chart.h"

#include <math.h>
#include <stdlib.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/system/memory.h"

enum { WIDTH = 520, HEIGHT = 300, LEFT = 64, RIGHT = 14, TOP = 34, BOTTOM = 44, POINTS = 400, MARKED = 60 };

typedef struct range {
    double least, greatest, step;
} range;

chart_line *chart_add(chart *c, const char *name, int colour, bool dashed)
{
    c->line = memory_resize(c->line, (size_t)(c->count + 1) * sizeof *c->line);
    c->line[c->count] = (chart_line){.name = memory_copy_text(name), .colour = colour, .dashed = dashed};
    return &c->line[c->count++];
}

void chart_point(chart_line *line, double x, double y)
{
    if (line->count == line->capacity) {
        line->capacity = 2 * line->capacity + 16;
        line->x = memory_resize(line->x, (size_t)line->capacity * sizeof *line->x);
        line->y = memory_resize(line->y, (size_t)line->capacity * sizeof *line->y);
    }
    line->x[line->count] = x;
    line->y[line->count++] = y;
}

void chart_release(chart *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->line[i].name);
        free(c->line[i].x);
        free(c->line[i].y);
    }
    free(c->line);
    *c = (chart){.title = NULL};
}

double chart_step(double span, int count)
{
    double raw = span / count, power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* Widens the range around a single value. */
static void widen(range *r, bool whole, bool percent)
{
    double room = whole ? 1 : percent ? 0.1 : fmax(fabs(r->least), 1e-9) * 0.1;
    r->least -= room;
    r->greatest += room;
    if (percent) r->least = fmax(r->least, 0);
}

static range range_of(const chart *c, bool up, int ticks)
{
    range r = {.least = INFINITY, .greatest = -INFINITY};
    bool whole = !up; /* epochs: only integer ticks */
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->line[i].count; k++) {
            double x = up ? c->line[i].y[k] : c->line[i].x[k];
            if (!isfinite(x)) continue;
            r.least = fmin(r.least, x);
            r.greatest = fmax(r.greatest, x);
            whole = whole && x == floor(x);
        }
    if (r.least > r.greatest) return r;
    if (r.greatest == r.least) widen(&r, whole, c->percent && up);
    r.step = chart_step(r.greatest - r.least, ticks);
    if (whole) r.step = fmax(r.step, 1);
    r.least = floor(r.least / r.step + 1e-9) * r.step;
    r.greatest = ceil(r.greatest / r.step - 1e-9) * r.step;
    if (c->percent && up) r.greatest = fmin(r.greatest, 1);
    return r;
}

static double across(const range *r, double x)
{
    return LEFT + (x - r->least) / (r->greatest - r->least) * (WIDTH - LEFT - RIGHT);
}

static double down(const range *r, double y)
{
    return HEIGHT - BOTTOM - (y - r->least) / (r->greatest - r->least) * (HEIGHT - TOP - BOTTOM);
}

/* Prints as many digits as distinguish it from the next tick. */
static void print_value(FILE *file, const chart *c, double value, double step, bool up)
{
    if (up && c->percent)
        fputs(number_percent(value, (int)fmax(0, ceil(-log10(100 * step) - 1e-9))).text, file);
    else if (value != 0 && (fabs(value) >= 1e7 || fabs(value) < 1e-3))
        fprintf(file, "%.*g", (int)fmax(2, 1 + ceil(log10(fabs(value) / step))), value);
    else if (fabs(value) >= 1000 && step >= 1)
        fputs(number_fixed(value, 0).text, file);
    else
        fprintf(file, "%.6g", value);
}

/* The i-th tick, without accumulated rounding. */
static double tick_of(const range *r, int i)
{
    return round(r->least / r->step + i) * r->step;
}

static bool is_within(const range *r, double tick)
{
    return tick <= r->greatest + r->step * 1e-6;
}

static void print_axes(FILE *file, const chart *c, const range *x, const range *y)
{
    for (int i = 0; is_within(y, tick_of(y, i)); i++) {
        double v = tick_of(y, i);
        fprintf(file, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                down(y, v), down(y, v));
        fprintf(file, "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\">", LEFT - 6, down(y, v) + 4);
        print_value(file, c, c->percent && fabs(v - 1) < 1e-9 ? 1 : v, y->step, true);
        fputs("</text>\n", file);
    }
    for (int i = 0; is_within(x, tick_of(x, i)); i++) {
        double v = tick_of(x, i);
        fprintf(file, "<text text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", across(x, v), HEIGHT - BOTTOM + 18);
        print_value(file, c, v, x->step, false);
        fputs("</text>\n", file);
    }
    fprintf(file, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>", LEFT, WIDTH - RIGHT,
            HEIGHT - BOTTOM, HEIGHT - BOTTOM);
    fprintf(file, "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 8);
    xml_text(file, c->across);
    fprintf(file, "</text><text class=\"label\" x=\"4\" y=\"18\">");
    xml_text(file, c->up);
    fputs("</text>\n", file);
}

static void print_line(FILE *file, const chart *c, const chart_line *l, const range *x, const range *y)
{
    int every = (l->count + POINTS - 1) / POINTS;
    bool drawing = false;
    fprintf(file, "<path class=\"line c%d%s\" d=\"", l->colour, l->dashed ? " dashed" : "");
    for (int i = 0; i < l->count; i++) {
        if (i % (every > 0 ? every : 1) != 0 && i != l->count - 1) continue;
        bool known = isfinite(l->y[i]) && isfinite(l->x[i]);
        if (known) fprintf(file, "%s%.1f %.1f", drawing ? "L" : "M", across(x, l->x[i]), down(y, l->y[i]));
        drawing = known;
    }
    fputs("\"/>\n", file);
    for (int i = 0; i < l->count && l->count <= MARKED; i++) {
        if (!isfinite(l->y[i]) || !isfinite(l->x[i])) continue;
        fprintf(file, "<circle class=\"mark c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>", l->colour,
                across(x, l->x[i]), down(y, l->y[i]));
        xml_text(file, l->name);
        fprintf(file, ", %s %.4g: ", c->across, l->x[i]);
        if (c->percent)
            fputs(number_percent(l->y[i], 2).text, file);
        else
            fprintf(file, "%.5g", l->y[i]);
        fputs("</title></circle>\n", file);
    }
}

/* Prints the last value of each line, for screen readers. */
static void print_description(FILE *file, const chart *c, const range *y)
{
    xml_text(file, c->title);
    for (int i = 0; i < c->count; i++) {
        const chart_line *l = &c->line[i];
        int last = l->count - 1;
        while (last >= 0 && !isfinite(l->y[last])) last--;
        if (last < 0) continue;
        fputs(i == 0 ? ": " : "; ", file);
        xml_text(file, l->name);
        fputs(" ends at ", file);
        print_value(file, c, l->y[last], y->step / 10, true);
    }
}

void chart_print(FILE *file, const chart *c)
{
    range x = range_of(c, false, 6), y = range_of(c, true, 5);
    if (!(x.least <= x.greatest) || !(y.least <= y.greatest)) return;
    fprintf(file, "<figure><figcaption>");
    xml_text(file, c->title);
    fprintf(file, "</figcaption><svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    print_description(file, c, &y);
    fputs("\">\n", file);
    print_axes(file, c, &x, &y);
    for (int i = 0; i < c->count; i++) print_line(file, c, &c->line[i], &x, &y);
    fputs("</svg><ul class=\"legend\">", file);
    for (int i = 0; i < c->count; i++) {
        const chart_line *l = &c->line[i];
        fprintf(file,
                "<li><svg viewBox=\"0 0 26 8\" aria-hidden=\"true\"><path class=\"line c%d%s\" d=\"M0 4H26\"/></svg>",
                l->colour, l->dashed ? " dashed" : "");
        xml_text(file, l->name);
        fputs("</li>", file);
    }
    fputs("</ul></figure>\n", file);
}
