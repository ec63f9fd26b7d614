/* A separable triangle filter. See resample.h. */
#include "apps/pictures/resample.h"

#include <math.h>
#include <stdlib.h>

#include "apps/system/memory.h"

/* One direction: `new_size` pixels show `length` old ones, of `old_size`, from `start` on. A step along it is `old_step` bytes in the
 * picture and `new_step` floats in what is made. */
typedef struct axis {
    int new_size, old_size;
    double start, length;
    size_t old_step, new_step;
    double *weight; /* of the pixel that taps_of was last asked for */
} axis;

/* Pixels first .. first + count - 1 of a line contribute to one new pixel, with weights that add up to 1. */
typedef struct taps {
    int first, count;
} taps;

static double reach_of(const axis *a)
{
    return fmax(a->length / a->new_size, 1);
}

static size_t most_taps(const axis *a)
{
    return (size_t)ceil(2 * reach_of(a)) + 2;
}

static int clamp(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

static taps taps_of(const axis *a, int index)
{
    double scale = a->length / a->new_size, reach = reach_of(a), sum = 0;
    double centre = a->start + (index + 0.5) * scale;
    int first = clamp(floor(centre - reach), 0, a->old_size - 1);
    int last = clamp(ceil(centre + reach), first + 1, a->old_size);
    for (int k = first; k < last; k++) {
        double weight = fmax(1 - fabs(k + 0.5 - centre) / reach, 0);
        a->weight[k - first] = weight;
        sum += weight;
    }
    for (int k = 0; k < last - first; k++) a->weight[k] = sum > 0 ? a->weight[k] / sum : 1.0 / (last - first);
    return (taps){first, last - first};
}

/* One sample of the picture in the wanted channels: grey by the weights of ITU-R BT.601. */
static double sample(const image *picture, size_t at, int channel, int channels)
{
    const uint8_t *pixel = picture->pixels + at;
    if (picture->channels == 1) return pixel[0];
    return channels == 1 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] : pixel[channel];
}

/* One channel: for each new place along `outer` a strip of old pixels along `inner`, as far as those are looked at, and from it the new
 * ones. */
static void filter(float *out, int channel, int channels, const image *picture, axis *outer, axis *inner, double *strip)
{
    taps left = taps_of(inner, 0), right = taps_of(inner, inner->new_size - 1);
    for (int i = 0; i < outer->new_size; i++) {
        taps t = taps_of(outer, i);
        for (int b = left.first; b < right.first + right.count; b++) {
            size_t at = (size_t)t.first * outer->old_step + (size_t)b * inner->old_step;
            double value = 0;
            for (int k = 0; k < t.count; k++, at += outer->old_step)
                value += outer->weight[k] * sample(picture, at, channel, channels);
            strip[b - left.first] = value;
        }
        for (int j = 0; j < inner->new_size; j++) {
            taps u = taps_of(inner, j);
            double value = 0;
            for (int k = 0; k < u.count; k++) value += inner->weight[k] * strip[u.first - left.first + k];
            out[(size_t)i * outer->new_step + (size_t)j * inner->new_step] = (float)value;
        }
    }
}

void resample(float *out, int rows, int columns, int channels, const image *picture, double top, double left,
              double height, double width)
{
    size_t pixel = (size_t)picture->channels;
    axis down = {rows, picture->height, top, height, pixel * (size_t)picture->width, (size_t)columns, NULL};
    axis across = {columns, picture->width, left, width, pixel, 1, NULL};
    /* what grows comes second: its lines are as long as what it is made from */
    axis *outer = width < columns ? &down : &across, *inner = width < columns ? &across : &down;
    double *strip = memory_allocate((size_t)inner->old_size * sizeof *strip);
    down.weight = memory_allocate(most_taps(&down) * sizeof(double));
    across.weight = memory_allocate(most_taps(&across) * sizeof(double));
    for (int c = 0; c < channels; c++)
        filter(out + (size_t)c * (size_t)rows * (size_t)columns, c, channels, picture, outer, inner, strip);
    free(strip);
    free(down.weight);
    free(across.weight);
}
