/* SPDX-License-Identifier: MIT */
/* Resizing images. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/image.h>

#include "datasets/images/resize.h"

/* A constant image stays constant, and a ramp a ramp, at any sizes. */
static void resampling_keeps_what_is_even(void)
{
    uint8_t pixels[20 * 30];
    sdlf_image picture = {.width = 30, .height = 20, .channels = 1, .pixels = pixels};
    float out[3 * 64 * 64];
    memset(pixels, 77, sizeof pixels);
    const int sizes[] = {1, 5, 20, 64};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(sdlf_image_resize(out, sizes[i], sizes[i], 3, &picture, 0, 0, 20, 30));
        for (int k = 0; k < 3 * sizes[i] * sizes[i]; k++) CHECK_CLOSE((double)out[k], 77.0, 1e-4);
    }
    for (int i = 0; i < 20 * 30; i++) pixels[i] = (uint8_t)(i % 30 * 8);
    CHECK_OK(sdlf_image_resize(out, 4, 10, 1, &picture, 0, 0, 20, 30));
    for (int x = 1; x < 9; x++) CHECK_CLOSE((double)out[x], 8.0 * (3 * x + 1), 1e-3);
    CHECK_OK(
        sdlf_image_resize(out, 20, 10, 1, &picture, 0, 10, 20, 10)); /* a part at its own size: the pixels themselves */
    for (int x = 0; x < 10; x++) CHECK_CLOSE((double)out[x], 8.0 * (10 + x), 1e-4);
}

/* One bright pixel. At half the size each pixel is a mean of four, the outer two with a third of the weight of the inner ones: a triangle
 * as wide as two new pixels. At twice the size each is interpolated between two old ones by distance. */
static void weights_are_a_triangle(void)
{
    uint8_t pixels[8] = {0, 0, 0, 240, 0, 0, 0, 0};
    sdlf_image picture = {.width = 8, .height = 1, .channels = 1, .pixels = pixels};
    const double half[4] = {0, 90, 30, 0}, twice[16] = {[5] = 60, [6] = 180, [7] = 180, [8] = 60};
    float out[16];
    CHECK_OK(sdlf_image_resize(out, 1, 4, 1, &picture, 0, 0, 1, 8));
    for (int i = 0; i < 4; i++) CHECK_CLOSE((double)out[i], half[i], 1e-3);
    CHECK_OK(sdlf_image_resize(out, 1, 16, 1, &picture, 0, 0, 1, 8));
    for (int i = 0; i < 16; i++) CHECK_CLOSE((double)out[i], twice[i], 1e-3);
}

/* Output channels are separate planes; an image may also grow in one direction and shrink in the other. */
static void channels_and_directions(void)
{
    uint8_t pixels[4 * 3] = {10, 20, 30, 10, 20, 30, 50, 60, 70, 50, 60, 70}; /* 2 wide, 2 high: two rows */
    sdlf_image picture = {.width = 2, .height = 2, .channels = 3, .pixels = pixels};
    float out[3 * 5];
    CHECK_OK(sdlf_image_resize(out, 1, 5, 3, &picture, 0, 0, 2, 2));
    for (int c = 0; c < 3; c++)
        for (int x = 0; x < 5; x++) CHECK_CLOSE((double)out[5 * c + x], 30 + 10 * c, 1e-4);
    CHECK_OK(sdlf_image_resize(out, 5, 1, 3, &picture, 0, 0, 2, 2));
    for (int c = 0; c < 3; c++) {
        CHECK_CLOSE((double)out[5 * c], 10 + 10 * c, 1e-4);
        CHECK_CLOSE((double)out[5 * c + 2], 30 + 10 * c, 1e-4);
        CHECK_CLOSE((double)out[5 * c + 4], 50 + 10 * c, 1e-4);
    }
}

