/* The geometry of gather_batch's augmentation against its contract, worked out again here in float64 from the words of
 * Philox. An image whose pixels hold their own row (or column) shows where each output pixel was read. */
#include "testing.h"

#include <sdlf/calculator.h>
#include <sdlf/random.h>

#include "calculators/augmentation.h"

#include <math.h>

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

/* Image i of three, read in a batch that has it last. */
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

/* Nothing random wanted: the pixels themselves. */
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
    RUN(no_augmentation_reads_the_pixels);
    sdlf_calculator_close(reference);
    return test_summary();
}
