/* How parameters start. */
#ifndef SDLF_FRAMEWORK_INITIALIZER_H
#define SDLF_FRAMEWORK_INITIALIZER_H

#include <sdlf/layer.h>

/* Fill `tensor` (contiguous, float32, host memory, shape spec->shape) as spec->initializer says. Numbers are those of the
 * random_uniform and random_normal operations (operation.h) with this seed and stream. Errors: SDLF_ERROR_ARGUMENT (a kind
 * outside the enumeration, or SDLF_INIT_DEFAULT; fans below 1 where the kind needs them). */
sdlf_status sdlf_initialize(sdlf_tensor *tensor, const sdlf_parameter_spec *spec, uint64_t seed, uint32_t stream);

#endif
