/* SPDX-License-Identifier: MIT */
/* Winograd convolution with 4x4 tiles in three steps: patches, a batch of 36 GEMMs by cuBLAS, outputs. The points are
 * 0, 1, -1, 2, -2 and infinity. */
#include "calculators/cuda/conv2d/winograd_steps.cuh"
#include "lab/conv2d.h"

template <> struct winograd_axis<4> {
    static __device__ __forceinline__ void patch(float *d, int gap)
    {
        float d0 = d[0], d1 = d[gap], d2 = d[2 * gap], d3 = d[3 * gap], d4 = d[4 * gap], d5 = d[5 * gap];
        float a = d4 - 4 * d2, b = d3 - 4 * d1, c = d4 - d2, e = 2 * (d3 - d1);
        d[0] = 4 * d0 - 5 * d2 + d4;
        d[gap] = a + b;
        d[2 * gap] = a - b;
        d[3 * gap] = c + e;
        d[4 * gap] = c - e;
        d[5 * gap] = 4 * d1 - 5 * d3 + d5;
    }
    static __device__ __forceinline__ void filter(float *to, const float *g, int to_gap, int gap)
    {
        float a = (-1.0f / 6) * (g[0] + g[2 * gap]), b = (1.0f / 6) * g[gap];
        float c = (1.0f / 24) * g[0] + (1.0f / 6) * g[2 * gap], e = (1.0f / 12) * g[gap];
        to[0] = 0.25f * g[0];
        to[to_gap] = a - b;
        to[2 * to_gap] = a + b;
        to[3 * to_gap] = c + e;
        to[4 * to_gap] = c - e;
        to[5 * to_gap] = g[2 * gap];
    }
    static __device__ __forceinline__ void output(float *to, const float *p, int to_gap, int gap)
    {
        float a = p[gap] + p[2 * gap], b = p[gap] - p[2 * gap];
        float c = p[3 * gap] + p[4 * gap], e = p[3 * gap] - p[4 * gap];
        to[0] = p[0] + a + c;
        to[to_gap] = b + 2 * e;
        to[2 * to_gap] = a + 4 * c;
        to[3 * to_gap] = b + 8 * e + p[5 * gap];
    }
};

static const cuda_winograd_steps steps_of_4 = winograd_launch<4>::steps, *const steps = &steps_of_4;

extern "C" bool lab_conv2d_winograd_takes(const sdlf_calculator *, const sdlf_operation *op)
{
    return cuda_winograd_takes(op, steps);
}

extern "C" int64_t lab_conv2d_winograd_prepared(const sdlf_calculator *, const sdlf_operation *op)
{
    return cuda_winograd_prepared(op, steps);
}

extern "C" sdlf_status lab_conv2d_winograd_prepare(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_winograd_prepare(calculator, op, steps);
}

extern "C" int64_t lab_conv2d_winograd_workspace(const sdlf_calculator *, const sdlf_operation *op)
{
    return cuda_winograd_workspace(op, steps);
}

extern "C" sdlf_status lab_conv2d_winograd(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_winograd_run(calculator, op, steps);
}
