/* The calculators of this build, in the order in which listings show them. */
#include "calculators/registry.h"

static const sdlf_calculator_class *const classes[] = {
    &sdlf_reference_calculator_class,
    &sdlf_cpu_calculator_class,
#ifdef SDLF_HAVE_CUDA
    &sdlf_cuda_calculator_class,
#endif
};

const sdlf_calculator_class *sdlf_calculator_class_at(int index)
{
    int count = (int)(sizeof classes / sizeof classes[0]);
    return index >= 0 && index < count ? classes[index] : NULL;
}
