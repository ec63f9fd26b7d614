/* SPDX-License-Identifier: MIT */
/* Converting images to network inputs, and drawing them. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/pictures/ascii_art.h"
#include "apps/pictures/picture.h"

enum { SIDE = 28 };

static float sample[3 * SIDE * SIDE];
static const picture_options automatic = {PICTURE_AUTO, PICTURE_AUTO};

/* A grey image of one value, with a bar of another value. The caller frees the pixels. */
static sdlf_image with_bar(int width, int height, int ground, int ink, int left, int top, int right, int bottom)
{
    sdlf_image made = {
        .width = width, .height = height, .channels = 1, .pixels = malloc((size_t)width * (size_t)height)};
    memset(made.pixels, ground, (size_t)width * (size_t)height);
    for (int y = top; y < bottom; y++) memset(made.pixels + y * width + left, ink, (size_t)(right - left));
    return made;
}

static void prepare(sdlf_image *picture, picture_options options)
{
    CHECK_OK(picture_prepare(sample, sdlf_shape(1, SIDE, SIDE), picture, &options));
    free(picture->pixels);
}

/* An image in MNIST's own form is passed unchanged. */
static void own_size_stays(void)
{
    sdlf_image picture = with_bar(SIDE, SIDE, 0, 200, 3, 4, 6, 20);
    picture.pixels[10 * SIDE + 20] = 37;
    prepare(&picture, automatic);
    CHECK_CLOSE(sample[5 * SIDE + 4], 200, 1e-3);
    CHECK_CLOSE(sample[10 * SIDE + 20], 37, 1e-3);
    CHECK_CLOSE(sample[0], 0, 0);
    CHECK_CLOSE(sample[20 * SIDE + 4], 0, 0);
}

static void light_paper_becomes_dark(void)
{
    sdlf_image picture = with_bar(SIDE, SIDE, 255, 55, 3, 4, 6, 20);
    prepare(&picture, automatic);
    CHECK_CLOSE(sample[5 * SIDE + 4], 200, 1e-3);
    CHECK_CLOSE(sample[0], 0, 0);
    picture = with_bar(SIDE, SIDE, 255, 55, 3, 4, 6, 20);
    prepare(&picture, (picture_options){PICTURE_NO, PICTURE_AUTO});
    CHECK_CLOSE(sample[0], 255, 1e-3);
    picture = with_bar(SIDE, SIDE, 0, 200, 3, 4, 6, 20);
    prepare(&picture, (picture_options){PICTURE_YES, PICTURE_AUTO});
    CHECK_CLOSE(sample[0], 255, 1e-3);
}

/* A large photograph of a small bar in a corner: the bar's longer side becomes 20 pixels, and its centre is centred. */
static void digits_are_cut_out(void)
{
    sdlf_image picture = with_bar(400, 300, 210, 40, 250, 20, 270, 100);
    prepare(&picture, automatic);
    double mass = 0, x_sum = 0, y_sum = 0;
    int top = SIDE, bottom = -1;
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            double value = (double)sample[y * SIDE + x];
            mass += value;
            x_sum += value * (x + 0.5);
            y_sum += value * (y + 0.5);
            if (value < 128) continue;
            top = y < top ? y : top;
            bottom = y > bottom ? y : bottom;
        }
    }
    CHECK_CLOSE(x_sum / mass, 14, 0.01);
    CHECK_CLOSE(y_sum / mass, 14, 0.01);
    CHECK_EQUAL(bottom - top + 1, 20);
    CHECK_CLOSE(mass / 255, 20 * 5, 0.5); /* 80x20 at a quarter of the size */
    CHECK_CLOSE(sample[14 * SIDE + 14], 255, 1e-3);
    CHECK_CLOSE(sample[0], 0, 1e-3);
}

/* Paper that is darker on one side than the ink is on the other. */
static void uneven_light_is_seen_through(void)
{
    sdlf_image picture = with_bar(400, 300, 0, 0, 0, 0, 1, 1);
    for (int y = 0; y < 300; y++) {
        for (int x = 0; x < 400; x++) {
            bool ink = x >= 60 && x < 80 && y >= 100 && y < 180;
            picture.pixels[y * 400 + x] = (uint8_t)(120 + x / 4 + y / 10 - (ink ? 90 : 0));
        }
    }
    prepare(&picture, automatic);
    CHECK_CLOSE(sample[14 * SIDE + 14], 255, 5);
    CHECK_CLOSE(sample[5 * SIDE + 14], 255, 10);
    CHECK_CLOSE(sample[14 * SIDE + 8], 0, 3);
    CHECK_CLOSE(sample[0], 0, 3);
    CHECK_CLOSE(sample[SIDE * SIDE - 1], 0, 3);
}

