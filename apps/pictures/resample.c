/* A separable triangle filter. See resample.h. */
#include "apps/pictures/resample.h"

#include <math.h>
#include <stdlib.h>

#include "apps/system/memory.h"

/* Pixels first .. first + count - 1 of a line contribute to one new pixel, with weights that add up to 1. */
typedef struct taps {
    int first, count;
    double *weight;
} taps;

static taps *make_taps(int new_size, int old_size, double start, double length)
{
    double scale = length / new_size, reach = scale > 1 ? scale : 1;
    int most = (int)ceil(2 * reach) + 2;
    taps *list = memory_allocate((size_t)new_size * sizeof *list);
    for (int i = 0; i < new_size; i++) {
        double centre = start + (i + 0.5) * scale, sum = 0;
        int first = (int)floor(centre - reach), last = (int)ceil(centre + reach);
        first = first < 0 ? 0 : first > old_size - 1 ? old_size - 1 : first;
        last = last > old_size ? old_size : last <= first ? first + 1 : last;
        list[i] = (taps){.first = first, .weight = memory_allocate((size_t)most * sizeof(double))};
        for (int k = first; k < last && list[i].count < most; k++) {
            double weight = 1 - fabs(k + 0.5 - centre) / reach;
            list[i].weight[list[i].count++] = weight > 0 ? weight : 0;
            sum += weight > 0 ? weight : 0;
        }
        for (int k = 0; k < list[i].count; k++)
            list[i].weight[k] = sum > 0 ? list[i].weight[k] / sum : 1.0 / list[i].count;
    }
    return list;
}

static void free_taps(taps *list, int count)
{
    for (int i = 0; i < count; i++) free(list[i].weight);
    free(list);
}

/* One sample of the picture in the wanted channels: grey by the weights of ITU-R BT.601. */
static double sample(const image *picture, int y, int x, int channel, int channels)
{
    const uint8_t *pixel =
        picture->pixels + ((size_t)y * (size_t)picture->width + (size_t)x) * (size_t)picture->channels;
    if (picture->channels == 1) return pixel[0];
    return channels == 1 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] : pixel[channel];
}

void resample(float *out, int rows, int columns, int channels, const image *picture, double top, double left,
              double height, double width)
{
    taps *down = make_taps(rows, picture->height, top, height),
         *across = make_taps(columns, picture->width, left, width);
    double *strip = memory_allocate((size_t)picture->height * sizeof *strip); /* one new column of the old rows */
    for (int c = 0; c < channels; c++) {
        for (int x = 0; x < columns; x++) {
            for (int y = 0; y < picture->height; y++) {
                strip[y] = 0;
                for (int k = 0; k < across[x].count; k++)
                    strip[y] += across[x].weight[k] * sample(picture, y, across[x].first + k, c, channels);
            }
            for (int y = 0; y < rows; y++) {
                double value = 0;
                for (int k = 0; k < down[y].count; k++) value += down[y].weight[k] * strip[down[y].first + k];
                out[((size_t)y * (size_t)columns + (size_t)x) * (size_t)channels + (size_t)c] = (float)value;
            }
        }
    }
    free(strip);
    free_taps(down, rows);
    free_taps(across, columns);
}
