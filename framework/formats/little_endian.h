/* SPDX-License-Identifier: MIT */
/* Files store numbers in little-endian order. On a little-endian host everything here is a no-op. */
#ifndef SDLF_FORMATS_LITTLE_ENDIAN_H
#define SDLF_FORMATS_LITTLE_ENDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool host_is_little_endian(void)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

static inline uint64_t load_little_endian_64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static inline void store_little_endian_64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

/* Reverses the bytes of each of `count` elements of `size` bytes, in place. */
static inline void reverse_elements(void *data, size_t size, size_t count)
{
    unsigned char *element = data;
    for (size_t n = 0; n < count; n++, element += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = element[i];
            element[i] = element[size - 1 - i];
            element[size - 1 - i] = byte;
        }
    }
}

#endif
