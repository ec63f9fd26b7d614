/* db[k] = sum over n,p,q of dy (N,P,Q,K) in 16-bit storage: columns of a matrix (N P Q, K). Moves dy once. */
#include "calculators/cuda/storage16/channel_sums16.cuh"
#include "calculators/cuda/storage16/storage16.h"

template <typename T> struct gradient_values16 {
    static constexpr int UNROLL = 4;
    const T *dy;
    struct channel_numbers {
    };
    __device__ __forceinline__ channel_numbers read(int) const
    {
        return {};
    }
    typedef uint4 loaded;
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return load_bits16(dy, i);
    }
    __device__ __forceinline__ void add(const channel_numbers &, const loaded &in, float2 (&sums)[VECTOR16]) const
    {
        const float8 gradient = unpack16<T>(in);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) sums[v].x += gradient.at[v];
    }
};

struct bias_sum16 {
    float *db;
    __device__ __forceinline__ void take(int64_t k, double2 sum) const
    {
        db[k] = static_cast<float>(sum.x);
    }
};

static sums16_cut cut_of(const sdlf_tensor &dy)
{
    return sums16_cut_of(dy.shape.dim[0] * dy.shape.dim[2] * dy.shape.dim[3], dy.shape.dim[1]);
}

int64_t bias_gradient_workspace_storage16(const sdlf_operation *op)
{
    return sums16_bytes(cut_of(op->in[1]));
}

sdlf_status bias_gradient_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[1];
    with_storage(dy.dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_sums16(calculator, cut_of(dy), gradient_values16<T>{data_of<T>(dy)},
                      bias_sum16{data_of<float>(op->out[1])}, op->workspace.data);
    });
    return cuda_check_launch("conv2d_backward_weights: bias");
}
