/* SPDX-License-Identifier: MIT */
/* A 64-bit content hash for file names; not secure against deliberate collisions. */
#ifndef SDLF_FORMATS_CONTENT_HASH_H
#define SDLF_FORMATS_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Continues the hash `hash` (0 to start) with these bytes. Bytes hashed in pieces have the hash of the whole if each
 * piece but the last has a multiple of 8 bytes. The same on every machine. Contents of equal length that differ in a
 * single 8-byte word never collide; others do with a probability of 2^-64. */
uint64_t content_hash(uint64_t hash, const void *bytes, size_t count);

#endif
