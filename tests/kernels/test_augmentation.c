/* SPDX-License-Identifier: MIT */
/* The geometry of gather_batch's augmentation against its contract, recomputed here in float64 from the words of
 * Philox. An image whose pixels hold their own row (or column) shows where each output pixel was read. */
#include "testing.h"

#include <sdlf/calculator.h>
#include <sdlf/random.h>

#include "calculators/augmentation.h"

#include <math.h>
#include <string.h>

enum { SIDE = 24, IMAGES = 3 };

static sdlf_calculator *reference;

static double draw(uint32_t word, double range)
{
    return (2 * (double)(word >> 8) * 0x1p-24 - 1) * range;
}

/* centre + A (h - centre, w - centre) - shift + displacement, as <sdlf/operation.h> says */
static void expected_source(const sdlf_augmentation *a, int64_t image, int64_t epoch, int h, int w, double from[2])
{
    sdlf_philox first = sdlf_philox4x32(a->seed, (uint64_t)image * 16, SDLF_STREAM_AUGMENT, (uint32_t)epoch);
    double angle = -draw(first.word[0], (double)a->rotate) * acos(-1) / 180;
    double scale = 1 + draw(first.word[1], (double)a->scale), centre = (SIDE - 1) / 2.0;
    double dh = h - centre, dw = w - centre;
    from[0] = centre + (cos(angle) * dh - sin(angle) * dw) / scale - draw(first.word[2], (double)a->shift);
    from[1] = centre + (sin(angle) * dh + cos(angle) * dw) / scale - draw(first.word[3], (double)a->shift);
    double node[4][4][2];
    for (int i = 0; i < 16; i++) {
        sdlf_philox group =
            sdlf_philox4x32(a->seed, (uint64_t)image * 16 + 1 + (uint64_t)i / 2, SDLF_STREAM_AUGMENT, (uint32_t)epoch);
        for (int axis = 0; axis < 2; axis++) {
            node[i / 4][i % 4][axis] = draw(group.word[i % 2 * 2 + axis], (double)a->elastic);
        }
    }
    double down = h * 3.0 / (SIDE - 1), right = w * 3.0 / (SIDE - 1);
    int row = down >= 3 ? 2 : (int)down, column = right >= 3 ? 2 : (int)right;
    for (int axis = 0; axis < 2; axis++) {
        double f = down - row, g = right - column;
        from[axis] += (1 - f) * ((1 - g) * node[row][column][axis] + g * node[row][column + 1][axis]) +
                      f * ((1 - g) * node[row + 1][column][axis] + g * node[row + 1][column + 1][axis]);
    }
}

/* Check image i of three, read last in a batch. */
static void check_warp(sdlf_augmentation augment, int image, int64_t epoch)
{
    static float x[IMAGES][2][SIDE][SIDE], y[2][2][SIDE][SIDE];
    for (int h = 0; h < SIDE; h++) {
        for (int w = 0; w < SIDE; w++) {
            for (int i = 0; i < IMAGES; i++) x[i][0][h][w] = (float)h, x[i][1][h][w] = (float)w;
        }
    }
    int32_t index[2] = {(image + 1) % IMAGES, image};
    sdlf_operation gather = {.kind = SDLF_GATHER_BATCH, .gather = {.scale = 1, .augment = augment}};
    gather.in[0] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(IMAGES, 2, SIDE, SIDE), x);
    gather.in[1] = sdlf_tensor_view(SDLF_INT32, sdlf_shape(2), index);
    gather.in[2] = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), &epoch);
    gather.out[0] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 2, SIDE, SIDE), y);
    CHECK_OK(sdlf_calculator_run(reference, &gather));
    int wrong = 0, looked_at = 0;
    for (int h = 0; h < SIDE; h++) {
        for (int w = 0; w < SIDE; w++) {
            double from[2];
            expected_source(&augment, image, epoch, h, w, from);
            bool outside = from[0] < -1.01 || from[1] < -1.01 || from[0] > SIDE + 0.01 || from[1] > SIDE + 0.01;
            bool inside = from[0] > 0.01 && from[1] > 0.01 && from[0] < SIDE - 1.01 && from[1] < SIDE - 1.01;
            for (int c = 0; c < 2; c++) {
                double found = (double)y[1][c][h][w];
                if (outside && found != 0) wrong++;
                if (inside && fabs(found - from[c]) > 1e-4) wrong++;
            }
            looked_at += inside;
        }
    }
    CHECK_EQUAL(wrong, 0);
    CHECK(looked_at > 100);
}

