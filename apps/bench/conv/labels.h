/* SPDX-License-Identifier: MIT */
/* Label placement in a chart full of marks. */
#ifndef SDLF_APPS_BENCH_CONV_LABELS_H
#define SDLF_APPS_BENCH_CONV_LABELS_H

#include <stdbool.h>

/* A rectangle, in pixels. */
typedef struct label_box {
    double left, top, right, bottom;
} label_box;

/* The occupied areas of the chart. Labels must not overlap hard items, and should not overlap soft ones. */
typedef struct label_map {
    struct label_item {
        label_box box;
        bool hard;
    } * item;
    int count, most;
    label_box frame; /* which must contain all labels */
} label_map;

/* The map of an empty chart; the caller frees `item`. */
label_map label_map_of(label_box frame, int most);

/* Add a box to the map; items beyond its capacity are dropped. */
void label_add(label_map *map, label_box box, bool hard);
label_box label_around(double x, double y, double size);

/* Choose among `count` boxes, in rings of `ring`, each farther away: returns the index of one inside the frame that
 * overlaps no hard item and the fewest soft items, where each ring outwards counts as four of them; the first of
 * equals; -1 if there is none. */
int label_choose(const label_map *map, const label_box *boxes, int count, int ring);

/* The width of text at font size `size`, in pixels; fonts differ by a tenth. */
double label_width(const char *text, double size, bool bold);

#endif
