/* The convolution lab as a roofline chart, an SVG file.
 *
 * Across: the convolution's FLOPs for each byte that a rung moves; up: the convolution's FLOPs in a second; both logarithmic.
 * The roof is what the machine can do, measured: a slope (bytes a second) and a flat part (FLOPs a second). Each rung has a
 * colour and a mark: a small one for each convolution, a large one for all of them together, which is joined to the rung's
 * name on the right. The names are moved apart where rungs are equally fast. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/bench/conv/report.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/xml.h"

enum {
    WIDTH = 960,
    LEFT = 72,
    TOP = 96,
    PLOT_WIDTH = 610,
    LEAST_HEIGHT = 420, /* of the plot; more where there are many names */
    BELOW = 100,
    NAMES = LEFT + PLOT_WIDTH + 44, /* where the names of rungs begin */
    NAME_GAP = 34,
};

static const char *const colours[] = {"#3b6ea5", "#e0893b", "#4c9a68", "#b5495b",
                                      "#7a5ea8", "#2f8f9d", "#8a6d4b", "#c0569c"};
enum { COLOURS = sizeof colours / sizeof colours[0], MARKS = 4 };

/* The logarithms between which the plot lies, and its height. */
typedef struct axes {
    double x[2], y[2];
    int height;
} axes;

/* A rung's place among the names. */
typedef struct name_place {
    int rung;
    lab_total total;
    double x, y;  /* its large mark */
    double label; /* the name's height */
} name_place;

static double x_at(const axes *a, double value)
{
    return LEFT + PLOT_WIDTH * (log10(value) - a->x[0]) / (a->x[1] - a->x[0]);
}

static double y_at(const axes *a, double value)
{
    return TOP + a->height * (a->y[1] - log10(value)) / (a->y[1] - a->y[0]);
}

static void stretch(double *range, double value)
{
    range[0] = fmin(range[0], log10(value));
    range[1] = fmax(range[1], log10(value));
}

/* Room for all points and for the roof's edge. */
static axes find_axes(const lab *l)
{
    double ridge = log10(l->ceilings.flops / l->ceilings.bytes), flat = log10(l->ceilings.flops);
    axes a = {.x = {ridge, ridge}, .y = {flat, flat}, .height = 18};
    for (int j = 0; j < l->rungs; j++) a.height += lab_total_of(l, j, 0, l->cases).ran > 0 ? NAME_GAP : 0;
    if (a.height < LEAST_HEIGHT) a.height = LEAST_HEIGHT;
    for (int i = 0; i < l->cases; i++) {
        for (int j = 0; j < l->rungs; j++) {
            const lab_result *r = &l->result[i][j];
            if (!r->ran) continue;
            stretch(a.x, (double)l->cost[i].flops / (double)r->work.bytes);
            stretch(a.y, (double)l->cost[i].flops / r->seconds);
        }
    }
    a.x[0] -= 0.2;
    a.x[1] += 0.25;
    a.y[0] -= 0.2;
    a.y[1] += 0.4;
    return a;
}

static void text_at(FILE *file, double x, double y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    xml_text(file, text);
    fputs("</text>\n", file);
}

/* A tick at every power of ten. */
static void draw_grid(FILE *file, const axes *a)
{
    for (int i = (int)ceil(a->x[0]); i <= (int)floor(a->x[1]); i++) {
        double x = x_at(a, pow(10, i));
        fprintf(file, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#e4e4e4\"/>\n", x, TOP, x,
                TOP + a->height);
        char text[32];
        snprintf(text, sizeof text, "%g", pow(10, i));
        text_at(file, x, TOP + a->height + 18, "text-anchor=\"middle\" fill=\"#777\"", text);
    }
    for (int i = (int)ceil(a->y[0]); i <= (int)floor(a->y[1]); i++) {
        double y = y_at(a, pow(10, i));
        fprintf(file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>\n", LEFT, y,
                LEFT + PLOT_WIDTH, y);
        char text[32];
        snprintf(text, sizeof text, "%g", pow(10, i - 9));
        text_at(file, LEFT - 8, y + 4, "text-anchor=\"end\" fill=\"#777\"", text);
    }
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n", LEFT, TOP,
            PLOT_WIDTH, a->height);
    text_at(file, LEFT + PLOT_WIDTH / 2.0, TOP + a->height + 38, "text-anchor=\"middle\" fill=\"#222\"",
            "FLOP of the convolution for each byte that is moved");
    fprintf(file,
            "<text transform=\"translate(22 %d) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">GFLOP/s</text>\n",
            TOP + a->height / 2);
}