/* Bytes are the rounded floats, and those of a part the same as those of all. */
static void parts_are_those_of_the_whole(void)
{
    enum { OLD_H = 37, OLD_W = 41, MOST = 64 * 64 * 3 };
    static const int sizes[][2] = {{11, 9}, {64, 50}, {10, 60}, {50, 12}, {1, 1}};
    uint8_t pixels[OLD_H * OLD_W * 3], bytes[MOST];
    float whole[MOST];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 2654435761u >> 13);
    for (int i = 0; i < 4 * 5; i++) {
        int colours = i % 2 ? 3 : 1, channels = i / 2 % 2 ? 3 : 1, rows = sizes[i / 4][0], columns = sizes[i / 4][1];
        sdlf_image picture = {.width = OLD_W, .height = OLD_H, .channels = colours, .pixels = pixels};
        CHECK_OK(sdlf_image_resize(whole, rows, columns, channels, &picture, 1.5, 2, 33.3, 38));
        for (int part = 0; part < 3; part++) {
            const sdlf_sample_part wanted = {{rows * part / 4, rows * part / 4 + (rows + 1) / 2},
                                             {columns * (2 - part) / 5, columns * (2 - part) / 5 + (columns + 2) / 3}};
            memset(bytes, 0xee, sizeof bytes);
            CHECK_OK(
                image_resize_part(bytes, sdlf_shape(channels, rows, columns), &wanted, &picture, 1.5, 2, 33.3, 38));
            for (int k = 0; k < channels * rows * columns; k++) {
                int row = k / columns % rows, column = k % columns;
                bool inside = row >= wanted.rows[0] && row < wanted.rows[1] && column >= wanted.columns[0] &&
                              column < wanted.columns[1];
                CHECK_EQUAL(bytes[k], inside ? (uint8_t)(int)(whole[k] + 0.5f) : 0xee);
            }
        }
    }
    uint8_t white[300], one[3]; /* weights whose sum is not quite 1 go no higher than 255 */
    memset(white, 255, sizeof white);
    for (int width = 1; width <= 100; width++) {
        sdlf_image picture = {.width = width, .height = 1, .channels = 3, .pixels = white};
        CHECK_OK(
            image_resize_part(one, sdlf_shape(3, 1, 1), &(sdlf_sample_part){{0, 1}, {0, 1}}, &picture, 0, 0, 1, width));
        CHECK(one[0] == 255 && one[1] == 255 && one[2] == 255);
    }
}

/* A line of 16 million pixels, much wider or higher than the result: if each pixel of the other direction were computed from the whole
 * line, this would take hours. */
static void work_is_linear_in_pixels(void)
{
    enum { LONG = 1 << 24, OTHER = 60000 };
    sdlf_image picture = {.width = 1, .height = LONG, .channels = 1, .pixels = malloc(LONG)};
    float *out = malloc(2 * OTHER * sizeof *out);
    memset(picture.pixels, 200, LONG / 2);
    memset(picture.pixels + LONG / 2, 100, LONG / 2);
    CHECK_OK(sdlf_image_resize(out, 2, OTHER, 1, &picture, 0, 0, LONG, 1));
    CHECK(out[0] > 175 && out[OTHER] < 125);
    CHECK_CLOSE((double)out[OTHER - 1], (double)out[0], 1e-3);
    picture.width = LONG;
    picture.height = 1;
    CHECK_OK(sdlf_image_resize(out, OTHER, 2, 1, &picture, 0, 0, 1, LONG));
    CHECK(out[0] > 175 && out[1] < 125);
    CHECK_CLOSE((double)out[2 * OTHER - 2], (double)out[0], 1e-3);
    free(out);
    free(picture.pixels);
}

int main(void)
{
    RUN(resampling_keeps_what_is_even);
    RUN(weights_are_a_triangle);
    RUN(channels_and_directions);
    RUN(parts_are_those_of_the_whole);
    RUN(work_is_linear_in_pixels);
    return test_summary();
}