static void pixels_are_read_where_the_contract_says(void)
{
    static const sdlf_augmentation kinds[] = {
        {.shift = 3, .seed = 1},
        {.rotate = 40, .seed = 2},
        {.scale = 0.3f, .seed = 3},
        {.elastic = 2.5f, .seed = 4},
        {.shift = 2, .rotate = 20, .scale = 0.15f, .elastic = 1.5f, .seed = UINT64_C(0xabcdef0123456789)}};
    for (int i = 0; i < 5; i++) {
        for (int image = 0; image < IMAGES; image++) check_warp(kinds[i], image, 7 * i + image);
    }
}

static void turns_are_turns(void)
{
    for (int degrees = -360; degrees <= 360; degrees += 7) {
        double angle = degrees * acos(-1) / 180, cosine, sine;
        sdlf_cos_sin(angle, &cosine, &sine);
        CHECK_CLOSE(cosine, cos(angle), 1e-13);
        CHECK_CLOSE(sine, sin(angle), 1e-13);
    }
}

/* Reflected borders, alternating flips, crops inside the image, cutout and colours, as specified by the contract. */
static void newer_kinds(void)
{
    static const int64_t mirrored[] = {2, 1, 0, 1, 2, 3, 2, 1, 0, 1}; /* of -2 ... 7, four wide */
    for (int64_t i = 0; i < 10; i++) {
        CHECK_EQUAL(sdlf_warp_source(i - 2, 4, true), mirrored[i]);
        CHECK_EQUAL(sdlf_warp_source(i - 2, 4, false), i >= 2 && i < 6 ? i - 2 : -1);
        CHECK_EQUAL(sdlf_warp_source(i - 2, 1, true), 0);
    }
    int flipped[2] = {0, 0}, smaller = 0, holes = 0;
    for (int64_t image = 0; image < 200; image++) {
        bool before = false;
        for (int64_t epoch = 0; epoch < 4; epoch++) {
            sdlf_warp warp =
                sdlf_warp_make(&(sdlf_augmentation){.flip_alternate = true, .seed = 3}, image, epoch, 8, 8);
            bool flip = warp.matrix[1][1] < 0;
            CHECK(epoch == 0 || flip != before);
            before = flip;
            flipped[epoch % 2] += flip;
        }
        sdlf_warp part = sdlf_warp_make(&(sdlf_augmentation){.resized_crop = 0.3f, .seed = 3}, image, 1, 20, 30);
        for (int corner = 0; corner < 4; corner++) {
            sdlf_warp_point from = sdlf_warp_at(&part, corner / 2 * 19, corner % 2 * 29);
            CHECK((float)from.h + from.down > -1e-3f && (float)from.h + from.down < 19.001f);
            CHECK((float)from.w + from.right > -1e-3f && (float)from.w + from.right < 29.001f);
        }
        float area = part.matrix[0][0] * part.matrix[1][1];
        CHECK(area > 0.25f && area <= 1);
        smaller += area < 0.65f;
        sdlf_warp hole = sdlf_warp_make(&(sdlf_augmentation){.cutout = 3, .seed = 3}, image, 1, 9, 9);
        int erased = 0;
        for (int i = 0; i < 81; i++) erased += sdlf_warp_erases(&hole, i / 9, i % 9);
        CHECK(erased == 9 || erased == 6 || erased == 4); /* at an edge, in a corner */
        holes += erased == 9;
    }
    CHECK(flipped[0] + flipped[1] == 400 && flipped[0] > 140 && flipped[0] < 260);
    CHECK(smaller > 60 && smaller < 140);
    CHECK(holes > 80 && holes < 160); /* (7 / 9)^2 of them */
    const sdlf_warp tint = {.tinted = true, .brightness = 1.5f, .contrast = 0.5f, .saturation = 0};
    CHECK_CLOSE(sdlf_warp_tint(&tint, 10, 40, 20), 40, 1e-6); /* 20 + (40 1.5 - 20) 0.5 */
    CHECK_CLOSE(sdlf_grey(100, 100, 100), 100, 1e-4);
}