/* The slope begins at the left or at the lower edge, whichever it meets. */
static void draw_roof(FILE *file, const lab *l, const axes *a)
{
    const ceilings *c = &l->ceilings;
    double ridge = c->flops / c->bytes, first = fmax(pow(10, a->x[0]), pow(10, a->y[0]) / c->bytes);
    double x[3] = {x_at(a, first), x_at(a, ridge), LEFT + PLOT_WIDTH};
    double y[2] = {y_at(a, first * c->bytes), y_at(a, c->flops)};
    fprintf(
        file,
        "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %d,%d %d,%d %d,%.1f\" fill=\"#222\" fill-opacity=\"0.05\"/>\n"
        "<polyline points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"#222\" stroke-width=\"2\"/>\n",
        x[0], y[0], x[1], y[1], x[2], y[1], LEFT + PLOT_WIDTH, TOP, LEFT, TOP, LEFT, y[0], x[0], y[0], x[1], y[1], x[2],
        y[1]);
    char text[160];
    snprintf(text, sizeof text, "flat: %s in a matrix product", number_scaled(c->flops, "FLOP/s").text);
    text_at(file, LEFT + PLOT_WIDTH - 8, TOP + 18, "text-anchor=\"end\" fill=\"#222\"", text); /* above all points */
    snprintf(text, sizeof text, "%s in a copy", number_scaled(c->bytes, "B/s").text);
    double angle = atan2(y[1] - y[0], x[1] - x[0]) * 180 / acos(-1), length = hypot(y[1] - y[0], x[1] - x[0]);
    if (length < 120) return; /* no room along the slope */
    fprintf(
        file,
        "<text transform=\"translate(%.1f %.1f) rotate(%.1f)\" x=\"0\" y=\"-8\" text-anchor=\"middle\" fill=\"#222\">",
        (x[0] + x[1]) / 2, (y[0] + y[1]) / 2, angle);
    xml_text(file, text);
    fputs("</text>\n", file);
}

/* A circle, a square, a triangle or a diamond; "auto" is a ring. */
static void draw_mark(FILE *file, const lab *l, int rung, double x, double y, double size, double opacity)
{
    char style[160];
    const char *colour = colours[rung % COLOURS];
    snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#fff\" stroke-width=\"%s\" opacity=\"%.2f\"", colour,
             size > 5 ? "1.5" : "0.5", opacity);
    if (lab_is_automatic(l, rung)) {
        fprintf(file,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"none\" stroke=\"#222\" stroke-width=\"%s\" "
                "opacity=\"%.2f\"/>\n",
                x, y, size + 2, size > 5 ? "2" : "1", opacity);
        return;
    }
    switch (rung % MARKS) {
    case 0: fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" %s/>\n", x, y, size, style); break;
    case 1:
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x - 0.9 * size,
                y - 0.9 * size, 1.8 * size, 1.8 * size, style);
        break;
    case 2:
        fprintf(file, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" %s/>\n", x, y - 1.2 * size, x + 1.1 * size,
                y + 0.8 * size, x - 1.1 * size, y + 0.8 * size, style);
        break;
    default:
        fprintf(file, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\" %s/>\n", x, y - 1.25 * size,
                x + 1.25 * size, y, x, y + 1.25 * size, x - 1.25 * size, y, style);
    }
}

static void draw_points(FILE *file, const lab *l, const axes *a)
{
    for (int j = 0; j < l->rungs && l->cases > 1; j++) {
        for (int i = 0; i < l->cases; i++) {
            const lab_result *r = &l->result[i][j];
            if (!r->ran) continue;
            double x = x_at(a, (double)l->cost[i].flops / (double)r->work.bytes),
                   y = y_at(a, (double)l->cost[i].flops / r->seconds);
            draw_mark(file, l, j, x, y, 3.5, 0.6);
        }
    }
}

static int by_height(const void *a, const void *b)
{
    double x = ((const name_place *)a)->y, y = ((const name_place *)b)->y;
    return (x > y) - (x < y);
}

