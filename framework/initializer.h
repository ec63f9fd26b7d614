/* SPDX-License-Identifier: MIT */
/* How parameters start. */
#ifndef SDLF_FRAMEWORK_INITIALIZER_H
#define SDLF_FRAMEWORK_INITIALIZER_H

#include <sdlf/layer.h>
#include <sdlf/operation.h>

/* The operation (fill, random_uniform or random_normal) whose output, yet to be set, becomes what spec->initializer
 * says, for this seed and stream: the same bits on every calculator. Errors: SDLF_ERROR_ARGUMENT (a kind outside the
 * enumeration, or SDLF_INIT_DEFAULT; fans below 1 where the kind needs them). */
sdlf_status sdlf_initializer_operation(sdlf_operation *operation, const sdlf_parameter_spec *spec, uint64_t seed,
                                       uint32_t stream);

/* Does that operation make all of it? Else it is the host that draws: sdlf_initialize. */
bool sdlf_initializer_is_drawn(const sdlf_parameter_spec *spec);

/* Fill `tensor` (contiguous, float32, host memory, shape spec->shape) so, without a calculator. Errors: the same. */
sdlf_status sdlf_initialize(sdlf_tensor *tensor, const sdlf_parameter_spec *spec, uint64_t seed, uint32_t stream);

#endif
