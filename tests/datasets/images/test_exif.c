/* SPDX-License-Identifier: MIT */
/* The orientation in Exif data: its location, in both byte orders, and data without a valid one. */
#include "datasets/images/exif.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/images/exif_bytes.h"
#include "testing.h"

static void every_orientation(void)
{
    unsigned char file[EXIF_BYTES];
    for (int little = 0; little < 2; little++) {
        for (int value = 1; value <= 8; value++) {
            size_t size = exif_write_jpeg(file, value, little);
            CHECK_EQUAL(exif_in_jpeg(file, size), value);
            size = exif_write_png(file, value, little);
            CHECK_EQUAL(exif_in_png(file, size), value);
        }
    }
}

/* Invalid orientation numbers and every truncated file give upright. */
static void nothing_sensible_is_upright(void)
{
    unsigned char file[EXIF_BYTES];
    size_t size = exif_write_jpeg(file, 0, 1);
    CHECK_EQUAL(exif_in_jpeg(file, size), 1);
    size = exif_write_jpeg(file, 9, 0);
    CHECK_EQUAL(exif_in_jpeg(file, size), 1);
    int (*const in[])(const unsigned char *, size_t) = {exif_in_jpeg, exif_in_png};
    for (int png = 0; png < 2; png++) {
        size = png ? exif_write_png(file, 6, 1) : exif_write_jpeg(file, 6, 1);
        bool seen = false;
        for (size_t cut = 0; cut <= size; cut++) {
            unsigned char *part = malloc(cut + 1); /* just as much: a sanitizer finds what is read beyond */
            part = realloc(memcpy(part, file, cut), cut > 0 ? cut : 1);
            int found = in[png](part, cut);
            CHECK(found == 1 || (found == 6 && cut > size / 2));
            seen = seen || found == 6;
            free(part);
        }
        CHECK(seen);
    }
}

/* With any byte changed: no reads beyond the end, and no number other than the eight. */
static void bytes_that_lie(void)
{
    unsigned char file[EXIF_BYTES], changed[EXIF_BYTES];
    for (int png = 0; png < 2; png++) {
        size_t size = png ? exif_write_png(file, 3, 0) : exif_write_jpeg(file, 3, 0);
        bool sound = true;
        for (size_t i = 0; i < size; i++) {
            for (int value = 0; value < 256; value++) {
                memcpy(changed, file, size);
                changed[i] = (unsigned char)value;
                int found = png ? exif_in_png(changed, size) : exif_in_jpeg(changed, size);
                sound = sound && found >= 1 && found <= 8;
            }
        }
        CHECK(sound);
    }
}

int main(void)
{
    RUN(every_orientation);
    RUN(nothing_sensible_is_upright);
    RUN(bytes_that_lie);
    return test_summary();
}
