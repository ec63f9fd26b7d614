/* SPDX-License-Identifier: MIT */
/* The calculator classes, in listing order: an X-macro list; define SDLF_CALCULATOR(class) before including it. A class
 * is declared and registered by its line here. No include guard: it is included more than once. */
SDLF_CALCULATOR(sdlf_reference_calculator_class)
SDLF_CALCULATOR(sdlf_cpu_calculator_class)
#ifdef SDLF_HAVE_CUDA
SDLF_CALCULATOR(sdlf_cuda_calculator_class)
#endif
#ifdef SDLF_HAVE_CUDNN
SDLF_CALCULATOR(sdlf_cudnn_calculator_class)
#endif
