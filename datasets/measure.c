/* Mean and deviation of each channel, over all samples. Of bytes the sums are whole numbers; of floats they are doubles, added in the
 * samples' order: the same every time. */
#include "datasets/datasets_internal.h"

#include <math.h>

/* The values of a channel lie in runs of `area`, one in each sample. */
typedef struct channel_view {
    const sdlf_tensor *samples;
    int64_t first, size, area; /* element of a sample; elements of a sample; of them, the channel's */
} channel_view;

static double value_at(const channel_view *v, int64_t n, int64_t i)
{
    int64_t at = n * v->size + v->first + i;
    return v->samples->dtype == SDLF_UINT8 ? (double)((const uint8_t *)v->samples->data)[at]
                                           : (double)((const float *)v->samples->data)[at];
}

static void measure_bytes(const channel_view *v, double *mean, double *variance)
{
    int64_t samples = v->samples->shape.dim[0], count = samples * v->area;
    uint64_t sum = 0, squares = 0;
    for (int64_t n = 0; n < samples; n++) {
        const uint8_t *plane = (const uint8_t *)v->samples->data + n * v->size + v->first;
        for (int64_t i = 0; i < v->area; i++) {
            sum += plane[i];
            squares += (uint64_t)plane[i] * plane[i];
        }
    }
    *mean = (double)sum / (double)count;
    *variance = (double)squares / (double)count - *mean * *mean;
}

static void measure_floats(const channel_view *v, double *mean, double *variance)
{
    int64_t samples = v->samples->shape.dim[0], count = samples * v->area;
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < v->area; i++) sum += value_at(v, n, i);
    *mean = sum / (double)count;
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < v->area; i++) {
            double away = value_at(v, n, i) - *mean;
            squares += away * away;
        }
    *variance = squares / (double)count;
}

void sdlf_dataset_measure(sdlf_dataset *dataset)
{
    sdlf_shape shape = dataset->samples.shape;
    bool single = shape.dim[1] > SDLF_NORMALIZED_CHANNELS;
    int channels = single ? 1 : (int)shape.dim[1];
    int64_t size = sdlf_shape_span(shape, 1, shape.rank);
    sdlf_channel_normalization *made = &dataset->channels;
    for (int c = 0; c < channels; c++) {
        channel_view view = {.samples = &dataset->samples, .size = size, .area = size / channels, .first = c * (size / channels)};
        double mean, variance;
        bool bytes = dataset->samples.dtype == SDLF_UINT8;
        (bytes ? measure_bytes : measure_floats)(&view, &mean, &variance);
        made->mean[c] = (float)mean;
        /* one shade only: there is nothing to scale */
        made->scale[c] = variance > (bytes ? 1e-6 : 1e-12 * mean * mean + 1e-30) ? (float)(1 / sqrt(variance)) : 1;
    }
    made->count = single ? 0 : channels;
    dataset->mean = single ? made->mean[0] : 0;
    dataset->scale = single ? made->scale[0] : 1;
}
