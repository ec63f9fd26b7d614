/* SPDX-License-Identifier: MIT */
/* TFRecord: the framing of messages in an event file.
 *
 *     uint64 length, uint32 masked CRC-32C of these 8 bytes, the message, uint32 masked CRC-32C of the message
 *
 * all little endian. */
#ifndef SDLF_APPS_TENSORBOARD_RECORD_H
#define SDLF_APPS_TENSORBOARD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) of bytes. */
uint32_t record_crc(const void *bytes, size_t length);

/* Write one record and flush it. Returns false if the write failed. */
bool record_write(FILE *file, const void *bytes, size_t length);

#endif
