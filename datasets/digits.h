/* SPDX-License-Identifier: MIT */
/* How the data set `digits` is generated. An image is drawn in three steps, one file each:
 *
 *     digits_glyphs.c    the shapes: strokes as lists of points, several variants a digit
 *     digits_pen.c       one handwriting of a shape: points are jittered, bent and joined by thin segments of ink
 *     digits_render.c    the segments are scaled to a box of 20x20, painted in grey, and centred in 28x28
 *
 * Everything is drawn from Philox and computed with +, -, *, / and sqrtf in float32, which IEEE 754 fixes to the bit,
 * so that an image is the same on every machine and at any thread count. */
#ifndef SDLF_DATASETS_DIGITS_H
#define SDLF_DATASETS_DIGITS_H

#include <stdint.h>

#include <sdlf/dataset.h>
#include <sdlf/random.h>

enum {
    DIGIT_SIDE = 28, /* pixels of an image, each way */
    DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE,
    DIGIT_BOX = 20,        /* pixels of the box that the ink is scaled to */
    DIGIT_MAX_POINTS = 20, /* of a glyph */
    DIGIT_SUBDIVISION = 5, /* segments from one point to the next */
    DIGIT_MAX_SEGMENTS = DIGIT_MAX_POINTS * DIGIT_SUBDIVISION,
};

/* ---- random numbers ---- */

/* The random numbers of one image: Philox of (seed, image and position, SDLF_STREAM_DATASET, split). */
typedef struct digit_random {
    uint64_t seed, image;
    uint32_t split;
    uint32_t drawn; /* numbers drawn so far */
    sdlf_philox block;
} digit_random;

digit_random digit_random_start(uint64_t seed, sdlf_split split, int64_t image);
uint32_t digit_random_word(digit_random *random);
/* Uniform from `low` to `high`; from 0 to 1, always below 1. */
float digit_random_uniform(digit_random *random, float low, float high);
/* Bell-shaped with mean 0 and deviation `sigma`: the sum of four uniform numbers, hence within 3.5 deviations. */
float digit_random_bell(digit_random *random, float sigma);

/* ---- shapes ---- */

typedef enum digit_joint {
    DIGIT_END = 0, /* no point: the glyph has ended */
    DIGIT_START,   /* the pen is put down here: a new stroke */
    DIGIT_BEND,    /* the curve passes through */
    DIGIT_CORNER,  /* the curve turns sharply here */
} digit_joint;

/* A point in two poses, in hundredths of the digit's height: x to the right, y down, (0, 0) upper left. A digit is
 * drawn somewhere between the poses, or slightly past one. */
typedef struct digit_point {
    int8_t joint; /* digit_joint */
    int8_t from_x, from_y, to_x, to_y;
} digit_point;

/* One way of writing a digit. */
typedef struct digit_glyph {
    int8_t weight;                            /* relative frequency among the digit's glyphs; 0: unused */
    digit_point points[DIGIT_MAX_POINTS + 1]; /* the first is a START; an END follows the last */
} digit_glyph;

/* Picks a glyph of `digit` by weight, from a uniform number in [0, 1). */
const digit_glyph *digit_glyph_pick(int digit, float uniform);

/* ---- ink ---- */

/* A straight piece of ink with round ends: from (x0, y0) with radius r0 to (x1, y1) with radius r1. */
typedef struct digit_segment {
    float x0, y0, r0, x1, y1, r1;
} digit_segment;

/* Write a digit once: fills `segments` (capacity DIGIT_MAX_SEGMENTS) and returns their number. The digit is about one
 * unit high. */
int digit_write(digit_segment *segments, int digit, digit_random *random);

/* Scale, paint and centre the ink. `pixels` (DIGIT_PIXELS) is overwritten; `segments` are changed to pixel units. */
void digit_render(uint8_t *pixels, digit_segment *segments, int count, digit_random *random);

/* ---- images ---- */

/* The digit shown by image `image`: each run of ten images holds each digit once, in random order. */
int digit_label(uint64_t seed, sdlf_split split, int64_t image);

/* Draw image `image`, which depends only on (seed, split, image). */
void digit_draw(uint8_t *pixels, uint64_t seed, sdlf_split split, int64_t image);

#endif
