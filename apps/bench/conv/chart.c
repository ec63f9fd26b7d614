/* SPDX-License-Identifier: MIT */
/* The convolution lab as a roofline chart, an SVG file.
 *
 * x: the convolution's FLOPs for each byte that a rung moves; y: the convolution's FLOPs a second; both logarithmic.
 * The roof shows the machine's measured limits: a slope (bytes a second) and a flat part (FLOPs a second), each with
 * its figure. Each rung has its own mark: a small one for each convolution, and a large one, labelled with the rung's
 * name, for all of them together. A list on the right shows the rungs again, the fastest first, with their figures. The
 * background is white, on dark pages too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/bench/conv/axes.h"
#include "apps/bench/conv/marks.h"
#include "apps/bench/conv/report.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/xml.h"

enum {
    WIDTH = 1000,
    LEAST_HEIGHT = 430, /* of the plot; more if there are many rungs */
    BELOW = 104,
    LIST = AXES_LEFT + AXES_WIDTH + 34, /* the marks of the list of rungs */
    LIST_GAP = 31,
    LARGE = 8, /* marks */
    NAME_SIZE = 12,
};

/* A rung that ran: its large mark. */
typedef struct place {
    int rung;
    lab_total total;
    double x, y;
} place;

typedef struct chart {
    const lab *lab;
    axes axes;
    int count, base; /* places, the fastest first; the baseline of speed-ups */
    place place[LAB_RUNGS];
} chart;

static double rate(const place *p)
{
    return (double)p->total.cost.flops / p->total.seconds;
}

static int by_rate(const void *a, const void *b)
{
    double x = rate(a), y = rate(b);
    return (x < y) - (x > y);
}

/* The rungs that ran. */
static void find_rungs(chart *c)
{
    const lab *l = c->lab;
    c->base = lab_base(l);
    for (int j = 0; j < l->rungs; j++) {
        lab_total total = lab_total_of(l, j, 0, l->cases);
        if (total.ran > 0) c->place[c->count++] = (place){.rung = j, .total = total};
    }
    qsort(c->place, (size_t)c->count, sizeof c->place[0], by_rate);
}

/* The x and y of a rung on a convolution. */
static double flops_a_byte(const lab *l, int index, int rung)
{
    return (double)l->cost[index].flops / (double)l->result[index][rung].work.bytes;
}

static double flops_a_second(const lab *l, int index, int rung)
{
    return (double)l->cost[index].flops / l->result[index][rung].seconds;
}

/* Fits the axes to all points and the roof's ridge; then places the large marks. */
static void find_axes(chart *c, FILE *file)
{
    const lab *l = c->lab;
    int rows = LIST_GAP * c->count + 8;
    c->axes = axes_of(file, &l->ceilings, rows > LEAST_HEIGHT ? rows : LEAST_HEIGHT);
    for (int i = 0; i < l->cases; i++) {
        for (int j = 0; j < l->rungs; j++) {
            if (l->result[i][j].ran) axes_stretch(&c->axes, flops_a_byte(l, i, j), flops_a_second(l, i, j));
        }
    }
    axes_settle(&c->axes);
    for (int i = 0; i < c->count; i++) {
        place *p = &c->place[i];
        p->x = axes_x(&c->axes, (double)p->total.cost.flops / (double)p->total.work.bytes);
        p->y = axes_y(&c->axes, rate(p));
    }
    c->axes.map = label_map_of(
        (label_box){AXES_LEFT + 2, AXES_TOP + 2, AXES_LEFT + AXES_WIDTH - 2, AXES_TOP + c->axes.height - 2},
        LAB_CASES * LAB_RUNGS + 3 * LAB_RUNGS + 4 * AXES_WIDTH);
}

static void draw_marks(chart *c)
{
    const lab *l = c->lab;
    for (int j = 0; j < l->rungs && l->cases > 1; j++) {
        for (int i = 0; i < l->cases; i++) {
            if (!l->result[i][j].ran) continue;
            double x = axes_x(&c->axes, flops_a_byte(l, i, j)), y = axes_y(&c->axes, flops_a_second(l, i, j));
            lab_mark_draw(c->axes.file, lab_mark_of(l, j), x, y, 3, 0.4);
            label_add(&c->axes.map, label_around(x, y, 3), false);
        }
    }
    for (int i = c->count - 1; i >= 0; i--) { /* the fastest on top */
        const place *p = &c->place[i];
        lab_mark_draw(c->axes.file, lab_mark_of(l, p->rung), p->x, p->y, LARGE, 1);
        label_add(&c->axes.map, label_around(p->x, p->y, LARGE + (lab_is_automatic(l, p->rung) ? 4 : 1)), true);
    }
}

/* Draws the name of a rung beside its large mark, or farther away with a line to it; none if there is no space, since
 * the list has it. */