/* Names beside their marks, from the top; those too close are moved down, and all of them up again if they reach too far. */
static int place_names(const lab *l, const axes *a, name_place *place)
{
    int count = 0;
    for (int j = 0; j < l->rungs; j++) {
        lab_total total = lab_total_of(l, j, 0, l->cases);
        if (total.ran == 0) continue;
        double x = (double)total.cost.flops / (double)total.work.bytes, y = (double)total.cost.flops / total.seconds;
        place[count++] = (name_place){.rung = j, .total = total, .x = x_at(a, x), .y = y_at(a, y)};
    }
    qsort(place, (size_t)count, sizeof *place, by_height);
    for (int i = 0; i < count; i++) {
        place[i].label = i > 0 ? fmax(place[i].y, place[i - 1].label + NAME_GAP) : fmax(place[i].y, TOP + 12);
    }
    for (int i = count - 1; i >= 0; i--) {
        double most = i + 1 < count ? place[i + 1].label - NAME_GAP : TOP + a->height - 6;
        place[i].label = fmin(place[i].label, most);
    }
    return count;
}

static void draw_names(FILE *file, const lab *l, const axes *a)
{
    name_place place[LAB_RUNGS];
    int count = place_names(l, a, place);
    const lab_total base = lab_total_of(l, 0, 0, l->cases);
    for (int i = 0; i < count; i++) {
        fprintf(file, "<path d=\"M%.1f %.1f L%d %.1f L%d %.1f\" fill=\"none\" stroke=\"%s\" opacity=\"0.5\"/>\n",
                place[i].x, place[i].y, LEFT + PLOT_WIDTH + 6, place[i].label, NAMES - 8, place[i].label,
                lab_is_automatic(l, place[i].rung) ? "#222" : colours[place[i].rung % COLOURS]);
    }
    for (int i = 0; i < count; i++) {
        const name_place *p = &place[i];
        draw_mark(file, l, p->rung, p->x, p->y, 8, 1);
        draw_mark(file, l, p->rung, NAMES + 2, p->label, 6, 1);
        text_at(file, NAMES + 16, p->label + 1, "font-weight=\"bold\" fill=\"#222\"", l->rung[p->rung].name);
        char text[160];
        size_t used = (size_t)snprintf(text, sizeof text, "%s",
                                       number_scaled((double)p->total.cost.flops / p->total.seconds, "FLOP/s").text);
        if (p->rung > 0 && base.ran == p->total.ran)
            used += (size_t)snprintf(text + used, sizeof text - used, ", %sx",
                                     number_ratio(base.seconds / p->total.seconds).text);
        if (p->total.ran < p->total.asked)
            snprintf(text + used, sizeof text - used, ", %d of %d layers", p->total.ran, p->total.asked);
        text_at(file, NAMES + 16, p->label + 15, "font-size=\"11\" fill=\"#777\"", text);
    }
}

static bool draw(FILE *file, const void *subject)
{
    const lab *l = subject;
    char text[512];
    axes a = find_axes(l);
    int height = TOP + a.height + BELOW;
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    snprintf(text, sizeof text, "Convolution: %s on %s, %s%s%s", l->workload.name, l->calculator,
             sdlf_dtype_name(l->dtype), strcmp(l->math, "fp32") ? " " : "", strcmp(l->math, "fp32") ? l->math : "");
    text_at(file, 20, 30, "font-size=\"18\" font-weight=\"bold\" fill=\"#222\"", text);
    text_at(file, 20, 50, "font-size=\"12\" fill=\"#222\"", l->workload.about);
    text_at(file, 20, 68, "font-size=\"11\" fill=\"#777\"", l->runs_on);
    draw_grid(file, &a);
    draw_roof(file, l, &a);
    draw_points(file, l, &a);
    draw_names(file, l, &a);
    static const char notes[] =
        "Line: the machine's limits, measured. Above the slope: a cache moved what memory cannot. Above the "
        "flat part: fewer FLOPs than the convolution's.";
    snprintf(text, sizeof text, "sdlf %s bench conv.%s Speed-ups are against %s.", SDLF_VERSION,
             l->cases > 1 ? " Small marks: one convolution each; large ones: all together." : "", l->rung[0].name);
    text_at(file, 20, height - 32, "font-size=\"11\" fill=\"#777\"", text);
    text_at(file, 20, height - 16, "font-size=\"11\" fill=\"#777\"", notes);
    return fputs("</svg>\n", file) >= 0;
}

sdlf_status lab_draw(const lab *l, const char *path)
{
    return output_file_write(path, draw, l);
}
