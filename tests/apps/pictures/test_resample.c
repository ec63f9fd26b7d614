/* Pictures at another size. */
#include "testing.h"

#include <string.h>

#include "apps/pictures/resample.h"

/* A constant picture stays constant, a ramp a ramp, whatever the sizes. */
static void resampling_keeps_what_is_even(void)
{
    uint8_t pixels[20 * 30];
    image picture = {.width = 30, .height = 20, .channels = 1, .pixels = pixels};
    float out[3 * 64 * 64];
    memset(pixels, 77, sizeof pixels);
    const int sizes[] = {1, 5, 20, 64};
    for (int i = 0; i < 4; i++) {
        resample(out, sizes[i], sizes[i], 3, &picture, 0, 0, 20, 30);
        for (int k = 0; k < 3 * sizes[i] * sizes[i]; k++) CHECK_CLOSE((double)out[k], 77.0, 1e-4);
    }
    for (int i = 0; i < 20 * 30; i++) pixels[i] = (uint8_t)(i % 30 * 8);
    resample(out, 4, 10, 1, &picture, 0, 0, 20, 30);
    for (int x = 1; x < 9; x++) CHECK_CLOSE((double)out[x], 8.0 * (3 * x + 1), 1e-3);
    resample(out, 20, 10, 1, &picture, 0, 10, 20, 10); /* a part at its own size: the pixels themselves */
    for (int x = 0; x < 10; x++) CHECK_CLOSE((double)out[x], 8.0 * (10 + x), 1e-4);
}

/* One bright pixel. At half the size each pixel is a mean of four, the outer two with a third of the weight of the inner ones: a triangle
 * as wide as two new pixels. At twice the size each lies between two old ones, by how near they are. */
static void weights_are_a_triangle(void)
{
    uint8_t pixels[8] = {0, 0, 0, 240, 0, 0, 0, 0};
    image picture = {.width = 8, .height = 1, .channels = 1, .pixels = pixels};
    const double half[4] = {0, 90, 30, 0}, twice[16] = {[5] = 60, [6] = 180, [7] = 180, [8] = 60};
    float out[16];
    resample(out, 1, 4, 1, &picture, 0, 0, 1, 8);
    for (int i = 0; i < 4; i++) CHECK_CLOSE((double)out[i], half[i], 1e-3);
    resample(out, 1, 16, 1, &picture, 0, 0, 1, 8);
    for (int i = 0; i < 16; i++) CHECK_CLOSE((double)out[i], twice[i], 1e-3);
}

int main(void)
{
    RUN(resampling_keeps_what_is_even);
    RUN(weights_are_a_triangle);
    return test_summary();
}