static void name_mark(chart *c, const place *p)
{
    enum { WAYS = 16, RINGS = 4 };
    static const double away[RINGS] = {16, 27, 42, 60};
    const char *name = c->lab->rung[p->rung].name;
    double width = label_width(name, NAME_SIZE, true);
    label_box boxes[WAYS * RINGS];
    for (int i = 0; i < WAYS * RINGS; i++) {
        double turn = 2 * acos(-1) * (i % WAYS) / WAYS, x = cos(turn), out = away[i / WAYS];
        double left = p->x + out * x - width * (1 - x) / 2, base = p->y + out * sin(turn) + 4;
        boxes[i] = (label_box){left, base - NAME_SIZE, left + width, base + 3};
    }
    int chosen = label_choose(&c->axes.map, boxes, WAYS * RINGS, WAYS);
    if (chosen < 0) return;
    const label_box *box = &boxes[chosen];
    lab_mark mark = lab_mark_of(c->lab, p->rung);
    char at[128], style[64];
    if (chosen >= 2 * WAYS)
        fprintf(c->axes.file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", p->x, p->y,
                fmin(fmax(p->x, box->left), box->right), fmin(fmax(p->y, box->top), box->bottom), mark.colour);
    snprintf(at, sizeof at, "x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" font-weight=\"bold\"", box->left, box->bottom - 3,
             NAME_SIZE);
    snprintf(style, sizeof style, "class=\"name\" fill=\"%s\"", mark.colour);
    axes_word(c->axes.file, at, style, name);
    label_add(&c->axes.map, *box, true);
}

/* Draws the rungs, the fastest first: mark, name, rate, and the speed-up over the base on the same convolutions. */
static void draw_list(const chart *c)
{
    const lab *l = c->lab;
    FILE *file = c->axes.file;
    for (int i = 0; i < c->count; i++) {
        const place *p = &c->place[i];
        double y = AXES_TOP + 14 + LIST_GAP * i, base = lab_seconds_beside(l, c->base, p->rung);
        lab_mark_draw(file, lab_mark_of(l, p->rung), LIST, y, 6.5, 1);
        xml_svg_text(file, LIST + 16, y + 1, "class=\"rung\" font-weight=\"bold\" fill=\"#222\"",
                     l->rung[p->rung].name);
        char text[160];
        size_t used = (size_t)snprintf(text, sizeof text, "%s", number_scaled(rate(p), "FLOP/s").text);
        if (p->rung != c->base && !isnan(base))
            used +=
                (size_t)snprintf(text + used, sizeof text - used, ", %sx", number_three(base / p->total.seconds).text);
        if (p->total.ran < p->total.asked)
            snprintf(text + used, sizeof text - used, ", %d of %d layers", p->total.ran, p->total.asked);
        xml_svg_text(file, LIST + 16, y + 14, "font-size=\"11\" fill=\"#555\"", text);
    }
}

static void draw_words(const chart *c, int height)
{
    const lab *l = c->lab;
    FILE *file = c->axes.file;
    char text[512];
    bool mode = strcmp(l->math, "fp32") != 0;
    snprintf(text, sizeof text, "Convolution: %s on %s, %s%s%s", l->workload.name, l->calculator,
             sdlf_dtype_name(l->dtype), mode ? " " : "", mode ? l->math : "");
    xml_svg_text(file, 20, 30, "font-size=\"18\" font-weight=\"bold\" fill=\"#222\"", text);
    xml_svg_text(file, 20, 50, "font-size=\"12\" fill=\"#222\"", l->workload.about);
    xml_svg_text(file, 20, 68, "font-size=\"11\" fill=\"#555\"", l->runs_on);
    snprintf(text, sizeof text, "sdlf %s bench conv.%s%s%s%s", SDLF_VERSION,
             l->cases > 1 ? " Small marks: one convolution each; large ones: all that the rung ran, together." : "",
             c->count > 1 ? " Speed-ups (x): against " : "", c->count > 1 ? l->rung[c->base].name : "",
             c->count > 1 ? "." : "");
    xml_svg_text(file, 20, height - 34, "font-size=\"11\" fill=\"#555\"", text);
    snprintf(
        text, sizeof text,
        "Thick line: the machine's limits, measured, %s and %s. Above its slope: a cache moved what memory cannot. "
        "Above its flat part: fewer FLOPs than counted.",
        number_scaled(l->ceilings.bytes, "B/s").text, number_scaled(l->ceilings.flops, "FLOP/s").text);
    xml_svg_text(file, 20, height - 16, "font-size=\"11\" fill=\"#555\"", text);
}

static bool draw(FILE *file, const void *subject)
{
    chart c = {.lab = subject};
    find_rungs(&c);
    find_axes(&c, file);
    int height = AXES_TOP + c.axes.height + BELOW;
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    draw_words(&c, height);
    axes_draw(&c.axes);
    draw_marks(&c);
    axes_name_roof(&c.axes);
    for (int i = 0; i < c.count; i++) name_mark(&c, &c.place[i]);
    draw_list(&c);
    free(c.axes.map.item);
    return fputs("</svg>\n", file) >= 0;
}

sdlf_status lab_draw(const lab *l, const char *path)
{
    return output_file_write(path, draw, l);
}
