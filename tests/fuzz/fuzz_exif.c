/* SPDX-License-Identifier: MIT */
/* The search for an image's orientation in arbitrary bytes: always one of the eight. */
#include <stdint.h>
#include <stdlib.h>

#include "datasets/images/exif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int jpeg = exif_in_jpeg(data, size), png = exif_in_png(data, size);
    if (jpeg < 1 || jpeg > 8 || png < 1 || png > 8) abort();
    return 0;
}
