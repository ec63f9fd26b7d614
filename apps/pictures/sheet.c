/* SPDX-License-Identifier: MIT */
/* See sheet.h. */
#include "apps/pictures/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

enum { COLUMNS = 8, GAP = 2, SMALL = 48, SIDE_MOST = 1024, CONFUSION_SIDE = 480 };

typedef struct canvas {
    int height, width;
    unsigned char *pixels;
} canvas;

static canvas canvas_of(int height, int width, unsigned char grey)
{
    canvas c = {
        .height = height, .width = width, .pixels = memory_allocate((size_t)3 * (size_t)height * (size_t)width)};
    memset(c.pixels, grey, (size_t)3 * (size_t)height * (size_t)width);
    return c;
}

static void fill(const canvas *c, int top, int left, int side, const unsigned char colour[3])
{
    for (int y = top; y < top + side; y++)
        for (int x = left; x < left + side; x++)
            memcpy(c->pixels + 3 * ((size_t)y * (size_t)c->width + (size_t)x), colour, 3);
}

static sdlf_status canvas_finish(canvas *c, png_picture *picture)
{
    sdlf_status status = png_write(picture, c->pixels, c->height, c->width);
    free(c->pixels);
    return status;
}

bool sheet_shows(sdlf_shape sample)
{
    return sample.rank == 3 && (sample.dim[0] == 1 || sample.dim[0] == 3) && sample.dim[1] <= SIDE_MOST &&
           sample.dim[2] <= SIDE_MOST;
}

sdlf_status sheet_write(png_picture *picture, const unsigned char *samples, sdlf_shape sample, int count)
{
    int height = (int)sample.dim[1], width = (int)sample.dim[2], zoom = 1;
    while (zoom * (height > width ? height : width) < SMALL) zoom++;
    int columns = count < COLUMNS ? count : COLUMNS, rows = (count + COLUMNS - 1) / COLUMNS;
    int across = zoom * width + GAP, down = zoom * height + GAP;
    canvas c = canvas_of(rows * down - GAP, columns * across - GAP, 255);
    size_t plane = (size_t)height * (size_t)width;
    for (int i = 0; i < count; i++) {
        const unsigned char *at = samples + (size_t)i * (size_t)sample.dim[0] * plane;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                unsigned char colour[3];
                for (size_t k = 0; k < 3; k++)
                    colour[k] = at[(sample.dim[0] == 3 ? k * plane : 0) + (size_t)y * (size_t)width + (size_t)x];
                fill(&c, i / COLUMNS * down + y * zoom, i % COLUMNS * across + x * zoom, zoom, colour);
            }
    }
    return canvas_finish(&c, picture);
}

sdlf_status sheet_write_confusion(png_picture *picture, const int64_t *confusion, int classes)
{
    int cell = classes < CONFUSION_SIDE ? CONFUSION_SIDE / classes : 1, gap = cell > 8 ? 1 : 0;
    canvas c = canvas_of(classes * cell, classes * cell, 224);
    for (int truth = 0; truth < classes; truth++) {
        const int64_t *row = confusion + (int64_t)truth * classes;
        double total = 0;
        for (int i = 0; i < classes; i++) total += (double)row[i];
        for (int i = 0; i < classes; i++) {
            double part = total > 0 ? sqrt((double)row[i] / total) : 0; /* so that rare mistakes are visible */
            const unsigned char colour[3] = {(unsigned char)(255 - 247 * part), (unsigned char)(255 - 188 * part),
                                             (unsigned char)(255 - 131 * part)};
            fill(&c, truth * cell, i * cell, cell - gap, colour);
        }
    }
    return canvas_finish(&c, picture);
}
