/* SPDX-License-Identifier: MIT */
/* TrivialAugment of pictures of bytes: see sdlf_loader_options. */
#ifndef SDLF_FRAMEWORK_TRIVIAL_H
#define SDLF_FRAMEWORK_TRIVIAL_H

#include <sdlf/tensor.h>

enum { SDLF_TRIVIAL_OPERATIONS = 14 };

/* Change a picture (C,H,W) in place; `from` is scratch space of its size. */
void sdlf_trivial_augment(uint8_t *picture, uint8_t *from, sdlf_shape sample, uint64_t seed, int64_t image,
                          int64_t epoch);

/* One of the operations, with m in [0, 1] and a sign. */
void sdlf_trivial_apply(uint8_t *picture, uint8_t *from, sdlf_shape sample, int operation, float m, bool negative);

#endif
