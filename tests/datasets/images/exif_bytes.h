/* SPDX-License-Identifier: MIT */
/* The beginnings of files with Exif data, and Exif data to insert into others. */
#ifndef SDLF_TESTS_APPS_PICTURES_EXIF_BYTES_H
#define SDLF_TESTS_APPS_PICTURES_EXIF_BYTES_H

#include <stddef.h>
#include <string.h>

enum { EXIF_BYTES = 128 };

static inline unsigned char *exif_put(unsigned char *at, unsigned long value, int count, int little)
{
    for (int i = 0; i < count; i++) at[i] = (unsigned char)(value >> 8 * (little ? i : count - 1 - i));
    return at + count;
}

/* A TIFF file of 38 bytes: a directory of two entries, ImageWidth and then the orientation. */
static inline unsigned char *exif_put_tiff(unsigned char *at, int orientation, int little)
{
    memcpy(at, little ? "II" : "MM", 2);
    at = exif_put(at + 2, 42, 2, little);
    at = exif_put(at, 8, 4, little);
    at = exif_put(at, 2, 2, little);
    for (int i = 0; i < 2; i++) {
        at = exif_put(at, i == 0 ? 0x0100 : 0x0112, 2, little);
        at = exif_put(at, 3, 2, little);
        at = exif_put(at, 1, 4, little);
        at = exif_put(at, (unsigned long)orientation, 2, little);
        at = exif_put(at, 0, 2, little);
    }
    return exif_put(at, 0, 4, little);
}

/* The APP1 segment of a JPEG. */
static inline unsigned char *exif_put_segment(unsigned char *at, int orientation, int little)
{
    memcpy(at, "\xff\xe1\0\0Exif\0\0", 10);
    unsigned char *end = exif_put_tiff(at + 10, orientation, little);
    exif_put(at + 2, (unsigned long)(end - at - 2), 2, 0);
    return end;
}

/* A JPEG up to the coded image: the JFIF segment and the Exif segment. Returns the size. */
static inline size_t exif_write_jpeg(unsigned char *file, int orientation, int little)
{
    memcpy(file, "\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0", 20);
    unsigned char *end = exif_put_segment(file + 20, orientation, little);
    memcpy(end, "\xff\xda\0\x02", 4);
    return (size_t)(end + 4 - file);
}

/* A PNG up to its eXIf chunk, without valid checksums. */
static inline size_t exif_write_png(unsigned char *file, int orientation, int little)
{
    memcpy(file, "\x89PNG\r\n\x1a\n\0\0\0\x01tEXt.crc.", 8 + 13);
    unsigned char *start = file + 21, *end = exif_put_tiff(start + 8, orientation, little);
    exif_put(start, (unsigned long)(end - start - 8), 4, 0);
    memcpy(start + 4, "eXIf", 4);
    memcpy(end, ".crc", 4);
    return (size_t)(end + 4 - file);
}

#endif
