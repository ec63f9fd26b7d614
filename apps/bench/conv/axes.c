/* SPDX-License-Identifier: MIT */
/* The axes of the convolution lab's chart. */
#include "apps/bench/conv/axes.h"

#include <math.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"

axes axes_of(FILE *file, const ceilings *limits, int height)
{
    double x = log10(limits->flops / limits->bytes), y = log10(limits->flops);
    return (axes){.file = file, .limits = *limits, .x = {x, x}, .y = {y, y}, .height = height};
}

void axes_stretch(axes *a, double x, double y)
{
    a->x[0] = fmin(a->x[0], log10(x));
    a->x[1] = fmax(a->x[1], log10(x));
    a->y[0] = fmin(a->y[0], log10(y));
    a->y[1] = fmax(a->y[1], log10(y));
}

void axes_settle(axes *a)
{
    a->x[0] -= 0.2;
    a->x[1] += 0.3;
    a->y[0] -= 0.2;
    a->y[1] += 0.3;
}

double axes_x(const axes *a, double value)
{
    return AXES_LEFT + AXES_WIDTH * (log10(value) - a->x[0]) / (a->x[1] - a->x[0]);
}

double axes_y(const axes *a, double value)
{
    return AXES_TOP + a->height * (a->y[1] - log10(value)) / (a->y[1] - a->y[0]);
}

void axes_word(FILE *file, const char *place, const char *style, const char *text)
{
    fprintf(file, "<text %s fill=\"#fff\" stroke=\"#fff\" stroke-width=\"4\" stroke-linejoin=\"round\">", place);
    xml_text(file, text);
    fprintf(file, "</text>\n<text %s %s>", place, style);
    xml_text(file, text);
    fputs("</text>\n", file);
}

/* "5", "20 G", "1 T": of a rate, a round number. */
static number_text tick_text(double value, bool scaled)
{
    static const char *const prefix[] = {"", " k", " M", " G", " T", " P"};
    number_text text;
    int step = 0;
    for (; scaled && value > 999.5 && step < 5; step++) value /= 1000;
    snprintf(text.text, sizeof text.text, "%g%s", value, prefix[step]);
    return text;
}

static void draw_tick(const axes *a, double value, bool up, bool strong, bool named)
{
    double at = up ? axes_y(a, value) : axes_x(a, value);
    fprintf(a->file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", up ? AXES_LEFT : at,
            up ? at : AXES_TOP, up ? AXES_LEFT + AXES_WIDTH : at, up ? at : AXES_TOP + a->height,
            strong ? "#d8d8d8" : "#efefef");
    if (!named) return;
    if (up) {
        xml_svg_text(a->file, AXES_LEFT - 8, at + 4, "text-anchor=\"end\" fill=\"#555\"", tick_text(value, true).text);
    } else {
        xml_svg_text(a->file, at, AXES_TOP + a->height + 18, "text-anchor=\"middle\" fill=\"#555\"",
                     tick_text(value, false).text);
    }
}

/* Draws a line at 1, 2 and 5 times each power of ten; a label at each power, or at all lines if these are few. */
static void draw_ticks(const axes *a, bool up)
{
    static const double steps[] = {1, 2, 5};
    const double *range = up ? a->y : a->x;
    bool all = range[1] - range[0] < 2.3;
    for (int i = (int)floor(range[0]); i <= (int)floor(range[1]); i++) {
        for (int j = 0; j < 3; j++) {
            double value = steps[j] * pow(10, i);
            if (log10(value) >= range[0] && log10(value) <= range[1]) draw_tick(a, value, up, j == 0, j == 0 || all);
        }
    }
}

/* The roof's corners: its start at the left or the lower edge, whichever it meets, and its ridge. */
typedef struct roof {
    double x[2], y[2];
} roof;

static roof roof_of(const axes *a)
{
    double bytes = a->limits.bytes, first = fmax(pow(10, a->x[0]), pow(10, a->y[0]) / bytes);
    return (roof){.x = {axes_x(a, first), axes_x(a, a->limits.flops / bytes)},
                  .y = {axes_y(a, first * bytes), axes_y(a, a->limits.flops)}};
}

