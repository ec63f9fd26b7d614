/* SPDX-License-Identifier: MIT */
/* Label placement in a chart full of marks. */
#include "apps/bench/conv/labels.h"

#include <string.h>

#include "apps/system/memory.h"

label_map label_map_of(label_box frame, int most)
{
    return (label_map){.item = memory_allocate((size_t)most * sizeof(struct label_item)), .most = most, .frame = frame};
}

void label_add(label_map *map, label_box box, bool hard)
{
    if (map->count < map->most) map->item[map->count++] = (struct label_item){box, hard};
}

label_box label_around(double x, double y, double size)
{
    return (label_box){x - size, y - size, x + size, y + size};
}

static bool meet(const label_box *a, const label_box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

/* The number of soft items that the box overlaps; -1: it must not be used. */
static int under(const label_map *map, const label_box *box)
{
    int soft = 0;
    if (box->left < map->frame.left || box->right > map->frame.right || box->top < map->frame.top ||
        box->bottom > map->frame.bottom)
        return -1;
    for (int i = 0; i < map->count; i++) {
        if (!meet(box, &map->item[i].box)) continue;
        if (map->item[i].hard) return -1;
        soft++;
    }
    return soft;
}

int label_choose(const label_map *map, const label_box *boxes, int count, int ring)
{
    enum { FARTHER = 4 };
    int best = -1, least = 0;
    for (int i = 0; i < count; i++) {
        int soft = under(map, &boxes[i]);
        int cost = soft + FARTHER * (i / ring);
        if (soft < 0 || (best >= 0 && cost >= least)) continue;
        best = i;
        least = cost;
    }
    return best;
}

double label_width(const char *text, double size, bool bold)
{
    return (double)strlen(text) * size * (bold ? 0.64 : 0.57);
}
