/* SPDX-License-Identifier: MIT */
/* Images of arbitrary bytes: rejected, or decoded and then scaled; PNG files also as masks, with their palette indices. */
#include <stdint.h>
#include <stdlib.h>

#include "datasets/images/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SIDE = 9 };
    float sample[3 * SIDE * SIDE];
    sdlf_image image = {0};
    (void)image_decode_png(&image, data, size, "fuzz", true);
    sdlf_image_release(&image);
    if (sdlf_image_decode(&image, data, size, "fuzz", 0) != SDLF_OK) return 0;
    sdlf_status status = sdlf_image_resize(sample, SIDE, SIDE, 3, &image, 0, 0, image.height, image.width);
    for (int i = 0; status == SDLF_OK && i < 3 * SIDE * SIDE; i++)
        if (!(sample[i] >= 0 && sample[i] <= 255.5f)) abort();
    sdlf_image_release(&image);
    return 0;
}