/* HSV to RGB: hue in [0, 1), saturation and value, by the sixth of the circle that contains the hue. */
static void colour_of(double hue, double saturation, double value, double colour[3])
{
    int sixth = (int)(6 * hue);
    double part = 6 * hue - sixth, low = value * (1 - saturation), fall = value * (1 - saturation * part),
           rise = value * (1 - saturation * (1 - part));
    const double all[6][3] = {{value, rise, low}, {fall, value, low}, {low, value, rise},
                              {low, fall, value}, {rise, low, value}, {value, low, fall}};
    memcpy(colour, all[sixth % 6], sizeof all[0]);
}

/* The hue turns as in HSV, at any saturation and value. */
static void hues_turn(void)
{
    for (int i = 0; i < 40; i++)
        for (int k = -10; k <= 10; k++) {
            double from[3], to[3], hue = i / 40.0, turn = k / 20.0, turned = hue + turn - floor(hue + turn);
            colour_of(hue, (i % 7 + 1) / 7.0, 255 - i, from);
            colour_of(turned, (i % 7 + 1) / 7.0, 255 - i, to);
            float colour[3] = {(float)from[0], (float)from[1], (float)from[2]};
            sdlf_warp_turn(&(sdlf_warp){.hue = (float)turn}, colour);
            for (int c = 0; c < 3; c++) CHECK_CLOSE(colour[c], to[c], 1e-3);
        }
    float grey[3] = {7, 7, 7}, red[3] = {255, 0, 0}, same[3] = {1, 2, 3};
    sdlf_warp_turn(&(sdlf_warp){.hue = 0.3f}, grey);
    sdlf_warp_turn(&(sdlf_warp){.hue = 0.5f}, red); /* cyan */
    sdlf_warp_turn(&(sdlf_warp){.hue = 0}, same);
    CHECK(grey[0] == 7 && grey[1] == 7 && grey[2] == 7);
    CHECK(red[0] == 0 && red[1] == 255 && red[2] == 255);
    CHECK(same[0] == 1 && same[1] == 2 && same[2] == 3);
    double sum = 0, most = 0;
    for (int64_t image = 0; image < 400; image++) {
        sdlf_warp warp = sdlf_warp_make(&(sdlf_augmentation){.hue = 0.2f, .seed = 3}, image, 1, 4, 4);
        CHECK(warp.tinted && warp.brightness == 1 && warp.contrast == 1 && warp.saturation == 1);
        sum += (double)warp.hue;
        most = fmax(most, fabs((double)warp.hue));
    }
    CHECK(most <= 0.2 && most > 0.19 && fabs(sum / 400) < 0.03);
}

/* Without augmentation, the pixels are unchanged. */
static void no_augmentation_reads_the_pixels(void)
{
    sdlf_augmentation none = {.seed = 9};
    sdlf_warp warp = sdlf_warp_make(&none, 5, 2, 28, 17);
    int wrong = 0;
    for (int64_t h = 0; h < 28; h++) {
        for (int64_t w = 0; w < 17; w++) {
            sdlf_warp_point point = sdlf_warp_at(&warp, h, w);
            if (point.h != h || point.w != w || point.down != 0 || point.right != 0) wrong++;
        }
    }
    CHECK_EQUAL(wrong, 0);
}

int main(void)
{
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    RUN(pixels_are_read_where_the_contract_says);
    RUN(turns_are_turns);
    RUN(newer_kinds);
    RUN(hues_turn);
    RUN(no_augmentation_reads_the_pixels);
    sdlf_calculator_close(reference);
    return test_summary();
}
