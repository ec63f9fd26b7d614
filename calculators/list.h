/* SPDX-License-Identifier: MIT */
/* The list of calculator classes, in the order of listings. Whoever includes it defines SDLF_CALCULATOR(class) first; a class is declared and
 * registered by its line here. No include guard: it is read more than once. */
SDLF_CALCULATOR(sdlf_reference_calculator_class)
SDLF_CALCULATOR(sdlf_cpu_calculator_class)
#ifdef SDLF_HAVE_CUDA
SDLF_CALCULATOR(sdlf_cuda_calculator_class)
#endif
#ifdef SDLF_HAVE_CUDNN
SDLF_CALCULATOR(sdlf_cudnn_calculator_class)
#endif