void axes_draw(const axes *a)
{
    const roof r = roof_of(a);
    int right = AXES_LEFT + AXES_WIDTH;
    draw_ticks(a, false);
    draw_ticks(a, true);
    fprintf(
        a->file,
        "<polygon points=\"%.1f,%.1f %.1f,%.1f %d,%.1f %d,%d %d,%d %d,%.1f\" fill=\"#222\" fill-opacity=\"0.05\"/>\n"
        "<polyline points=\"%.1f,%.1f %.1f,%.1f %d,%.1f\" fill=\"none\" stroke=\"#222\" stroke-width=\"2\"/>\n",
        r.x[0], r.y[0], r.x[1], r.y[1], right, r.y[1], right, AXES_TOP, AXES_LEFT, AXES_TOP, AXES_LEFT, r.y[0], r.x[0],
        r.y[0], r.x[1], r.y[1], right, r.y[1]);
    fprintf(a->file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n", AXES_LEFT,
            AXES_TOP, AXES_WIDTH, a->height);
    xml_svg_text(a->file, AXES_LEFT + AXES_WIDTH / 2.0, AXES_TOP + a->height + 38,
                 "text-anchor=\"middle\" fill=\"#222\"", "FLOP of the convolution for each byte that is moved");
    fprintf(a->file,
            "<text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">FLOP/s of the "
            "convolution</text>\n",
            AXES_TOP + a->height / 2);
}

/* Labels should avoid lines: a line adds one soft item for each pixel. */
static void add_line(label_map *map, double x, double y, double to_x, double to_y)
{
    int steps = 1 + (int)hypot(to_x - x, to_y - y);
    for (int i = 0; i <= steps; i++)
        label_add(map, label_around(x + (to_x - x) * i / steps, y + (to_y - y) * i / steps, 2), false);
}

/* The flat part's label is above or below it or at the upper edge, where there are fewest marks; the slope's runs along
 * it. */
void axes_name_roof(axes *a)
{
    const roof r = roof_of(a);
    static const char style[] = "class=\"limit\" fill=\"#222\"";
    char text[160], place[160];
    snprintf(text, sizeof text, "%s in a matrix product", number_scaled(a->limits.flops, "FLOP/s").text);
    double width = label_width(text, 13, false), right = AXES_LEFT + AXES_WIDTH - 6 - width, ridge = r.x[1] + 4,
           lefts[] = {right, ridge, (right + ridge) / 2, AXES_LEFT + 6};
    label_box boxes[12];
    for (int i = 0; i < 12; i++) {
        double at = i < 4 ? r.y[1] - 8 : i < 8 ? r.y[1] + 17 : AXES_TOP + 18;
        boxes[i] = (label_box){lefts[i % 4], at - 12, lefts[i % 4] + width, at + 4};
    }
    int chosen = label_choose(&a->map, boxes, 12, 12);
    if (chosen < 0) chosen = 8;
    snprintf(place, sizeof place, "x=\"%.1f\" y=\"%.1f\"", boxes[chosen].left, boxes[chosen].bottom - 4);
    axes_word(a->file, place, style, text);
    label_add(&a->map, boxes[chosen], true);
    add_line(&a->map, r.x[0], r.y[0], r.x[1], r.y[1]);
    add_line(&a->map, r.x[1], r.y[1], AXES_LEFT + AXES_WIDTH, r.y[1]);
    snprintf(text, sizeof text, "%s in a copy", number_scaled(a->limits.bytes, "B/s").text);
    double angle = atan2(r.y[1] - r.y[0], r.x[1] - r.x[0]) * 180 / acos(-1),
           length = hypot(r.y[1] - r.y[0], r.x[1] - r.x[0]);
    if (length < label_width(text, 13, false)) return; /* no space along the slope; the text below the chart has it */
    snprintf(place, sizeof place, "transform=\"translate(%.1f %.1f) rotate(%.1f)\" y=\"-8\" text-anchor=\"middle\"",
             (r.x[0] + r.x[1]) / 2, (r.y[0] + r.y[1]) / 2, angle);
    axes_word(a->file, place, style, text);
}
