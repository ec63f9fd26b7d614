/* SPDX-License-Identifier: MIT */
/* Initial values of parameters. */
#ifndef SDLF_FRAMEWORK_INITIALIZER_H
#define SDLF_FRAMEWORK_INITIALIZER_H

#include <sdlf/layer.h>
#include <sdlf/operation.h>

/* The operation (fill, random_uniform or random_normal) that computes the values of spec->initializer for this seed and
 * stream, the same bits on every calculator; its output is not set. Errors: SDLF_ERROR_ARGUMENT (a kind outside the
 * enumeration, or SDLF_INIT_DEFAULT; fans below 1 where the kind needs them). */
sdlf_status sdlf_initializer_operation(sdlf_operation *operation, const sdlf_parameter_spec *spec, uint64_t seed,
                                       uint32_t stream);

/* True if that operation computes all values. Otherwise the host does: sdlf_initialize. */
bool sdlf_initializer_is_drawn(const sdlf_parameter_spec *spec);

/* Fills `tensor` (contiguous, float32, host memory, shape spec->shape) without a calculator. Errors: the same. */
sdlf_status sdlf_initialize(sdlf_tensor *tensor, const sdlf_parameter_spec *spec, uint64_t seed, uint32_t stream);

#endif
