/* SPDX-License-Identifier: MIT */
/* An image drawn with characters. */
#include "apps/pictures/ascii_art.h"

#include <math.h>

/* Maps a value to the 24 greys of the 256-colour palette, its black and its white. */
static int grey(float value)
{
    int step = (int)lrintf(value / 255 * 25);
    if (step <= 0) return 16;
    return step >= 25 ? 231 : 231 + step;
}

/* Upper half block: the foreground is the upper pixel, the background the lower one. */
static void draw_greys(FILE *file, const float *values, int height, int width, int indent)
{
    for (int y = 0; y < height; y += 2) {
        fprintf(file, "%*s", indent, "");
        for (int x = 0; x < width; x++) {
            float upper = values[y * width + x], lower = y + 1 < height ? values[(y + 1) * width + x] : 0;
            fprintf(file, "\033[38;5;%d;48;5;%dm\u2580", grey(upper), grey(lower));
        }
        fputs("\033[0m\n", file);
    }
}

/* Prints `text` after `blank` pending spaces, so that trailing spaces of a line are never written. */
static void put_behind(FILE *file, int *blank, const char *text)
{
    fprintf(file, "%*s%s", *blank, "", text);
    *blank = 0;
}

static void draw_blocks(FILE *file, const float *values, int height, int width, int indent)
{
    static const char *const block[] = {"", "\u2584", "\u2580", "\u2588"};
    for (int y = 0; y < height; y += 2) {
        int blank = indent;
        for (int x = 0; x < width; x++) {
            int upper = values[y * width + x] >= 128, lower = y + 1 < height && values[(y + 1) * width + x] >= 128;
            if (upper + lower == 0)
                blank++;
            else
                put_behind(file, &blank, block[2 * upper + lower]);
        }
        fputc('\n', file);
    }
}

/* A character is about twice as high as wide, so each pixel takes two. */
static void draw_ascii(FILE *file, const float *values, int height, int width, int indent)
{
    static const char shade[] = " .:-=+*#%@";
    for (int y = 0; y < height; y++) {
        int blank = indent;
        for (int x = 0; x < width; x++) {
            float value = fminf(fmaxf(values[y * width + x], 0), 255);
            char c = shade[(int)(value / 256 * (float)(sizeof shade - 1))], both[] = {c, c, '\0'};
            if (c == ' ')
                blank += 2;
            else
                put_behind(file, &blank, both);
        }
        fputc('\n', file);
    }
}

void ascii_art_print(const terminal *out, const float *values, int height, int width, int indent)
{
    if (out->utf8 && out->colour) {
        draw_greys(out->file, values, height, width, indent);
    } else if (out->utf8) {
        draw_blocks(out->file, values, height, width, indent);
    } else {
        draw_ascii(out->file, values, height, width, indent);
    }
}
