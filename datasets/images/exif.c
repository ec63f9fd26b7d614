/* SPDX-License-Identifier: MIT */
/* The orientation of the camera. See exif.h. */
#include "datasets/images/exif.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { UPRIGHT = 1, TAG = 0x0112, SHORT = 3 };

/* A bounded range of bytes, in either byte order of TIFF. Offsets come from the file, so every read is checked against the
 * bounds first. */
typedef struct span {
    const unsigned char *at;
    size_t size;
    bool little_endian;
} span;

static bool has(const span *s, size_t offset, size_t count)
{
    return offset <= s->size && count <= s->size - offset;
}

/* The number of `count` bytes (2 or 4) at an offset that has been checked. */
static uint32_t number(const span *s, size_t offset, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++) value = value << 8 | s->at[offset + (size_t)(s->little_endian ? count - 1 - i : i)];
    return value;
}

static int in_tiff(span tiff)
{
    enum { HEADER = 8, ENTRY = 12 };
    if (!has(&tiff, 0, HEADER)) return UPRIGHT;
    tiff.little_endian = tiff.at[0] == 'I';
    if (memcmp(tiff.at, tiff.little_endian ? "II" : "MM", 2) != 0 || number(&tiff, 2, 2) != 42) return UPRIGHT;
    size_t directory = number(&tiff, 4, 4);
    if (!has(&tiff, directory, 2)) return UPRIGHT;
    uint32_t entries = number(&tiff, directory, 2);
    for (uint32_t i = 0; i < entries; i++) {
        size_t entry = directory + 2 + i * (size_t)ENTRY; /* at most 4 GB and 786 kB: no overflow in 64 bits */
        if (!has(&tiff, entry, ENTRY)) return UPRIGHT;
        if (number(&tiff, entry, 2) != TAG) continue;
        uint32_t value = number(&tiff, entry + 8, 2);
        bool sound =
            number(&tiff, entry + 2, 2) == SHORT && number(&tiff, entry + 4, 4) == 1 && value >= 1 && value <= 8;
        return sound ? (int)value : UPRIGHT;
    }
    return UPRIGHT;
}

/* Walks the segments (0xFF, marker, length including its own two bytes, content) up to the coded image (SOS) or the end (EOI). */
int exif_in_jpeg(const unsigned char *bytes, size_t size)
{
    enum { APP1 = 0xE1, SOS = 0xDA, EOI = 0xD9 };
    static const char name[6] = "Exif\0";
    span file = {bytes, size, false};
    for (size_t at = 2; has(&file, at, 4);) {
        if (bytes[at] != 0xFF) return UPRIGHT;
        unsigned char marker = bytes[at + 1];
        if (marker == 0xFF) { /* any number of fill bytes may precede a marker */
            at++;
            continue;
        }
        size_t length = number(&file, at + 2, 2);
        if (marker == SOS || marker == EOI || length < 2 || !has(&file, at + 2, length)) return UPRIGHT;
        if (marker == APP1 && length >= 2 + sizeof name && memcmp(bytes + at + 4, name, sizeof name) == 0)
            return in_tiff((span){bytes + at + 4 + sizeof name, length - 2 - sizeof name, false});
        at += 2 + length;
    }
    return UPRIGHT;
}

/* Walks the chunks (length, type, content, checksum) after the signature of eight bytes. */
int exif_in_png(const unsigned char *bytes, size_t size)
{
    enum { SIGNATURE = 8, BESIDE = 12 /* length, type and checksum */ };
    span file = {bytes, size, false};
    for (size_t at = SIGNATURE; has(&file, at, BESIDE);) {
        size_t length = number(&file, at, 4);
        if (!has(&file, at + BESIDE, length)) return UPRIGHT;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0) return in_tiff((span){bytes + at + 8, length, false});
        at += BESIDE + length;
    }
    return UPRIGHT;
}
