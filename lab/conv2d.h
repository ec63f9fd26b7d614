/* SPDX-License-Identifier: MIT */
/* The teaching ladder of convolution on a GPU: kernels that each add one idea to an earlier one, kept plain, nearly all
 * forward only, and never chosen by "auto" (docs/guides/convolution-algorithms.md explains them). `sdlf bench conv`
 * runs them by name; these tables are part of the cuda calculator's own (calculators/cuda/conv2d/algorithms.h). */
#ifndef SDLF_LAB_CONV2D_H
#define SDLF_LAB_CONV2D_H

#include <sdlf/calculator.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LAB_CONV2D_ALGORITHMS = 8 };

/* Names, notes (as initializers) and functions of the algorithms, all in the same order. */
#define LAB_CONV2D_NAMES "naive", "padded", "finer", "shared", "register", "tiled", "im2col", "winograd-4x4"
#define LAB_CONV2D_NOTES                                                                                               \
    {.summary = "one thread a pixel, all filters", .on_request = true},                                                \
        {.summary = "a copy of the image with its border, then one thread an output",                                  \
         .takes = CUDA_CONV2D_COUNTED,                                                                                 \
         .on_request = true},                                                                                          \
        {.summary = "eight threads an output, whose sums are added", .on_request = true},                              \
        {.summary = "one thread an output; tile and halo of a channel in shared memory",                               \
         .takes = "windows whose halo fits 48 KiB",                                                                    \
         .on_request = true},                                                                                          \
        {.summary = "4 pixels of 8 filters a thread, in registers", .takes = CUDA_CONV2D_COUNTED, .on_request = true}, \
        {.summary = "image and weights in shared memory; 4 pixels of 8 filters a thread",                              \
         .takes = "windows whose halo fits 48 KiB",                                                                    \
         .on_request = true},                                                                                          \
        {.summary = "patches as a matrix in memory, then a plain product of 64x64 tiles",                              \
         .takes = CUDA_CONV2D_COUNTED,                                                                                 \
         .on_request = true},                                                                                          \
    {                                                                                                                  \
        .summary = "tiles of 4x4 outputs, 36 multiplications for 144, products by cuBLAS",                             \
        .takes = CUDA_CONV2D_WINOGRAD_TAKES, .on_request = true                                                        \
    }
struct cuda_conv2d_algorithm;
const struct cuda_conv2d_algorithm *lab_conv2d_algorithm(int number);

sdlf_kernel lab_conv2d_naive, lab_conv2d_padded, lab_conv2d_finer, lab_conv2d_shared, lab_conv2d_register;
sdlf_kernel lab_conv2d_tiled;
sdlf_kernel lab_conv2d_im2col, lab_conv2d_winograd, lab_conv2d_winograd_prepare;
bool lab_conv2d_shared_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool lab_conv2d_tiled_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool lab_conv2d_winograd_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t lab_conv2d_padded_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t lab_conv2d_im2col_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t lab_conv2d_tiled_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t lab_conv2d_winograd_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t lab_conv2d_winograd_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
