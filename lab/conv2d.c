/* SPDX-License-Identifier: MIT */
#include "lab/conv2d.h"

#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/implicit.h"

static bool takes_counted(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_implicit_counts(op);
}

/* In the order of LAB_CONV2D_NAMES. */
static const cuda_conv2d_algorithm algorithms[LAB_CONV2D_ALGORITHMS] = {
    {.forward = lab_conv2d_naive},
    {.takes = takes_counted, .workspace = lab_conv2d_padded_workspace, .forward = lab_conv2d_padded},
    {.forward = lab_conv2d_finer},
    {.takes = lab_conv2d_shared_takes, .forward = lab_conv2d_shared},
    {.takes = takes_counted, .forward = lab_conv2d_register},
    {.takes = lab_conv2d_tiled_takes,
     .workspace = lab_conv2d_tiled_workspace,
     .forward = lab_conv2d_tiled,
     .backward_input = lab_conv2d_tiled,
     .backward_weights = lab_conv2d_tiled},
    {.takes = takes_counted, .workspace = lab_conv2d_im2col_workspace, .forward = lab_conv2d_im2col, .columns = true},
    {.takes = lab_conv2d_winograd_takes,
     .workspace = lab_conv2d_winograd_workspace,
     .forward = lab_conv2d_winograd,
     .prepared = lab_conv2d_winograd_prepared,
     .prepare = lab_conv2d_winograd_prepare,
     .winograd = 4},
};

const cuda_conv2d_algorithm *lab_conv2d_algorithm(int number)
{
    return &algorithms[number];
}
