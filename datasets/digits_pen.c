/* SPDX-License-Identifier: MIT */
/* One handwriting of a digit: a glyph is posed, jittered, bent, slanted and rotated; its points are joined by
 * centripetal Catmull-Rom curves (Catmull, Rom: A class of local interpolating splines, 1974), along which the pen's
 * width varies. */
#include "datasets/digits.h"

#include <math.h>

typedef struct knot {
    float x, y, pressure;
    digit_joint joint;
} knot;

/* A smooth map of the plane: how the hand deforms the intended shape. */
typedef struct hand {
    float aspect;       /* width */
    float bow_x, bow_y; /* vertical and horizontal lines bend */
    float taper;        /* the top is wider than the bottom */
    float balance;      /* the upper half is larger than the lower */
    float slant;        /* shear to the right */
    float cosine, sine; /* rotation */
} hand;

static hand hand_draw(digit_random *random, int digit)
{
    hand h;
    float half = digit_random_bell(random, 0.09f); /* tangent of half the angle */
    h.cosine = (1 - half * half) / (1 + half * half);
    h.sine = 2 * half / (1 + half * half);
    h.aspect = 1.05f + digit_random_bell(random, 0.2f);
    h.bow_x = digit_random_bell(random, 0.18f);
    h.bow_y = digit_random_bell(random, 0.2f);
    h.taper = digit_random_bell(random, 0.2f);
    h.balance = digit_random_bell(random, 0.18f);
    /* a 1 varies only in its slant */
    h.slant = 0.1f + digit_random_bell(random, digit == 1 ? 0.28f : 0.25f);
    return h;
}

/* Map a glyph's coordinates to the paper's, with the origin at the centre. */
static void hand_apply(const hand *h, knot *k)
{
    float x = (k->x - 0.33f) * h->aspect, y = k->y - 0.5f;
    float bent_x = x * (1 - h->taper * y) + h->bow_x * (0.25f - y * y);
    float bent_y = y + h->balance * (0.25f - y * y) + h->bow_y * (x * x);
    bent_x -= h->slant * bent_y;
    k->x = h->cosine * bent_x - h->sine * bent_y;
    k->y = h->sine * bent_x + h->cosine * bent_y;
}

static int place_knots(knot *knots, int digit, digit_random *random)
{
    const digit_glyph *glyph = digit_glyph_pick(digit, digit_random_uniform(random, 0, 1));
    hand h = hand_draw(random, digit);
    float pose = digit_random_uniform(random, -0.2f, 1.2f);
    float untidy = digit_random_uniform(random, 0.02f, 0.07f);
    float uneven = digit_random_uniform(random, 0.0f, 0.18f);
    float astray_x = 0, astray_y = 0;
    int count = 0;
    for (; glyph->points[count].joint != DIGIT_END; count++) {
        const digit_point *p = &glyph->points[count];
        knot *k = &knots[count];
        /* correlated noise: a hand that has gone astray stays so for a while */
        astray_x = 0.5f * astray_x + digit_random_bell(random, untidy);
        astray_y = 0.5f * astray_y + digit_random_bell(random, untidy);
        k->x = ((float)p->from_x + pose * (float)(p->to_x - p->from_x)) * 0.01f + astray_x;
        k->y = ((float)p->from_y + pose * (float)(p->to_y - p->from_y)) * 0.01f + astray_y;
        k->pressure = 1 + digit_random_bell(random, uneven);
        k->joint = (digit_joint)p->joint;
        hand_apply(&h, k);
    }
    return count;
}

/* Knot spacing of the centripetal curve: the square root of the distance; never 0. */
static float spacing(const knot *a, const knot *b)
{
    float dx = b->x - a->x, dy = b->y - a->y;
    return sqrtf(sqrtf(dx * dx + dy * dy)) + 1e-3f;
}

/* The curve's tangent at knot b, between the knots a and c. */
static void tangent(float *dx, float *dy, const knot *a, const knot *b, const knot *c)
{
    float s = spacing(a, b), t = spacing(b, c);
    *dx = (b->x - a->x) / s - (c->x - a->x) / (s + t) + (c->x - b->x) / t;
    *dy = (b->y - a->y) / s - (c->y - a->y) / (s + t) + (c->y - b->y) / t;
}

/* The tangents at both ends of the piece from knots[i] to knots[i + 1], in units of its knot spacing. At a stroke's end
 * or a corner the tangent points to the other end of the piece. */
static void piece_tangents(float from[2], float to[2], const knot *knots, int count, int i)
{
    const knot *a = &knots[i], *b = &knots[i + 1];
    float step = spacing(a, b);
    int smooth_a = a->joint == DIGIT_BEND;
    int smooth_b = b->joint == DIGIT_BEND && i + 2 < count && knots[i + 2].joint != DIGIT_START;
    float dx = b->x - a->x, dy = b->y - a->y;
    if (smooth_a) {
        tangent(&from[0], &from[1], a - 1, a, b);
        from[0] *= step;
        from[1] *= step;
    }
    if (smooth_b) {
        tangent(&to[0], &to[1], a, b, b + 1);
        to[0] *= step;
        to[1] *= step;
    }
    if (!smooth_a) {
        from[0] = smooth_b ? 1.5f * dx - 0.5f * to[0] : dx;
        from[1] = smooth_b ? 1.5f * dy - 0.5f * to[1] : dy;
    }
    if (!smooth_b) {
        to[0] = smooth_a ? 1.5f * dx - 0.5f * from[0] : dx;
        to[1] = smooth_a ? 1.5f * dy - 0.5f * from[1] : dy;
    }
}

int digit_write(digit_segment *segments, int digit, digit_random *random)
{
    knot knots[DIGIT_MAX_POINTS];
    int count = place_knots(knots, digit, random), made = 0;
    /* most pens are fine, few are thick; the radius is relative to the digit's height, which is often less for a 1 */
    float thickness = digit_random_uniform(random, 0, 1);
    float width = 0.039f + 0.066f * thickness + 0.02f * thickness * thickness;
    if (digit == 1) width *= digit_random_uniform(random, 1, 1.4f);
    float nib = digit_random_uniform(random, 0, 0.25f);
    for (int i = 0; i + 1 < count; i++) {
        const knot *a = &knots[i], *b = &knots[i + 1];
        if (b->joint == DIGIT_START) continue;
        float from[2], to[2];
        piece_tangents(from, to, knots, count, i);
        float x = a->x, y = a->y, r = width * a->pressure;
        for (int s = 1; s <= DIGIT_SUBDIVISION; s++) {
            float t = (float)s / DIGIT_SUBDIVISION, u = 1 - t;
            float h0 = u * u * (1 + 2 * t), h1 = u * u * t, h2 = t * t * (3 - 2 * t), h3 = t * t * u;
            digit_segment *out = &segments[made++];
            out->x0 = x;
            out->y0 = y;
            out->r0 = r;
            x = h0 * a->x + h1 * from[0] + h2 * b->x - h3 * to[0];
            y = h0 * a->y + h1 * from[1] + h2 * b->y - h3 * to[1];
            r = width * (u * a->pressure + t * b->pressure);
            /* a broad nib held at 45 degrees draws thick along one diagonal and thin along the other */
            float dx = x - out->x0, dy = y - out->y0;
            r *= 1 + nib * (2 * dx * dy) / (dx * dx + dy * dy + 1e-6f);
            out->x1 = x;
            out->y1 = y;
            out->r1 = r;
            if (s == 1 && a->joint == DIGIT_START) out->r0 = r;
        }
    }
    return made;
}