/* Without fitting, the whole image is used, with black bars above and below if it is wide. */
static void whole_pictures_keep_their_shape(void)
{
    sdlf_image picture = with_bar(56, 28, 0, 100, 0, 0, 56, 28);
    prepare(&picture, (picture_options){PICTURE_NO, PICTURE_NO});
    CHECK_CLOSE(sample[14 * SIDE], 100, 1e-3);
    CHECK_CLOSE(sample[14 * SIDE + 27], 100, 1e-3);
    CHECK_CLOSE(sample[6 * SIDE + 14], 0, 0);
    CHECK_CLOSE(sample[7 * SIDE + 14], 100, 1e-3);
    CHECK_CLOSE(sample[20 * SIDE + 14], 100, 1e-3);
    CHECK_CLOSE(sample[21 * SIDE + 14], 0, 0);
}

/* A blank image, one pixel, one row: no ink is found, and nothing fails. */
static void odd_pictures_do_no_harm(void)
{
    static const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {2, 2}, {29, 28}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int value = 0; value <= 255; value += 51) {
            sdlf_image picture = with_bar(sizes[i][0], sizes[i][1], value, value, 0, 0, 1, 1);
            prepare(&picture, automatic);
            bool sound = true;
            for (int at = 0; at < SIDE * SIDE; at++) sound = sound && sample[at] >= 0 && sample[at] <= 256;
            CHECK(sound);
        }
    }
}

/* The square around a line of two million pixels has 4 * 10^12, nearly all of them outside the image: visiting these
 * would take hours. */
static void work_is_linear_in_pixels(void)
{
    enum { LONG = 2000000 };
    for (int upright = 0; upright < 2; upright++) {
        sdlf_image picture = with_bar(upright ? 1 : LONG, upright ? LONG : 1, 0, 0, 0, 0, 1, 1);
        memset(picture.pixels, 200, LONG / 2);
        prepare(&picture, (picture_options){PICTURE_NO, PICTURE_NO});
        double sum = 0;
        for (int i = 0; i < SIDE * SIDE; i++) sum += (double)sample[i];
        CHECK_CLOSE(sum, 200.0 * LONG / 2 / LONG * SIDE * SIDE / LONG, 1e-6);
        prepare(
            &(sdlf_image){.width = picture.width, .height = picture.height, .channels = 1, .pixels = calloc(LONG, 1)},
            automatic);
        CHECK_CLOSE((double)sample[SIDE * SIDE / 2], 0, 0);
    }
}

static void colours(void)
{
    uint8_t pixels[SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i % 3 == 0 ? 100 : i % 3 == 1 ? 50 : 10);
    sdlf_image picture = {.width = SIDE, .height = SIDE, .channels = 3, .pixels = pixels};
    CHECK_OK(picture_prepare(sample, sdlf_shape(1, SIDE, SIDE), &picture, &automatic));
    CHECK_CLOSE(sample[100], 0.299 * 100 + 0.587 * 50 + 0.114 * 10, 1e-3);
    CHECK_OK(picture_prepare(sample, sdlf_shape(3, SIDE, SIDE), &picture, &automatic));
    CHECK_CLOSE(sample[100], 100, 1e-3);
    CHECK_CLOSE(sample[SIDE * SIDE + 100], 50, 1e-3);
    CHECK_CLOSE(sample[2 * SIDE * SIDE + 100], 10, 1e-3);
    CHECK_FAILS(picture_prepare(sample, sdlf_shape(4, SIDE, SIDE), &picture, &automatic), SDLF_ERROR_SHAPE, "4x28x28");
    CHECK_FAILS(picture_prepare(sample, sdlf_shape(784), &picture, &automatic), SDLF_ERROR_SHAPE, "784");
}

static const char *drawn(bool utf8, bool colour)
{
    static char text[4096];
    static const float values[] = {255, 0, 128, 255, 255, 0};
    FILE *file = tmpfile();
    terminal out = {.file = file, .utf8 = utf8, .colour = colour, .interactive = colour, .width = 80};
    ascii_art_print(&out, values, 3, 2, 1);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void drawing(void)
{
    CHECK_TEXT(drawn(false, false), " @@\n ++@@\n @@\n");
    CHECK_TEXT(drawn(true, false), " \u2588\u2584\n \u2580\n");
    CHECK(strstr(drawn(true, true), "\033[38;5;231;48;5;244m\u2580") != NULL);
    CHECK(strstr(drawn(true, true), "\033[0m\n") != NULL);
}

int main(void)
{
    RUN(own_size_stays);
    RUN(light_paper_becomes_dark);
    RUN(digits_are_cut_out);
    RUN(uneven_light_is_seen_through);
    RUN(whole_pictures_keep_their_shape);
    RUN(odd_pictures_do_no_harm);
    RUN(work_is_linear_in_pixels);
    RUN(colours);
    RUN(drawing);
    return test_summary();
}
