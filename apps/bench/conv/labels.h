/* SPDX-License-Identifier: MIT */
/* Where words go in a chart full of marks. */
#ifndef SDLF_APPS_BENCH_CONV_LABELS_H
#define SDLF_APPS_BENCH_CONV_LABELS_H

#include <stdbool.h>

/* A rectangle, in pixels. */
typedef struct label_box {
    double left, top, right, bottom;
} label_box;

/* What stands in the chart already. Words may not lie on what is hard, and had better not lie on what is soft. */
typedef struct label_map {
    struct label_item {
        label_box box;
        bool hard;
    } * item;
    int count, most;
    label_box frame; /* within which words must lie */
} label_map;

/* The map of an empty chart; the caller frees `item`. */
label_map label_map_of(label_box frame, int most);

/* A box around (x,y); what does not fit the map any more is left out. */
void label_add(label_map *map, label_box box, bool hard);
label_box label_around(double x, double y, double size);

/* Of `count` boxes, which come in rings of `ring`, each farther off: the index of one that is clear of hard items and
 * within the frame and has the least soft items under it, where each ring outwards weighs as much as four of them; of
 * equals the first; -1 where none is clear. */
int label_choose(const label_map *map, const label_box *boxes, int count, int ring);

/* Pixels that words take in letters of `size`; fonts differ by a tenth. */
double label_width(const char *text, double size, bool bold);

#endif
