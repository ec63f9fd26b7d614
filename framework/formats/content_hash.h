/* SPDX-License-Identifier: MIT */
/* 64 bits that tell contents apart: for names of files, not against anybody who wants two contents to agree. */
#ifndef SDLF_FORMATS_CONTENT_HASH_H
#define SDLF_FORMATS_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of what `hash` (0 for nothing) stands for, followed by these bytes. Bytes that come in pieces have the hash
 * of the whole where each piece but the last has a multiple of 8 bytes. The same on every machine. Contents of one
 * length that differ in a single word of 8 bytes never agree; others do with a chance of 2^-64. */
uint64_t content_hash(uint64_t hash, const void *bytes, size_t count);

#endif
