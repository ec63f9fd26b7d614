/* SPDX-License-Identifier: MIT */
/* See record.h. */
#include "apps/tensorboard/record.h"

/* Computed bit by bit: event files are small. */
uint32_t record_crc(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* A CRC of data that contain CRCs would be weak, so TFRecord rotates it and adds a constant. */
static uint32_t masked(const void *bytes, size_t length)
{
    uint32_t crc = record_crc(bytes, length);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void store(unsigned char *to, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) to[i] = (unsigned char)(value >> (8 * i));
}

bool record_write(FILE *file, const void *bytes, size_t length)
{
    unsigned char head[12], foot[4];
    store(head, length, 8);
    store(head + 8, masked(head, 8), 4);
    store(foot, masked(bytes, length), 4);
    return fwrite(head, 1, sizeof head, file) == sizeof head && fwrite(bytes, 1, length, file) == length &&
           fwrite(foot, 1, sizeof foot, file) == sizeof foot && fflush(file) == 0;
}
