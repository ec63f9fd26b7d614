/* SPDX-License-Identifier: MIT */
/* The marks of the convolution lab's chart.
 *
 * Colours repeat after eight rungs, and the shapes then start one later: rung r has colour r mod 8 and shape (r + r /
 * 8) mod 4, so that all 8 x 4 pairs are used before one repeats. The calculator's automatic choice is a ring around the
 * mark of the chosen algorithm. */
#include "apps/bench/conv/marks.h"

#include <assert.h>
#include <math.h>

enum { CIRCLE, SQUARE, DIAMOND, TRIANGLE, FORMS, RING = FORMS };

static const char *const colours[] = {"#3b6ea5", "#e0893b", "#4c9a68", "#b5495b",
                                      "#7a5ea8", "#2f8f9d", "#8a6d4b", "#c0569c"};
enum { COLOURS = sizeof colours / sizeof colours[0] };
static_assert(COLOURS * FORMS >= LAB_RUNGS, "a mark for each rung");

lab_mark lab_mark_of(const lab *l, int rung)
{
    if (lab_is_automatic(l, rung)) return (lab_mark){"#222", RING};
    return (lab_mark){colours[rung % COLOURS], (rung + rung / COLOURS) % FORMS};
}

void lab_mark_draw(FILE *file, lab_mark mark, double x, double y, double size, double opacity)
{
    char style[160];
    bool large = size > 5;
    snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#fff\" stroke-width=\"%s\" opacity=\"%.2f\"", mark.colour,
             large ? "1.5" : "0", opacity);
    switch (mark.form) {
    case RING:
        fprintf(file,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" "
                "opacity=\"%.2f\"/>\n",
                x, y, size + (large ? 3 : 1.5), mark.colour, large ? "2.5" : "1", opacity);
        break;
    case CIRCLE: fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" %s/>\n", x, y, size, style); break;
    case SQUARE:
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x - 0.9 * size,
                y - 0.9 * size, 1.8 * size, 1.8 * size, style);
        break;
    case DIAMOND:
        fprintf(file, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\" %s/>\n", x, y - 1.25 * size,
                x + 1.25 * size, y, x, y + 1.25 * size, x - 1.25 * size, y, style);
        break;
    default:
        fprintf(file, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" %s/>\n", x, y - 1.2 * size, x + 1.1 * size,
                y + 0.8 * size, x - 1.1 * size, y + 0.8 * size, style);
    }
}
