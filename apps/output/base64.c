/* SPDX-License-Identifier: MIT */
/* See base64.h. */
#include "apps/output/base64.h"

void base64_print(FILE *file, const void *bytes, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        unsigned word = (unsigned)at[i] << 16 | (left > 1 ? (unsigned)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0U);
        fputc(letters[word >> 18 & 63], file);
        fputc(letters[word >> 12 & 63], file);
        fputc(left > 1 ? letters[word >> 6 & 63] : '=', file);
        fputc(left > 2 ? letters[word & 63] : '=', file);
    }
}
