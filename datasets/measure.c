/* Mean and deviation of each channel, over all samples. Sums are whole numbers, so that no order of adding matters. */
#include "datasets/datasets_internal.h"

#include <math.h>

void sdlf_dataset_measure(sdlf_dataset *dataset)
{
    sdlf_shape shape = dataset->samples.shape;
    int channels = (int)shape.dim[1];
    int64_t area = shape.dim[2] * shape.dim[3], count = shape.dim[0] * area;
    sdlf_channel_normalization *made = &dataset->channels;
    made->count = channels;
    for (int c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (int64_t n = 0; n < shape.dim[0]; n++) {
            const uint8_t *plane = (const uint8_t *)dataset->samples.data + (n * channels + c) * area;
            for (int64_t i = 0; i < area; i++) {
                sum += plane[i];
                squares += (uint64_t)plane[i] * plane[i];
            }
        }
        double mean = (double)sum / (double)count, variance = (double)squares / (double)count - mean * mean;
        made->mean[c] = (float)mean;
        made->scale[c] =
            variance > 1e-6 ? (float)(1 / sqrt(variance)) : 1; /* one shade only: there is nothing to scale */
    }
    dataset->mean = 0;
    dataset->scale = 1;
}
