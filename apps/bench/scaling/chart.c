/* SPDX-License-Identifier: MIT */
/* The scaling benchmark as an SVG file: on the left the efficiency of both kinds by the number of ranks, on the right
 * the parts of a step's time: computing, and the all-reduces that it waits for; behind each bar, in outline, the time
 * of the all-reduces alone. */
#include "apps/bench/scaling/report.h"

#include <math.h>
#include <stdio.h>

#include <sdlf/version.h>

#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/xml.h"

enum { WIDTH = 990, HEIGHT = 440, TOP = 100, PLOT = 270, LEFT = 70, LINES = 380, BARS = 560, BARS_WIDTH = 400 };

static const char *const colours[] = {"#3b6ea5", "#e0893b"};
static const char waited_colour[] = "#b5482f";

/* The x of a number of ranks: equal distances, whatever the numbers. */
static double across(const scaling_report *r, int index)
{
    return LEFT + (index + 0.5) * LINES / r->count;
}

static double up(double part)
{
    return TOP + PLOT * (1 - part / 1.2);
}

static void draw_efficiency(FILE *file, const scaling_report *r)
{
    char text[64];
    xml_svg_text(file, LEFT, TOP - 14, "font-weight=\"bold\" fill=\"#222\"", "efficiency, by the number of ranks");
    for (int i = 0; i <= 6; i++) {
        double y = up(0.2 * i);
        fprintf(file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT, y, LEFT + LINES, y,
                i == 5 ? "#999" : "#e4e4e4");
        xml_svg_text(file, LEFT - 8, y + 4, "text-anchor=\"end\" fill=\"#777\"", number_percent(0.2 * i, 0).text);
    }
    for (int i = 0; i < r->count; i++) {
        snprintf(text, sizeof text, "%d", r->point[SCALING_WEAK][i].ranks);
        xml_svg_text(file, across(r, i), TOP + PLOT + 20, "text-anchor=\"middle\" fill=\"#222\"", text);
    }
    for (int kind = 0; kind < SCALING_KINDS; kind++) {
        fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[kind]);
        for (int i = 0; i < r->count; i++) {
            double part = scaling_efficiency(r, (scaling_kind)kind, i);
            if (!isnan(part)) fprintf(file, "%.1f,%.1f ", across(r, i), up(fmin(part, 1.2)));
        }
        fputs("\"/>\n", file);
        for (int i = 0; i < r->count; i++) {
            double part = scaling_efficiency(r, (scaling_kind)kind, i);
            if (isnan(part)) continue;
            fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>%s</title></circle>\n",
                    across(r, i), up(fmin(part, 1.2)), colours[kind], number_percent(part, 1).text);
        }
    }
}

/* The longest bar of both kinds, which share a scale. */
static double longest_of(const scaling_report *r)
{
    double longest = 0;
    for (int kind = 0; kind < SCALING_KINDS; kind++)
        for (int i = 0; i < r->count; i++)
            if (r->point[kind][i].batch > 0)
                longest = fmax(longest, fmax(r->point[kind][i].seconds, r->point[kind][i].compute));
    return longest;
}

static void draw_bar(FILE *file, double x, double width, const scaling_point *p, const char *colour, double longest)
{
    double compute = fmin(p->compute, p->seconds), scale = PLOT / (1.15 * longest), foot = TOP + PLOT;
    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x,
            foot - scale * compute, width, scale * compute, colour);
    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x,
            foot - scale * p->seconds, width, scale * (p->seconds - compute), waited_colour);
    xml_svg_text(file, x + width / 2, foot - scale * p->seconds - 5,
                 "text-anchor=\"middle\" font-size=\"11\" fill=\"#222\"", number_duration(p->seconds).text);
    if (p->ranks < 2) return;
    double sums = fmin(scale * p->sums, PLOT);
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"%s\" "
            "stroke-dasharray=\"3 2\"><title>sums by themselves: %s</title></rect>\n",
            x + 2, foot - sums, width - 4, sums, waited_colour, number_duration(p->sums).text);
}

static void draw_steps(FILE *file, const scaling_report *r)
{
    char text[64];
    double group = (double)BARS_WIDTH / r->count, width = group * 0.38, longest = longest_of(r);
    xml_svg_text(file, BARS, TOP - 14, "font-weight=\"bold\" fill=\"#222\"", "time of a step");
    for (int i = 0; i < r->count; i++) {
        for (int kind = 0; kind < SCALING_KINDS; kind++) {
            const scaling_point *p = &r->point[kind][i];
            double x = BARS + group * (i + 0.1) + kind * (width + 2);
            if (p->batch > 0) draw_bar(file, x, width, p, colours[kind], longest);
        }
        snprintf(text, sizeof text, "%d", r->point[SCALING_WEAK][i].ranks);
        xml_svg_text(file, BARS + group * (i + 0.5), TOP + PLOT + 20, "text-anchor=\"middle\" fill=\"#222\"", text);
    }
    fprintf(file, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#222\"/>\n", BARS, TOP + PLOT,
            BARS + BARS_WIDTH, TOP + PLOT);
}

static void draw_legend(FILE *file, int x, const char *colour, const char *text)
{
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, TOP + PLOT + 34, colour);
    xml_svg_text(file, x + 18, TOP + PLOT + 45, "fill=\"#222\"", text);
}

static bool draw(FILE *file, const void *subject)
{
    const scaling_report *r = subject;
    char text[700];
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    snprintf(text, sizeof text, "Training %s on several ranks (%s), %s samples", r->network, r->communicator,
             number_count(r->batch).text);
    xml_svg_text(file, 20, 30, "font-size=\"18\" font-weight=\"bold\" fill=\"#222\"", text);
    xml_svg_text(file, 20, 52, "font-size=\"11\" fill=\"#777\"", r->runs_on);
    draw_efficiency(file, r);
    draw_steps(file, r);
    draw_legend(file, LEFT, colours[SCALING_STRONG], "strong: of all ranks");
    draw_legend(file, LEFT + 180, colours[SCALING_WEAK], "weak: of each rank");
    draw_legend(file, LEFT + 345, waited_colour, "sums that a step waits for; in outline: all of them, by themselves");
    snprintf(text, sizeof text, "sdlf %s bench scaling", SDLF_VERSION);
    xml_svg_text(file, 20, HEIGHT - 6, "font-size=\"11\" fill=\"#777\"", text);
    return fputs("</svg>\n", file) >= 0;
}

sdlf_status scaling_draw(const scaling_report *report, const char *path)
{
    return output_file_write(path, draw, report);
}
