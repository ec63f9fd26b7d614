/* SPDX-License-Identifier: MIT */
/* db[k] = sum over n,p,q of dy (N,P,Q,K), K a multiple of 8: columns of a matrix (N P Q, K). Moves dy once. */
#include "calculators/cuda/nhwc/column_sums.cuh"
#include "calculators/cuda/nhwc/nhwc.h"

template <typename T> struct gradient_values {
    static constexpr int UNROLL = 4;
    const T *dy;
    struct channel_numbers {
    };
    __device__ __forceinline__ channel_numbers read(int) const
    {
        return {};
    }
    typedef bits8<T> loaded;
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return load_bits8(dy, i);
    }
    __device__ __forceinline__ void add(const channel_numbers &, const loaded &in, float2 (&sums)[VECTOR]) const
    {
        const float8 gradient = unpack8<T>(in);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sums[v].x += gradient.at[v];
    }
};

struct bias_sum {
    float *db;
    __device__ __forceinline__ void take(int64_t k, double2 sum) const
    {
        db[k] = static_cast<float>(sum.x);
    }
};

static sums_cut cut_of(const sdlf_tensor &dy)
{
    return sums_cut_of(dy.shape.dim[0] * dy.shape.dim[2] * dy.shape.dim[3], dy.shape.dim[1]);
}

int64_t bias_gradient_workspace_nhwc(const sdlf_operation *op)
{
    return sums_bytes(cut_of(op->in[1]));
}

sdlf_status bias_gradient_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[1];
    with_storage(dy.dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_sums(calculator, cut_of(dy), gradient_values<T>{data_of<T>(dy)}, bias_sum{data_of<float>(op->out[1])},
                    op->workspace.data);
    });
    return cuda_check_launch("conv2d_backward_weights: bias");
}
