/* Every calculator class of this build. Adding one: its declaration here, its line in registry.c. */
#ifndef SDLF_CALCULATORS_REGISTRY_H
#define SDLF_CALCULATORS_REGISTRY_H

#include <sdlf/calculator.h>

extern const sdlf_calculator_class sdlf_reference_calculator_class;
extern const sdlf_calculator_class sdlf_cpu_calculator_class;
extern const sdlf_calculator_class sdlf_cuda_calculator_class;  /* in builds with CUDA */
extern const sdlf_calculator_class sdlf_cudnn_calculator_class; /* in builds with CUDA and cuDNN */

#endif
