/* SPDX-License-Identifier: MIT */
/* The placement experiment as an SVG file: a panel for each batch size, and a bar for each row, whose length is the
 * time of a step, with the copies' part in another colour; a line marks everything on the host. Each panel has a linear
 * scale from zero; a bar that would leave little space for the others (usually that of one thread) is cut, and marked
 * so. */
#include "apps/bench/placement/report.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/xml.h"

enum { WIDTH = 990, LEFT = 360, BAR = 420, ROW = 24, TOP = 92, PANEL_HEAD = 34, PANEL_GAP = 22, FOOT = 40, LETTER = 7 };

static const char compute_colour[] = "#3b6ea5", copy_colour[] = "#e0893b", text_colour[] = "#222",
                  dim_colour[] = "#777";

static int panel_height(const placement_experiment *e)
{
    return PANEL_HEAD + ROW * e->count + PANEL_GAP;
}

static void text_at(FILE *file, int x, int y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\" %s>", x, y, attributes);
    xml_text(file, text);
    fputs("</text>\n", file);
}

static void bar(FILE *file, double x, int y, double width, const char *colour)
{
    if (width > 0)
        fprintf(file, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y + 3, width,
                ROW - 6, colour);
}

static void draw_row(FILE *file, const placement_row *row, int y, double per_second)
{
    char text[160];
    bool measured = row->seconds > 0;
    snprintf(text, sizeof text, "text-anchor=\"end\" fill=\"%s\"", measured ? text_colour : dim_colour);
    text_at(file, LEFT - 10, y + 16, text, row->name);
    if (!measured) {
        snprintf(text, sizeof text, "fill=\"%s\" font-style=\"italic\"", dim_colour);
        text_at(file, LEFT + 6, y + 16, text, row->missing);
        return;
    }
    double copies = row->copy_seconds < row->seconds ? row->copy_seconds : row->seconds;
    double width = per_second * row->seconds, copied = per_second * copies;
    bool cut = width > BAR + 1;
    if (cut) {
        copied *= BAR / width;
        width = BAR;
    }
    bar(file, LEFT, y, width - copied, compute_colour);
    bar(file, LEFT + width - copied, y, copied, copy_colour);
    if (cut) {
        fprintf(file, "<polygon points=\"%d,%d %d,%d %d,%d %d,%d\" fill=\"#fff\"/>\n", LEFT + BAR - 30, y + ROW,
                LEFT + BAR - 20, y, LEFT + BAR - 12, y, LEFT + BAR - 22, y + ROW);
    }
}

/* Draws the figures of a row right of its bar, on white: the line of the host's time may pass there. */
static void draw_figures(FILE *file, const placement_experiment *e, const placement_row *row, int y, double per_second)
{
    char text[160];
    if (row->seconds <= 0) return;
    double width = per_second * row->seconds;
    int x = LEFT + 7 + (int)(width > BAR + 1 ? BAR : width);
    int length = snprintf(text, sizeof text, "%s, %sx", number_duration(row->seconds).text,
                          number_three(placement_against_first(e, row)).text);
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", x - 4, y + 3,
            length * LETTER + 8, ROW - 6);
    text_at(file, x, y + 16, "fill=\"#222\"", text);
}

static void draw_panel(FILE *file, const placement_experiment *e, int y)
{
    char text[160];
    double longest = 0, second = 0, host = e->row[e->host].seconds;
    for (int i = 0; i < e->count; i++) {
        const placement_row *row = &e->row[i];
        if (row->seconds > longest) {
            second = longest;
            longest = row->seconds;
        } else if (row->seconds > second) {
            second = row->seconds;
        }
    }
    if (second > 0 && longest > 2 * second) longest = 1.25 * second; /* cut */
    double per_second = longest > 0 ? BAR / longest : 0;
    snprintf(text, sizeof text, "batch %s, %s iterations: time of a step, and how many times faster than the first row",
             number_count(e->batch).text, number_count(e->iterations).text);
    text_at(file, 20, y + 18, "font-weight=\"bold\" fill=\"#222\"", text);
    int first = y + PANEL_HEAD;
    for (int i = 0; i < e->count; i++) draw_row(file, &e->row[i], first + ROW * i, per_second);
    fprintf(file, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\"/>\n", LEFT, first, LEFT,
            first + ROW * e->count, text_colour);
    double x = LEFT + per_second * host;
    if (host > 0)
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\" stroke-dasharray=\"3 4\"><title>all "
                "on the "
                "host</title></line>\n",
                x, first, x, first + ROW * e->count, dim_colour);
    for (int i = 0; i < e->count; i++) draw_figures(file, e, &e->row[i], first + ROW * i, per_second);
}

static void draw_legend(FILE *file, int x, const char *colour, const char *text)
{
    fprintf(file, "<rect x=\"%d\" y=\"68\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, colour);
    text_at(file, x + 18, 79, "fill=\"#222\"", text);
}

static bool draw(FILE *file, const void *subject)
{
    const placement_report *r = subject;
    char text[700];
    int height = TOP + FOOT, y = TOP;
    for (int i = 0; i < r->count; i++) height += panel_height(&r->experiment[i]);
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    snprintf(text, sizeof text, "Training %s with its layers in different places", r->network);
    text_at(file, 20, 30, "font-size=\"18\" font-weight=\"bold\" fill=\"#222\"", text);
    text_at(file, 20, 52, "font-size=\"11\" fill=\"#777\"", r->runs_on);
    draw_legend(file, 20, compute_colour, "computing");
    draw_legend(file, 120, copy_colour, "copies between memories");
    snprintf(text, sizeof text, "dashed: all on %s", r->host);
    text_at(file, 320, 79, "fill=\"#777\"", text);
    for (int i = 0; i < r->count; i++) {
        draw_panel(file, &r->experiment[i], y);
        y += panel_height(&r->experiment[i]);
    }
    snprintf(text, sizeof text,
             "sdlf %s bench placement. Backward passes and updates are on %s but where all is on %s. Rows that name an "
             "algorithm are unfused.",
             SDLF_VERSION, r->host, r->device);
    text_at(file, 20, height - 18, "font-size=\"11\" fill=\"#777\"", text);
    return fputs("</svg>\n", file) >= 0;
}

sdlf_status placement_draw(const placement_report *report, const char *path)
{
    return output_file_write(path, draw, report);
}
